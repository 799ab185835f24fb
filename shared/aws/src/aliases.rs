//! The operations of Lambda that deployments need, each as a signed request.

use crate::Aws;
use crate::error::{passes_by_code, refused, retry};
use crate::signed::{Answered, Ask, Signed};
use aws_smithy_types::base64;
use keelway_domain::deployments::plan::{Code, Function, Package};
use keelway_domain::json::canonical;
use keelway_engine::aliases::{Alias, Aliases, Called, Readiness, Route};
use keelway_engine::ports::PortError;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use std::time::Duration;

const GET_ALIAS: &str = "lambda.GetAlias";
const CREATE_ALIAS: &str = "lambda.CreateAlias";
const UPDATE_ALIAS: &str = "lambda.UpdateAlias";
const UPDATE_CODE: &str = "lambda.UpdateFunctionCode";
const GET_CONFIGURATION: &str = "lambda.GetFunctionConfiguration";
const INVOKE: &str = "lambda.Invoke";
/// The timeout of requests that Lambda itself answers.
const PATIENCE: Duration = Duration::from_secs(10);
/// The timeout of invocations, whose answer comes from a user's function.
const CALL_PATIENCE: Duration = Duration::from_secs(120);
const JSON: &[(&str, &str)] = &[("content-type", "application/json")];
/// The characters that need no encoding in a path.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, PLAIN).to_string()
}

/// A request about a function.
fn ask<'a>(name: &'static str, method: &'static str, of: &'a Function, rest: &str, body: Option<&Value>) -> Ask<'a> {
    Ask {
        name,
        service: "lambda",
        region: of.region.as_deref(),
        method,
        path: format!("/2015-03-31/functions/{}{rest}", encoded(&of.name)),
        headers: if body.is_some() { JSON } else { &[] },
        body: body.map(canonical).unwrap_or_default(),
        patience: PATIENCE,
    }
}

/// The routing of an alias. Lambda keeps weights that a request does not name, so all of them are named.
fn routing(route: &Route) -> Value {
    let weights: serde_json::Map<String, Value> =
        route.canary.iter().map(|(version, percent)| (version.clone(), json!(f64::from(*percent) / 100.0))).collect();
    json!({ "AdditionalVersionWeights": weights })
}

/// Code and message of an error.
pub(crate) fn error_of(answered: &Answered) -> (String, String) {
    let json: Value = serde_json::from_slice(&answered.body).unwrap_or_default();
    let text = |name: &str| json[name].as_str().map(str::to_owned);
    let header = answered.headers.get("x-amzn-errortype").map(str::to_owned);
    let code = header.or_else(|| text("__type")).or_else(|| text("code")).unwrap_or_default();
    let code = code.split(':').next().unwrap_or_default().rsplit('#').next().unwrap_or_default().to_owned();
    (code, text("message").or_else(|| text("Message")).unwrap_or_else(|| "no message".into()))
}

/// The JSON of a success.
pub(crate) fn read(name: &'static str, answered: &Answered) -> Result<Value, PortError> {
    if (200..300).contains(&answered.status) {
        return serde_json::from_slice(&answered.body).map_err(|_| retry(name, "the answer is not JSON"));
    }
    Err(failed(name, answered))
}

pub(crate) fn failed(name: &'static str, answered: &Answered) -> PortError {
    let (code, message) = error_of(answered);
    let status = answered.status;
    let reason = format!("{code}: {message} (status {status})");
    match (status, code.as_str()) {
        (429 | 500.., _) => retry(name, reason),
        (_, code) if passes_by_code(code) => retry(name, reason),
        (409 | 412, _) => PortError::Contended { request: name, reason },
        _ => refused(name, reason),
    }
}

fn alias(name: &'static str, json: &Value) -> Result<Alias, PortError> {
    let text = |name: &str| json[name].as_str().unwrap_or_default().to_owned();
    if text("FunctionVersion").is_empty() {
        return Err(retry(name, "the answer names no version"));
    }
    let weights = json["RoutingConfig"]["AdditionalVersionWeights"].as_object();
    let canary = weights.into_iter().flatten().next().map(|(version, weight)| {
        // One percent is the smallest weight that Keelway sets.
        let percent = (weight.as_f64().unwrap_or_default() * 100.0).round().clamp(0.0, 100.0);
        (version.clone(), percent as u8)
    });
    Ok(Alias { route: Route { version: text("FunctionVersion"), canary }, revision: text("RevisionId") })
}

