//! Secrets from AWS Secrets Manager: one signed request. A client of its own for this one operation would cost every function more time
//! to build and to start than the request does.

use crate::error::refused;
use crate::{Aws, http, meter};
use aws_credential_types::Credentials;
use aws_credential_types::provider::ProvideCredentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use aws_smithy_runtime_api::client::http::{HttpConnector, SharedHttpConnector};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::http::Headers;
use aws_smithy_types::body::SdkBody;
use aws_types::SdkConfig;
use keelway_engine::ports::PortError;
use keelway_engine::secrets::{SecretText, Secrets};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};
use tokio::time::timeout;

const GET_SECRET: &str = "secretsmanager.GetSecretValue";
const SERVICE: &str = "secretsmanager";
/// The whole request, connection included.
const PATIENCE: Duration = Duration::from_secs(4);

/// What a request to Secrets Manager takes.
#[derive(Debug)]
pub(crate) struct SecretsManager {
    config: SdkConfig,
    connector: OnceLock<SharedHttpConnector>,
}

impl SecretsManager {
    pub(crate) fn new(config: &SdkConfig) -> Self {
        Self { config: config.clone(), connector: OnceLock::new() }
    }

    #[cfg(test)]
    pub(crate) fn with(config: &SdkConfig, connector: SharedHttpConnector) -> Self {
        Self { config: config.clone(), connector: OnceLock::from(connector) }
    }

    fn region(&self) -> &str {
        self.config.region().map_or("us-east-1", |region| region.as_ref())
    }

    fn endpoint(&self) -> String {
        let region = self.region();
        let domain = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
        let regional = || format!("https://{SERVICE}.{region}.{domain}");
        let endpoint = self.config.endpoint_url().map_or_else(regional, str::to_owned);
        format!("{}/", endpoint.trim_end_matches('/'))
    }

    async fn credentials(&self) -> Result<Credentials, PortError> {
        let provider = self.config.credentials_provider().ok_or_else(|| retry("there are no credentials"))?;
        provider.provide_credentials().await.map_err(|error| retry(format!("no credentials: {error}")))
    }

    /// A request for the secret, signed.
    fn request(&self, id: &str, credentials: Credentials, at: SystemTime) -> Result<HttpRequest, PortError> {
        let body = serde_json::json!({ "SecretId": id }).to_string();
        let url = self.endpoint();
        let headers = [("content-type", "application/x-amz-json-1.1"), ("x-amz-target", GET_SECRET)];
        let unsigned = SignableRequest::new("POST", &url, headers.into_iter(), SignableBody::Bytes(body.as_bytes()));
        let identity = credentials.into();
        let settings = v4::SigningParams::builder()
            .identity(&identity)
            .region(self.region())
            .name(SERVICE)
            .time(at)
            .settings(SigningSettings::default())
            .build();
        let signed = unsigned.map_err(|error| refused(GET_SECRET, error.to_string())).and_then(|unsigned| {
            let settings = settings.map_err(|error| refused(GET_SECRET, error.to_string()))?.into();
            sign(unsigned, &settings).map_err(|error| refused(GET_SECRET, error.to_string()))
        })?;
        let mut request = HttpRequest::new(SdkBody::from(body));
        request.set_method("POST").map_err(|error| refused(GET_SECRET, error.to_string()))?;
        request.set_uri(url.as_str()).map_err(|error| refused(GET_SECRET, error.to_string()))?;
        add(request.headers_mut(), headers.into_iter());
        add(request.headers_mut(), signed.output().headers());
        Ok(request)
    }

    async fn send(&self, request: HttpRequest) -> Result<(u16, Vec<u8>), PortError> {
        let connector = self.connector.get_or_init(http::connector);
        let answer: HttpResponse = connector.call(request).await.map_err(|error| retry(error.to_string()))?;
        let status = answer.status().as_u16();
        let body = aws_smithy_types::byte_stream::ByteStream::new(answer.into_body());
        let bytes = body.collect().await.map_err(|error| retry(error.to_string()))?;
        Ok((status, bytes.to_vec()))
    }
}

fn add<'a>(headers: &mut Headers, more: impl Iterator<Item = (&'a str, &'a str)>) {
    for (name, value) in more {
        headers.insert(name.to_owned(), value.to_owned());
    }
}

fn retry(reason: impl Into<String>) -> PortError {
    PortError::Retry { request: GET_SECRET, reason: reason.into() }
}

/// What an answer says. Its text appears in no error: it might be the secret.
fn read(status: u16, body: &[u8]) -> Result<Option<SecretText>, PortError> {
    let json: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    if status == 200 {
        let text = json["SecretString"].as_str().map(SecretText::new);
        return text.map(Some).ok_or_else(|| refused(GET_SECRET, "the secret has no text: store it as a string".to_owned()));
    }
    let code = json["__type"].as_str().unwrap_or_default().rsplit('#').next().unwrap_or_default();
    match (code, status) {
        ("ResourceNotFoundException", _) => Ok(None),
        (_, 429 | 500..) | ("ThrottlingException" | "ExpiredTokenException" | "RequestExpired", _) => {
            Err(retry(format!("{code} (status {status})")))
        }
        _ => Err(refused(GET_SECRET, format!("{code} (status {status})"))),
    }
}

