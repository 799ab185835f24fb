//! Requests to services whose client is not worth its build time: one signed HTTP call each.
//!
//! Emulators look at the key a request names and not at its signature, so there is none to speak of. AWS itself refuses these.

use crate::patience::LAST_LIMIT;
use crate::problem::Problem;
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;

/// The key of the account's root user in every emulator.
pub const KEY: &str = "test";

/// Sends requests to one endpoint.
#[derive(Debug, Clone)]
pub struct Raw {
    /// The endpoint's URL.
    pub endpoint: String,
    /// The region.
    pub region: String,
    client: reqwest::Client,
}

impl Raw {
    /// To this endpoint.
    pub fn new(endpoint: &str, region: &str) -> Self {
        Self { endpoint: endpoint.to_owned(), region: region.to_owned(), client: client() }
    }

    fn authorization(&self, service: &str, key: &str) -> String {
        let scope = format!("{key}/20200101/{}/{service}/aws4_request", self.region);
        format!("AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host;x-amz-date, Signature=0")
    }

    /// A request of a JSON service: its target header, `DynamoDB_20120810.ListTables`.
    ///
    /// # Errors
    /// Anything but 2xx, with the service's words.
    pub async fn json(&self, service: &str, target: &str, body: &Value) -> Result<Value, Problem> {
        self.json_as(KEY, service, target, body).await
    }

    /// The same under another key.
    ///
    /// # Errors
    /// Anything but 2xx, with the service's words.
    pub async fn json_as(&self, key: &str, service: &str, target: &str, body: &Value) -> Result<Value, Problem> {
        let request = self.client.post(format!("{}/", self.endpoint)).header("authorization", self.authorization(service, key));
        let request = request.header("x-amz-date", "20200101T000000Z").header("x-amz-target", target);
        answer(target, request.header("content-type", "application/x-amz-json-1.1").body(body.to_string())).await
    }

    /// A request of a REST service that creates something.
    ///
    /// # Errors
    /// Anything but 2xx, with the service's words.
    pub async fn rest(&self, service: &str, path: &str, body: &Value) -> Result<Value, Problem> {
        self.ask(Method::POST, service, path, body).await
    }

    /// Any request of a REST service; without a body if that is `null`.
    ///
    /// # Errors
    /// Anything but 2xx, with the service's words.
    pub async fn ask(&self, method: Method, service: &str, path: &str, body: &Value) -> Result<Value, Problem> {
        let request = self.client.request(method, format!("{}{path}", self.endpoint));
        let request = request.header("authorization", self.authorization(service, KEY)).header("x-amz-date", "20200101T000000Z");
        let json = (!body.is_null()).then(|| body.to_string());
        let request = match json {
            Some(json) => request.header("content-type", "application/json").body(json),
            None => request,
        };
        answer(path, request).await
    }

    /// The schedules of a group.
    ///
    /// # Errors
    /// Anything but 2xx, with the service's words.
    pub async fn list_schedules(&self, group: &str) -> Result<Value, Problem> {
        self.ask(Method::GET, "scheduler", &format!("/schedules?ScheduleGroup={group}"), &Value::Null).await
    }

    /// A queue's ARN.
    ///
    /// # Errors
    /// Anything but 2xx, with the service's words.
    pub async fn queue_arn(&self, url: &str) -> Result<String, Problem> {
        let asked = json!({"QueueUrl": url, "AttributeNames": ["QueueArn"]});
        let answer = self.json("sqs", "AmazonSQS.GetQueueAttributes", &asked).await?;
        Ok(answer["Attributes"]["QueueArn"].as_str().unwrap_or_default().to_owned())
    }

    /// The ARN of the role whose name begins so.
    ///
    /// # Errors
    /// When there is none.
    pub async fn role_arn(&self, prefix: &str) -> Result<String, Problem> {
        let answer = self.iam("ListRoles", "MaxItems=1000").await?;
        let text = answer.as_str().unwrap_or_default();
        let mut arns = text.split("<Arn>").skip(1).filter_map(|rest| rest.split("</Arn>").next());
        let found = arns.find(|arn| arn.rsplit('/').next().is_some_and(|name| name.starts_with(prefix)));
        found.map(str::to_owned).ok_or_else(|| format!("no role {prefix}…").into())
    }

    /// Makes a role that a service may take, and that may do nothing. Returns its ARN.
    ///
    /// # Errors
    /// Anything but 2xx, with the service's words.
    pub async fn create_role(&self, name: &str, service: &str) -> Result<String, Problem> {
        let policy = json!({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"Service": service},
            "Action": "sts:AssumeRole"}]});
        let encoded: String = policy.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect();
        self.iam("CreateRole", &format!("RoleName={name}&AssumeRolePolicyDocument={encoded}")).await?;
        self.role_arn(name).await
    }

    async fn iam(&self, action: &str, parameters: &str) -> Result<Value, Problem> {
        let request = self.client.post(format!("{}/", self.endpoint)).header("authorization", self.authorization("iam", KEY));
        let request = request.header("x-amz-date", "20200101T000000Z").header("content-type", "application/x-www-form-urlencoded");
        answer(action, request.body(format!("Action={action}&Version=2010-05-08&{parameters}"))).await
    }

    /// What a function is deployed with.
    ///
    /// # Errors
    /// Anything but 2xx, with the service's words.
    pub async fn function(&self, name: &str) -> Result<Value, Problem> {
        self.ask(Method::GET, "lambda", &format!("/2015-03-31/functions/{name}/configuration"), &Value::Null).await
    }

    /// Runs a function and waits for its answer.
    ///
    /// # Errors
    /// When the function fails.
    pub async fn invoke(&self, function: &str, event: &Value) -> Result<Value, Problem> {
        let answer = self.rest("lambda", &format!("/2015-03-31/functions/{function}/invocations"), event).await?;
        match answer.get("errorMessage") {
            Some(error) => Err(Problem::of(function, error)),
            None => Ok(answer),
        }
    }
}

/// Emulators close connections that nobody has used for five seconds. A request that goes out at that moment is lost.
const IDLE: Duration = Duration::from_secs(2);

/// A client that heeds no proxy of the shell: the endpoint is on this machine. A request without an answer fails.
pub fn client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().pool_idle_timeout(IDLE).timeout(LAST_LIMIT).build().unwrap_or_default()
}

async fn answer(what: &str, request: reqwest::RequestBuilder) -> Result<Value, Problem> {
    let answer = request.send().await.map_err(|error| Problem::of(what, error))?;
    let status = answer.status();
    let text = answer.text().await.map_err(|error| Problem::of(what, error))?;
    if !status.is_success() {
        return Err(format!("{what}: {status} {text}").into());
    }
    Ok(serde_json::from_str(&text).unwrap_or(Value::String(text)))
}