/// The members of a request that name the location of the code.
fn place_of(code: &Code) -> Value {
    match code {
        Code::Image(image) => json!({ "ImageUri": image, "Publish": true }),
        Code::Package(Package { bucket, key, version, .. }) => {
            let mut place = json!({"S3Bucket": bucket, "S3Key": key, "Publish": true});
            if let Some(version) = version {
                place["S3ObjectVersion"] = version.as_str().into();
            }
            place
        }
    }
}

/// Compares the SHA-256 of the package that Lambda has read with that of the package that was meant.
fn verify(code: &Code, answer: &Value) -> Result<(), PortError> {
    let Code::Package(package) = code else { return Ok(()) };
    let answered = answer["CodeSha256"].as_str().unwrap_or_default();
    let Some(read) = base64::decode(answered).ok().filter(|bytes| bytes.len() == 32) else {
        return Err(retry(UPDATE_CODE, "the answer does not say what it read"));
    };
    let read: String = read.iter().map(|byte| format!("{byte:02x}")).collect();
    if read == package.sha256 {
        return Ok(());
    }
    let reason = format!(
        "s3://{}/{} has the SHA-256 {read} and not {}: it was overwritten, or something else was pushed; push it again under a key of its own",
        package.bucket, package.key, package.sha256
    );
    Err(refused(UPDATE_CODE, reason))
}

fn readiness(json: &Value) -> Readiness {
    let text = |name: &str| json[name].as_str().unwrap_or_default();
    let reason = |name: &str| if text(name).is_empty() { "Lambda gives no reason".to_owned() } else { text(name).to_owned() };
    match (text("State"), text("LastUpdateStatus")) {
        ("Failed", _) => Readiness::Failed(reason("StateReason")),
        (_, "Failed") => Readiness::Failed(reason("LastUpdateStatusReason")),
        ("Pending", _) | (_, "InProgress") => Readiness::Pending,
        _ => Readiness::Ready,
    }
}

impl Signed {
    async fn get_alias(&self, of: &Function, name: &str) -> Result<Option<Alias>, PortError> {
        let answered = self.ask(&ask(GET_ALIAS, "GET", of, &format!("/aliases/{}", encoded(name)), None)).await?;
        if answered.status == 404 && error_of(&answered).0 == "ResourceNotFoundException" {
            return Ok(None);
        }
        alias(GET_ALIAS, &read(GET_ALIAS, &answered)?).map(Some)
    }

    async fn create_alias(&self, of: &Function, name: &str, version: &str) -> Result<(), PortError> {
        let body = json!({"Name": name, "FunctionVersion": version});
        let answered = self.ask(&ask(CREATE_ALIAS, "POST", of, "/aliases", Some(&body))).await?;
        read(CREATE_ALIAS, &answered).map(drop)
    }

    async fn update_alias(&self, of: &Function, (name, revision): (&str, &str), route: &Route) -> Result<(), PortError> {
        let body = json!({"FunctionVersion": route.version, "RoutingConfig": routing(route), "RevisionId": revision});
        let answered = self.ask(&ask(UPDATE_ALIAS, "PUT", of, &format!("/aliases/{}", encoded(name)), Some(&body))).await?;
        read(UPDATE_ALIAS, &answered).map(drop)
    }

    async fn update_code(&self, of: &Function, code: &Code) -> Result<String, PortError> {
        let answered = self.ask(&ask(UPDATE_CODE, "PUT", of, "/code", Some(&place_of(code)))).await?;
        let json = read(UPDATE_CODE, &answered)?;
        verify(code, &json)?;
        let version = json["Version"].as_str().map(str::to_owned);
        version.ok_or_else(|| retry(UPDATE_CODE, "the answer names no version"))
    }

    async fn readiness(&self, of: &Function, version: &str) -> Result<Readiness, PortError> {
        let rest = format!("/configuration?Qualifier={}", encoded(version));
        let answered = self.ask(&ask(GET_CONFIGURATION, "GET", of, &rest, None)).await?;
        Ok(readiness(&read(GET_CONFIGURATION, &answered)?))
    }

    async fn invoke(&self, of: &Function, payload: &str) -> Result<Called, PortError> {
        let plain = ask(INVOKE, "POST", of, "/invocations", Some(&Value::Null));
        let answered = self.ask(&Ask { body: payload.to_owned(), patience: CALL_PATIENCE, ..plain }).await?;
        if !(200..300).contains(&answered.status) {
            return Err(failed(INVOKE, &answered));
        }
        let error = answered.headers.get("x-amz-function-error").map(str::to_owned);
        Ok(Called { status: answered.status, error, body: String::from_utf8_lossy(&answered.body).into_owned() })
    }
}

