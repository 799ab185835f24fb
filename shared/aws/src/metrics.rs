//! Requests of sources of metrics: CloudWatch, and signatures for Amazon Managed Service for Prometheus, with the function's own
//! credentials or as a role.

use crate::Aws;
use crate::aliases::{error_of, read};
use crate::error::{refused, retry};
use crate::signed::{Ask, Signed};
use aws_credential_types::Credentials;
use keelway_domain::evaluation::{CloudWatch, Prometheus};
use keelway_domain::json::canonical;
use keelway_engine::metrics::Credentialed;
use keelway_engine::ports::PortError;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

const METRICS: &str = "cloudwatch.GetMetricData";
const QUERY: &str = "aps.QueryMetrics";
const ASSUME: &str = "sts.AssumeRole";
/// The name of the sessions, in the trails of the accounts whose roles are assumed.
const SESSION: &str = "keelway-metrics";
/// How long before their end credentials are no longer used.
const EARLY: Duration = Duration::from_secs(300);
/// The codes of requests that are wrong in themselves. Everything else is about who asks, or passes.
const WRONG: [&str; 10] = [
    "InvalidFormat",
    "InvalidFormatFault",
    "InvalidParameterCombination",
    "InvalidParameterCombinationException",
    "InvalidParameterValue",
    "InvalidParameterValueException",
    "MissingParameter",
    "MissingRequiredParameterException",
    "ValidationError",
    "ValidationException",
];

/// A role of another account.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Role {
    arn: String,
    external_id: Option<String>,
}

impl Role {
    fn of(arn: Option<&String>, external_id: Option<&String>) -> Option<Self> {
        arn.map(|arn| Self { arn: arn.clone(), external_id: external_id.cloned() })
    }
}

/// The credentials of roles, until they end. The external id is a part of the key: whoever names another one, or none, is judged by
/// the role's own account, and not by what somebody else was given.
#[derive(Debug, Default)]
pub(crate) struct Roles(Mutex<BTreeMap<Role, Credentials>>);

impl Roles {
    fn known(&self, role: &Role) -> Option<Credentials> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(role).cloned()?;
        let lasts = known.expiry().is_none_or(|end| end > SystemTime::now() + EARLY);
        lasts.then_some(known)
    }

    /// The credentials of a role; `None`: the function's own.
    async fn of(&self, signed: &Signed, role: Option<Role>) -> Result<Credentials, PortError> {
        let Some(role) = role else { return signed.credentials(ASSUME).await };
        if let Some(known) = self.known(&role) {
            return Ok(known);
        }
        let assumed = assume(signed, &role).await?;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(role, assumed.clone());
        Ok(assumed)
    }
}

/// `AssumeRole` of STS, which has the Query protocol only.
async fn assume(signed: &Signed, Role { arn: role, external_id }: &Role) -> Result<Credentials, PortError> {
    let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let external = external_id.as_ref().map(|id| format!("&ExternalId={}", encoded(id))).unwrap_or_default();
    let ask = Ask {
        name: ASSUME,
        service: "sts",
        region: None,
        method: "POST",
        path: "/".into(),
        headers: &[("content-type", "application/x-www-form-urlencoded")],
        body: format!(
            "Action=AssumeRole&Version=2011-06-15&RoleArn={}&RoleSessionName={SESSION}&DurationSeconds=3600{external}",
            encoded(role)
        ),
        patience: Duration::from_secs(5),
    };
    let answered = signed.ask(&ask).await?;
    let text = String::from_utf8_lossy(&answered.body);
    if answered.status != 200 {
        let told = |tag: &str| element(&text, tag).unwrap_or("no message").to_owned();
        let reason = format!("{}: {} (status {})", told("Code"), told("Message"), answered.status);
        let passes = answered.status == 429 || answered.status >= 500 || crate::error::passes_by_code(&told("Code"));
        return Err(if passes {
            retry(ASSUME, reason)
        } else {
            refused(ASSUME, format!("role {role} cannot be assumed: {reason}"))
        });
    }
    let part = |tag: &str| element(&text, tag).map(str::to_owned).ok_or_else(|| retry(ASSUME, format!("the answer has no {tag}")));
    // One that cannot be read lasts for this request only.
    let end = element(&text, "Expiration").and_then(keelway_domain::time::Timestamp::parse);
    let end = SystemTime::UNIX_EPOCH + Duration::from_millis(end.map_or(0, |end| end.0.unsigned_abs()));
    Ok(Credentials::new(part("AccessKeyId")?, part("SecretAccessKey")?, Some(part("SessionToken")?), Some(end), "role"))
}