impl Secrets for Aws {
    async fn secret(&self, name: &str) -> Result<Option<SecretText>, PortError> {
        let manager = &self.inner.secrets;
        let id = format!("{}/{name}", self.inner.names.secrets);
        let asking = async {
            let request = manager.request(&id, manager.credentials().await?, SystemTime::now())?;
            meter::request(GET_SECRET);
            let (status, body) = manager.send(request).await?;
            read(status, &body)
        };
        timeout(PATIENCE, asking).await.unwrap_or_else(|_| Err(retry("it took too long")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_config::{BehaviorVersion, Region};
    use aws_smithy_runtime_api::client::http::HttpConnectorFuture;
    use std::sync::{Arc, Mutex};
    use std::time::UNIX_EPOCH;

    #[derive(Debug)]
    struct Answers(u16, &'static str, Arc<Mutex<Vec<HttpRequest>>>);

    impl HttpConnector for Answers {
        fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
            self.2.lock().unwrap().push(request);
            HttpConnectorFuture::ready(Ok(HttpResponse::new(self.0.try_into().unwrap(), SdkBody::from(self.1))))
        }
    }

    fn config(region: &'static str) -> SdkConfig {
        SdkConfig::builder().behavior_version(BehaviorVersion::v2026_01_12()).region(Region::new(region)).build()
    }

    async fn answer(status: u16, body: &'static str) -> (Result<Option<SecretText>, PortError>, Vec<HttpRequest>) {
        let seen = Arc::new(Mutex::new(vec![]));
        let manager = SecretsManager::with(&config("eu-central-1"), SharedHttpConnector::new(Answers(status, body, seen.clone())));
        let credentials = Credentials::new("AKIDEXAMPLE", "wJalrXUtnFEMI", Some("session".into()), None, "test");
        let at = UNIX_EPOCH + Duration::from_secs(1_795_222_266);
        let request = manager.request("keelway/shop/git", credentials, at).unwrap();
        let (status, body) = manager.send(request).await.unwrap();
        let seen = std::mem::take(&mut *seen.lock().unwrap());
        (read(status, &body), seen)
    }

    #[tokio::test]
    async fn one_signed_request() {
        let (text, seen) = answer(200, r#"{"ARN":"arn","Name":"n","SecretString":"{\"token\":\"t\"}"}"#).await;
        assert_eq!(text.unwrap().unwrap().expose(), r#"{"token":"t"}"#);
        let [request] = &seen[..] else { panic!("{} requests", seen.len()) };
        let header = |name: &str| request.headers().get(name).unwrap_or_default().to_owned();
        assert_eq!((request.method(), request.uri()), ("POST", "https://secretsmanager.eu-central-1.amazonaws.com/"));
        assert_eq!(header("x-amz-target"), "secretsmanager.GetSecretValue");
        assert_eq!(request.body().bytes(), Some(&br#"{"SecretId":"keelway/shop/git"}"#[..]));
        let signed = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261121/eu-central-1/secretsmanager/aws4_request, \
                      SignedHeaders=content-type;host;x-amz-date;x-amz-security-token;x-amz-target, Signature=";
        assert!(header("authorization").starts_with(signed), "{}", header("authorization"));
        assert_eq!((header("x-amz-date"), header("x-amz-security-token")), ("20261121T005106Z".into(), "session".into()));
    }

    #[tokio::test]
    async fn what_other_answers_mean() {
        let missing = answer(400, r#"{"__type":"com.amazonaws#ResourceNotFoundException","Message":"no"}"#).await.0;
        assert_eq!(missing, Ok(None));
        let binary = answer(200, r#"{"SecretBinary":"c2VjcmV0"}"#).await.0.unwrap_err();
        assert!(!binary.passes() && !binary.to_string().contains("c2VjcmV0"), "{binary}");
        assert!(!answer(400, r#"{"__type":"AccessDeniedException"}"#).await.0.unwrap_err().passes());
        for (status, body) in [(500, "<html>"), (429, "{}"), (400, r#"{"__type":"ThrottlingException"}"#)] {
            assert!(answer(status, body).await.0.unwrap_err().passes(), "{status} {body}");
        }
    }

    #[test]
    fn each_partition_has_its_domain() {
        assert_eq!(SecretsManager::new(&config("cn-north-1")).endpoint(), "https://secretsmanager.cn-north-1.amazonaws.com.cn/");
        let local = config("eu-central-1").into_builder().endpoint_url("http://127.0.0.1:4566").build();
        assert_eq!(SecretsManager::new(&local).endpoint(), "http://127.0.0.1:4566/");
    }
}