impl Aliases for Aws {
    async fn find(&self, of: &Function, alias: &str) -> Result<Option<Alias>, PortError> {
        self.inner.signed.get_alias(of, alias).await
    }
    async fn create(&self, of: &Function, alias: &str, version: &str) -> Result<(), PortError> {
        self.inner.signed.create_alias(of, alias, version).await
    }
    async fn shift(&self, of: &Function, alias: &str, route: &Route, revision: &str) -> Result<(), PortError> {
        self.inner.signed.update_alias(of, (alias, revision), route).await
    }
    async fn publish(&self, of: &Function, code: &Code) -> Result<String, PortError> {
        self.inner.signed.update_code(of, code).await
    }
    async fn readiness(&self, of: &Function, version: &str) -> Result<Readiness, PortError> {
        self.inner.signed.readiness(of, version).await
    }
    async fn call(&self, of: &Function, payload: &str) -> Result<Called, PortError> {
        self.inner.signed.invoke(of, payload).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signed::tests::answering;

    fn shop() -> Function {
        Function { name: "arn:aws:lambda:eu-west-1:1:function:shop".into(), region: Some("eu-west-1".into()) }
    }

    const AT: &str =
        "https://lambda.eu-west-1.amazonaws.com/2015-03-31/functions/arn%3Aaws%3Alambda%3Aeu-west-1%3A1%3Afunction%3Ashop";

    /// Sends one request, and returns its method, its path below the function, and its body.
    macro_rules! sent {
        ($status:expr, $body:expr, $headers:expr, $call:expr) => {{
            let (signed, seen) = answering($status, $headers, $body);
            let call = $call;
            let result = call(&signed).await;
            let seen = seen.lock().unwrap();
            let [request] = &seen[..] else { panic!("{} requests", seen.len()) };
            let path = request.uri().strip_prefix(AT).unwrap_or_else(|| panic!("{}", request.uri())).to_owned();
            let body = String::from_utf8(request.body().bytes().unwrap().to_vec()).unwrap();
            (result, (request.method().to_owned(), path, body))
        }};
    }

    const ALIAS: &str = r#"{"AliasArn":"a","Name":"live","FunctionVersion":"1","Description":"","RevisionId":"r1",
        "RoutingConfig":{"AdditionalVersionWeights":{"2":0.29}}}"#;

    #[tokio::test]
    async fn an_alias_is_read() {
        let (found, sent) = sent!(200, ALIAS, &[], async |signed: &Signed| signed.get_alias(&shop(), "live").await);
        assert_eq!(sent, ("GET".into(), "/aliases/live".into(), String::new()));
        let route = Route { version: "1".into(), canary: Some(("2".into(), 29)) };
        assert_eq!(found, Ok(Some(Alias { route, revision: "r1".into() })));
        let missing = r#"{"Type":"User","Message":"Cannot find alias arn: arn:aws:lambda:eu-west-1:1:function:shop:live"}"#;
        let code = &[("x-amzn-errortype", "ResourceNotFoundException:http://internal.amazon.com/")];
        assert_eq!(sent!(404, missing, code, async |signed: &Signed| signed.get_alias(&shop(), "live").await).0, Ok(None));
    }