/// The text of an element that has only text. Credentials have no letters that XML writes in another way.
fn element<'a>(xml: &'a str, tag: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{tag}>"))?;
    rest.split_once(&format!("</{tag}>")).map(|(text, _)| text.trim())
}

impl Signed {
    async fn metric_data(&self, roles: &Roles, of: &CloudWatch, request: &Value) -> Result<Result<Value, String>, PortError> {
        let ask = Ask {
            name: METRICS,
            service: "monitoring",
            region: of.region.as_deref(),
            method: "POST",
            path: "/".into(),
            headers: &[
                ("content-type", "application/x-amz-json-1.0"),
                ("x-amz-target", "GraniteServiceVersion20100801.GetMetricData"),
            ],
            body: canonical(request),
            patience: Duration::from_secs(15),
        };
        let answered = self.ask_as(&ask, roles.of(self, Role::of(of.role.as_ref(), of.external_id.as_ref()))).await?;
        if answered.status == 400 {
            let (code, message) = error_of(&answered);
            if WRONG.contains(&code.as_str()) {
                return Ok(Err(message));
            }
        }
        read(METRICS, &answered).map(Ok)
    }

    async fn query_signature(
        &self,
        roles: &Roles,
        of: &Prometheus,
        (url, body): (&str, &str),
        at: SystemTime,
    ) -> Result<Vec<(String, String)>, PortError> {
        let ask = Ask {
            name: QUERY,
            service: "aps",
            region: of.region.as_deref(),
            method: "POST",
            path: String::new(),
            headers: &[("content-type", "application/x-www-form-urlencoded")],
            body: body.to_owned(),
            patience: Duration::ZERO,
        };
        let role = Role::of(of.role.as_ref(), of.external_id.as_ref());
        self.signature((&ask, url), roles.of(self, role).await?, at)
    }
}

impl Credentialed for Aws {
    async fn metric_data(&self, of: &CloudWatch, request: &Value) -> Result<Result<Value, String>, PortError> {
        self.inner.signed.metric_data(&self.inner.roles, of, request).await
    }

    async fn signature(&self, of: &Prometheus, url: &str, body: &str) -> Result<Vec<(String, String)>, PortError> {
        self.inner.signed.query_signature(&self.inner.roles, of, (url, body), SystemTime::now()).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signed::tests::{answering, through};
    use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture};
    use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
    use aws_smithy_types::body::SdkBody;
    use serde_json::json;
    use std::collections::VecDeque;
    use std::sync::Arc;
    use std::time::UNIX_EPOCH;

    const ROLE: &str = "arn:aws:iam::111122223333:role/keelway/metrics";

    fn theirs(region: &str) -> CloudWatch {
        CloudWatch { region: Some(region.into()), role: Some(ROLE.into()), external_id: None }
    }

    fn body(request: &HttpRequest) -> String {
        String::from_utf8(request.body().bytes().unwrap().to_vec()).unwrap()
    }

    fn header(request: &HttpRequest, name: &str) -> String {
        request.headers().get(name).unwrap_or_default().to_owned()
    }

    /// Gives one answer after the other.
    #[derive(Debug)]
    struct Script(Mutex<VecDeque<(u16, String)>>, Arc<Mutex<Vec<HttpRequest>>>);