    #[tokio::test]
    async fn an_alias_is_made_and_changed() {
        let (done, sent) = sent!(201, ALIAS, &[], async |signed: &Signed| signed.create_alias(&shop(), "live", "2").await);
        assert_eq!((done, sent), (Ok(()), ("POST".into(), "/aliases".into(), r#"{"FunctionVersion":"2","Name":"live"}"#.into())));
        let route = Route { version: "1".into(), canary: Some(("2".into(), 10)) };
        let (done, (method, path, body)) =
            sent!(200, ALIAS, &[], async |signed: &Signed| signed.update_alias(&shop(), ("live", "r1"), &route).await);
        assert_eq!((done, method.as_str(), path.as_str()), (Ok(()), "PUT", "/aliases/live"));
        let weights = r#"{"FunctionVersion":"1","RevisionId":"r1","RoutingConfig":{"AdditionalVersionWeights":{"2":0.1}}}"#;
        assert_eq!(body, weights);
        let (_, (_, _, body)) =
            sent!(200, ALIAS, &[], async |signed: &Signed| signed.update_alias(&shop(), ("live", "r1"), &Route::to("2")).await);
        assert_eq!(body, r#"{"FunctionVersion":"2","RevisionId":"r1","RoutingConfig":{"AdditionalVersionWeights":{}}}"#);
    }

    #[tokio::test]
    async fn an_image_becomes_a_version_that_is_ready_some_time() {
        let made = r#"{"FunctionName":"shop","Version":"7","State":"Pending","LastUpdateStatus":"InProgress"}"#;
        let image = Code::Image("r/shop@sha256:ab".into());
        let (done, sent) = sent!(200, made, &[], async |signed: &Signed| signed.update_code(&shop(), &image).await);
        assert_eq!(done, Ok("7".into()));
        assert_eq!(sent, ("PUT".into(), "/code".into(), r#"{"ImageUri":"r/shop@sha256:ab","Publish":true}"#.into()));
        let (found, sent) = sent!(200, made, &[], async |signed: &Signed| signed.readiness(&shop(), "7").await);
        assert_eq!((found, sent.1.as_str()), (Ok(Readiness::Pending), "/configuration?Qualifier=7"));
        let state = |text: &str| readiness(&serde_json::from_str(text).unwrap());
        assert_eq!(state(r#"{"State":"Active","LastUpdateStatus":"Successful"}"#), Readiness::Ready);
        assert_eq!(state(r#"{"State":"Active","LastUpdateStatus":"InProgress"}"#), Readiness::Pending);
        let why = state(r#"{"State":"Failed","StateReason":"ImageAccessDenied","LastUpdateStatus":"Failed"}"#);
        assert_eq!(why, Readiness::Failed("ImageAccessDenied".into()));
    }

    #[tokio::test]
    async fn a_package_becomes_a_version_if_it_is_the_one_that_was_meant() {
        let package = |sha256: &str, version: Option<&str>| {
            let (bucket, key) = ("releases".to_owned(), "shop/1.zip".to_owned());
            Code::Package(Package { bucket, key, version: version.map(str::to_owned), sha256: sha256.into() })
        };
        // The SHA-256 of no bytes.
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let made = r#"{"Version":"7","CodeSha256":"47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="}"#;
        let (done, (method, path, body)) =
            sent!(200, made, &[], async |signed: &Signed| signed.update_code(&shop(), &package(empty, Some("v1"))).await);
        assert_eq!((done, method.as_str(), path.as_str()), (Ok("7".into()), "PUT", "/code"));
        assert_eq!(body, r#"{"Publish":true,"S3Bucket":"releases","S3Key":"shop/1.zip","S3ObjectVersion":"v1"}"#);
        let other = "0".repeat(64);
        let (done, (_, _, body)) =
            sent!(200, made, &[], async |signed: &Signed| signed.update_code(&shop(), &package(&other, None)).await);
        assert_eq!(body, r#"{"Publish":true,"S3Bucket":"releases","S3Key":"shop/1.zip"}"#);
        let error = done.unwrap_err();
        assert!(!error.passes() && error.to_string().contains(&format!("has the SHA-256 {empty} and not {other}")), "{error}");
        // An answer without a SHA-256 is an error.
        let silent = r#"{"Version":"7"}"#;
        let (done, _) = sent!(200, silent, &[], async |signed: &Signed| signed.update_code(&shop(), &package(empty, None)).await);
        assert!(done.unwrap_err().passes());
    }

    #[tokio::test]
    async fn a_function_is_called() {
        let headers = &[("x-amz-function-error", "Unhandled")];
        let (called, sent) = sent!(200, "{}", headers, async |signed: &Signed| signed.invoke(&shop(), r#"{"hook":"pre"}"#).await);
        assert_eq!(called, Ok(Called { status: 200, error: Some("Unhandled".into()), body: "{}".into() }));
        assert_eq!(sent, ("POST".into(), "/invocations".into(), r#"{"hook":"pre"}"#.into()));
    }

    #[tokio::test]
    async fn what_errors_mean() {
        for (status, body, passing) in [
            (
                429,
                r#"{"Reason":"ReservedFunctionConcurrentInvocationLimitExceeded","Type":"User","message":"Rate Exceeded."}"#,
                true,
            ),
            (500, "<html>", true),
            (409, r#"{"Message":"The operation cannot be performed at this time. An update is in progress"}"#, true),
            (412, r#"{"Message":"The Revision Id provided does not match the latest Revision Id."}"#, true),
            (400, r#"{"__type":"ThrottlingException"}"#, true),
            (404, r#"{"__type":"ResourceNotFoundException","message":"Function not found: shop:7"}"#, false),
            (403, r#"{"Message":"User: x is not authorized to perform: lambda:UpdateAlias"}"#, false),
        ] {
            let (done, _) = sent!(status, body, &[], async |signed: &Signed| signed
                .update_alias(&shop(), ("live", "r"), &Route::to("7"))
                .await);
            let error = done.unwrap_err();
            assert_eq!(error.passes(), passing, "{status} {body}: {error}");
            if status == 404 {
                assert!(error.to_string().contains("ResourceNotFoundException: Function not found: shop:7"), "{error}");
            }
        }
    }
}