    impl HttpConnector for Script {
        fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
            self.1.lock().unwrap().push(request);
            let (status, body) = self.0.lock().unwrap().pop_front().expect("no more requests");
            HttpConnectorFuture::ready(Ok(HttpResponse::new(status.try_into().unwrap(), SdkBody::from(body))))
        }
    }

    fn script(answers: Vec<(u16, String)>) -> (Signed, Arc<Mutex<Vec<HttpRequest>>>) {
        let seen = Arc::new(Mutex::new(vec![]));
        (through(Script(Mutex::new(answers.into()), seen.clone())), seen)
    }

    /// As the reference of `AssumeRole` has it.
    fn assumed(key: &str, expiration: &str) -> (u16, String) {
        let text = format!(
            "<AssumeRoleResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">\n  <AssumeRoleResult>\n    <AssumedRoleUser>\n      \
             <Arn>arn:aws:sts::111122223333:assumed-role/metrics/keelway-metrics</Arn>\n    </AssumedRoleUser>\n    <Credentials>\n      \
             <AccessKeyId>{key}</AccessKeyId>\n      <SecretAccessKey>wJalr/XUtn+FEMI</SecretAccessKey>\n      <SessionToken>\n       \
             AQoDYXdz/IC+ag==\n      </SessionToken>\n      <Expiration>{expiration}</Expiration>\n    </Credentials>\n  \
             </AssumeRoleResult>\n</AssumeRoleResponse>"
        );
        (200, text)
    }

    const EMPTY: &str = r#"{"MetricDataResults": [], "Messages": []}"#;

    #[tokio::test]
    async fn data_is_asked_for_with_the_functions_own_credentials() {
        let (signed, seen) = answering(200, &[], EMPTY);
        let request = json!({"StartTime": 1, "EndTime": 2, "MetricDataQueries": []});
        let found = signed.metric_data(&Roles::default(), &CloudWatch::default(), &request).await.unwrap().unwrap();
        assert_eq!(found["MetricDataResults"], json!([]));
        let seen = seen.lock().unwrap();
        let [request] = &seen[..] else { panic!("{} requests", seen.len()) };
        assert_eq!((request.method(), request.uri()), ("POST", "https://monitoring.eu-central-1.amazonaws.com/"));
        assert_eq!(header(request, "x-amz-target"), "GraniteServiceVersion20100801.GetMetricData");
        assert_eq!(header(request, "content-type"), "application/x-amz-json-1.0");
        assert!(header(request, "authorization").contains("/eu-central-1/monitoring/aws4_request"));
        assert_eq!(body(request), r#"{"EndTime":2,"MetricDataQueries":[],"StartTime":1}"#);
    }

    #[tokio::test]
    async fn a_role_is_assumed_once_until_its_credentials_end() {
        let (signed, seen) = script(vec![
            assumed("AKIDROLE", "2999-01-01T00:00:00Z"),
            (200, EMPTY.into()),
            (200, EMPTY.into()),
            assumed("AKIDSHORT", "2020-01-01T00:00:00Z"),
            (200, EMPTY.into()),
            assumed("AKIDAGAIN", "2999-01-01T00:00:00Z"),
            (200, EMPTY.into()),
        ]);
        let (roles, other) = (Roles::default(), "arn:aws:iam::111122223333:role/other");
        for role in [ROLE, ROLE, other, other] {
            let of = CloudWatch { role: Some(role.into()), ..theirs("eu-west-1") };
            signed.metric_data(&roles, &of, &json!({})).await.unwrap().unwrap();
        }
        let seen = seen.lock().unwrap();
        assert_eq!(seen[0].uri(), "https://sts.eu-central-1.amazonaws.com/");
        assert!(header(&seen[0], "authorization").contains("Credential=AKIDEXAMPLE/"));
        let expected = "Action=AssumeRole&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A111122223333%3Arole%2Fkeelway%2Fmetrics&\
                        RoleSessionName=keelway-metrics&DurationSeconds=3600";
        assert_eq!(body(&seen[0]), expected);
        for (at, key) in [(1, "AKIDROLE"), (2, "AKIDROLE"), (4, "AKIDSHORT"), (6, "AKIDAGAIN")] {
            assert_eq!(seen[at].uri(), "https://monitoring.eu-west-1.amazonaws.com/");
            assert!(header(&seen[at], "authorization").contains(&format!("Credential={key}/")), "{at}");
            assert_eq!(header(&seen[at], "x-amz-security-token"), "AQoDYXdz/IC+ag==");
        }
    }

    /// The credentials that one external id has got are not those of another one, or of none.
    #[tokio::test]
    async fn an_external_id_is_told_to_the_roles_account() {
        let lasting = |key: &str| assumed(key, "2999-01-01T00:00:00Z");
        let (signed, seen) = script(vec![lasting("AKIDSHOP"), (200, EMPTY.into()), lasting("AKIDNONE"), (200, EMPTY.into())]);
        let roles = Roles::default();
        for external_id in [Some("shop:42/a".to_owned()), None] {
            let of = CloudWatch { external_id, ..theirs("eu-west-1") };
            signed.metric_data(&roles, &of, &json!({})).await.unwrap().unwrap();
        }
        let seen = seen.lock().unwrap();
        let told = |at: usize| form(&body(&seen[at]));
        let common = [
            ("Action", "AssumeRole"),
            ("Version", "2011-06-15"),
            ("RoleArn", ROLE),
            ("RoleSessionName", "keelway-metrics"),
            ("DurationSeconds", "3600"),
        ];
        let common = common.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let external = ("ExternalId".to_owned(), "shop:42/a".to_owned());
        assert_eq!(told(0), [&common[..], &[external]].concat());
        assert_eq!(told(2), common);
        assert!(header(&seen[3], "authorization").contains("Credential=AKIDNONE/"));
    }

    /// A form's parameters, only those that `AssumeRole` documents, each once and decoded.
    fn form(body: &str) -> Vec<(String, String)> {
        let known = ["Action", "Version", "RoleArn", "RoleSessionName", "DurationSeconds", "ExternalId"];
        let pairs = body.split('&').map(|pair| pair.split_once('=').unwrap());
        let decoded = |text: &str| percent_encoding::percent_decode_str(text).decode_utf8().unwrap().into_owned();
        let pairs: Vec<_> = pairs.map(|(name, value)| (name.to_owned(), decoded(value))).collect();
        let names: std::collections::BTreeSet<&String> = pairs.iter().map(|(name, _)| name).collect();
        assert!(names.len() == pairs.len() && names.iter().all(|name| known.contains(&name.as_str())), "{body}");
        pairs
    }

    #[tokio::test]
    async fn what_passes_what_is_denied_and_what_is_wrong() {
        let ask = async |status: u16, code: &str| {
            let (signed, _) = script(vec![(status, json!({"__type": code, "message": "why"}).to_string())]);
            signed.metric_data(&Roles::default(), &CloudWatch::default(), &json!({})).await
        };
        assert_eq!(ask(400, "com.amazonaws.cloudwatch#ValidationError").await, Ok(Err("why".into())));
        assert_eq!(ask(400, "InvalidParameterValue").await, Ok(Err("why".into())));
        for (status, code) in
            [(400, "ThrottlingException"), (400, "Throttling"), (429, ""), (500, "InternalServiceFault"), (503, "")]
        {
            assert!(matches!(ask(status, code).await, Err(PortError::Retry { .. })), "{status} {code}");
        }
        for (status, code) in [(403, "AccessDeniedException"), (400, "AccessDenied"), (403, "InvalidClientTokenId"), (404, "")] {
            let error = ask(status, code).await.unwrap_err();
            assert!(matches!(error, PortError::Refused { .. }), "{status} {code}: {error}");
        }
    }

    #[tokio::test]
    async fn a_role_that_cannot_be_assumed_is_named() {
        let told = |code: &str| {
            format!(
                "<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>not authorized</Message></Error></ErrorResponse>"
            )
        };
        for (status, code, passes) in [(403, "AccessDenied", false), (400, "Throttling", true), (503, "ServiceUnavailable", true)] {
            let (signed, _) = script(vec![(status, told(code))]);
            let error = signed.metric_data(&Roles::default(), &theirs("eu-west-1"), &json!({})).await.unwrap_err();
            assert_eq!(matches!(error, PortError::Retry { .. }), passes, "{error}");
            assert!(error.to_string().contains(&format!("{code}: not authorized")), "{error}");
            assert_eq!(error.to_string().contains(ROLE), !passes, "{error}");
        }
    }

    #[tokio::test]
    async fn a_query_is_signed_for_its_workspace() {
        let (signed, _) = answering(200, &[], "");
        let url = "https://aps-workspaces.eu-west-1.amazonaws.com/workspaces/ws-1/api/v1/query";
        let of = Prometheus { url: url.into(), region: Some("eu-west-1".into()), ..Prometheus::default() };
        let at = UNIX_EPOCH + Duration::from_secs(1_795_222_266);
        let sign = async |body: &str| signed.query_signature(&Roles::default(), &of, (url, body), at).await.unwrap();
        let headers: BTreeMap<String, String> = sign("query=up").await.into_iter().collect();
        let expected = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261121/eu-west-1/aps/aws4_request, \
                        SignedHeaders=content-type;host;x-amz-date;x-amz-security-token, Signature=";
        assert!(headers["authorization"].starts_with(expected), "{headers:?}");
        assert_eq!((headers["x-amz-date"].as_str(), headers["x-amz-security-token"].as_str()), ("20261121T005106Z", "session"));
        assert_ne!(sign("query=down").await, sign("query=up").await, "the body is signed");
    }
}
