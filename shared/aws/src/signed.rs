//! Single signed requests, for services of which Keelway needs few operations. Building and starting a client for each of them
//! would cost every function more time than the requests do.

use crate::error::{refused, retry};
use crate::{http, meter};
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
use std::future::Future;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};
use tokio::time::timeout;

/// One request.
#[derive(Debug)]
pub(crate) struct Ask<'a> {
    /// The name for the meter and for errors.
    pub name: &'static str,
    /// The name of the service in its host name and in the signature.
    pub service: &'static str,
    /// The region. `None`: the installation's.
    pub region: Option<&'a str>,
    /// The HTTP method.
    pub method: &'static str,
    /// Path and query, percent-encoded, with a leading slash.
    pub path: String,
    /// Headers besides those of the signature.
    pub headers: &'a [(&'static str, &'static str)],
    pub body: String,
    /// The timeout of the whole request, connection included.
    pub patience: Duration,
}

/// The answer of a service.
#[derive(Debug)]
pub(crate) struct Answered {
    pub status: u16,
    pub headers: Headers,
    pub body: Vec<u8>,
}

/// The state that requests to all services share.
#[derive(Debug)]
pub(crate) struct Signed {
    config: SdkConfig,
    connector: OnceLock<SharedHttpConnector>,
}

impl Signed {
    pub(crate) fn new(config: &SdkConfig) -> Self {
        Self { config: config.clone(), connector: OnceLock::new() }
    }

    #[cfg(test)]
    pub(crate) fn with(config: &SdkConfig, connector: SharedHttpConnector) -> Self {
        Self { config: config.clone(), connector: OnceLock::from(connector) }
    }

    fn region<'a>(&'a self, ask: &Ask<'a>) -> &'a str {
        ask.region.unwrap_or_else(|| self.config.region().map_or("us-east-1", |region| region.as_ref()))
    }

    fn url(&self, ask: &Ask<'_>) -> String {
        let (service, region) = (ask.service, self.region(ask));
        let domain = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
        // ECR has this prefix in its host name only.
        let prefix = if service == "ecr" { "api." } else { "" };
        let regional = || format!("https://{prefix}{service}.{region}.{domain}");
        let endpoint = self.config.endpoint_url().map_or_else(regional, str::to_owned);
        format!("{}{}", endpoint.trim_end_matches('/'), ask.path)
    }

    /// The function's own credentials.
    pub(crate) async fn credentials(&self, name: &'static str) -> Result<Credentials, PortError> {
        let provider = self.config.credentials_provider().ok_or_else(|| retry(name, "there are no credentials"))?;
        provider.provide_credentials().await.map_err(|error| retry(name, format!("no credentials: {error}")))
    }

    /// The headers that sign a request to a URL.
    pub(crate) fn signature(
        &self,
        (ask, url): (&Ask<'_>, &str),
        credentials: Credentials,
        at: SystemTime,
    ) -> Result<Vec<(String, String)>, PortError> {
        let bad = |error: &dyn std::fmt::Display| refused(ask.name, error.to_string());
        let body = SignableBody::Bytes(ask.body.as_bytes());
        let unsigned = SignableRequest::new(ask.method, url, ask.headers.iter().copied(), body).map_err(|error| bad(&error))?;
        let identity = credentials.into();
        let settings = v4::SigningParams::builder()
            .identity(&identity)
            .region(self.region(ask))
            .name(ask.service)
            .time(at)
            .settings(SigningSettings::default())
            .build()
            .map_err(|error| bad(&error))?
            .into();
        let signed = sign(unsigned, &settings).map_err(|error| bad(&error))?;
        Ok(signed.output().headers().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// Signs a request.
    pub(crate) fn request(&self, ask: &Ask<'_>, credentials: Credentials, at: SystemTime) -> Result<HttpRequest, PortError> {
        let bad = |error: &dyn std::fmt::Display| refused(ask.name, error.to_string());
        let url = self.url(ask);
        let signature = self.signature((ask, &url), credentials, at)?;
        let mut request = HttpRequest::new(SdkBody::from(ask.body.clone()));
        request.set_method(ask.method).map_err(|error| bad(&error))?;
        request.set_uri(url.as_str()).map_err(|error| bad(&error))?;
        add(request.headers_mut(), ask.headers.iter().copied());
        add(request.headers_mut(), signature.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        Ok(request)
    }

    /// Sends a signed request.
    pub(crate) async fn send(&self, name: &'static str, request: HttpRequest) -> Result<Answered, PortError> {
        let connector = self.connector.get_or_init(http::connector);
        let answer: HttpResponse = connector.call(request).await.map_err(|error| retry(name, error.to_string()))?;
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        let body = aws_smithy_types::byte_stream::ByteStream::new(answer.into_body());
        let bytes = body.collect().await.map_err(|error| retry(name, error.to_string()))?;
        Ok(Answered { status, headers, body: bytes.to_vec() })
    }

    /// Signs a request, sends it, and waits for the answer.
    pub(crate) async fn ask(&self, ask: &Ask<'_>) -> Result<Answered, PortError> {
        self.ask_as(ask, self.credentials(ask.name)).await
    }

    /// The same with other credentials.
    pub(crate) async fn ask_as(
        &self,
        ask: &Ask<'_>,
        credentials: impl Future<Output = Result<Credentials, PortError>> + Send,
    ) -> Result<Answered, PortError> {
        let asking = async {
            let request = self.request(ask, credentials.await?, SystemTime::now())?;
            meter::request(ask.name);
            self.send(ask.name, request).await
        };
        timeout(ask.patience, asking).await.unwrap_or_else(|_| Err(retry(ask.name, "it took too long")))
    }
}

fn add<'a>(headers: &mut Headers, more: impl Iterator<Item = (&'a str, &'a str)>) {
    for (name, value) in more {
        headers.insert(name.to_owned(), value.to_owned());
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use aws_smithy_runtime_api::client::behavior_version::BehaviorVersion;
    use aws_smithy_runtime_api::client::http::HttpConnectorFuture;
    use aws_types::region::Region;
    use std::sync::{Arc, Mutex};
    use std::time::UNIX_EPOCH;

    /// Gives every request the same answer, and records the requests.
    #[derive(Debug)]
    struct Answers(u16, &'static [(&'static str, &'static str)], &'static str, Arc<Mutex<Vec<HttpRequest>>>);

    impl HttpConnector for Answers {
        fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
            self.3.lock().unwrap().push(request);
            let mut answer = HttpResponse::new(self.0.try_into().unwrap(), SdkBody::from(self.2));
            add(answer.headers_mut(), self.1.iter().copied());
            HttpConnectorFuture::ready(Ok(answer))
        }
    }

    fn config(region: &'static str) -> SdkConfig {
        let credentials = Credentials::new("AKIDEXAMPLE", "wJalrXUtnFEMI", Some("session".into()), None, "test");
        let provider = aws_credential_types::provider::SharedCredentialsProvider::new(credentials);
        let config = SdkConfig::builder().behavior_version(BehaviorVersion::v2026_01_12()).region(Region::new(region));
        config.credentials_provider(provider).build()
    }

    /// A client whose requests get this answer, and the recorded requests.
    pub(crate) fn answering(
        status: u16,
        headers: &'static [(&'static str, &'static str)],
        body: &'static str,
    ) -> (Signed, Arc<Mutex<Vec<HttpRequest>>>) {
        let seen = Arc::new(Mutex::new(vec![]));
        (through(Answers(status, headers, body, seen.clone())), seen)
    }

    /// A client of this connector.
    pub(crate) fn through(connector: impl HttpConnector + 'static) -> Signed {
        Signed::with(&config("eu-central-1"), SharedHttpConnector::new(connector))
    }

    fn ask(path: &str) -> Ask<'_> {
        Ask {
            name: "test",
            service: "secretsmanager",
            region: None,
            method: "POST",
            path: path.to_owned(),
            headers: &[("content-type", "application/x-amz-json-1.1"), ("x-amz-target", "secretsmanager.GetSecretValue")],
            body: "{}".into(),
            patience: Duration::from_secs(1),
        }
    }

    #[tokio::test]
    async fn a_signed_request() {
        let (signed, _) = answering(200, &[], "");
        let credentials = signed.credentials("test").await.unwrap();
        let at = UNIX_EPOCH + Duration::from_secs(1_795_222_266);
        let request = signed.request(&ask("/"), credentials, at).unwrap();
        let header = |name: &str| request.headers().get(name).unwrap_or_default().to_owned();
        assert_eq!((request.method(), request.uri()), ("POST", "https://secretsmanager.eu-central-1.amazonaws.com/"));
        let expected = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261121/eu-central-1/secretsmanager/aws4_request, \
                        SignedHeaders=content-type;host;x-amz-date;x-amz-security-token;x-amz-target, Signature=";
        assert!(header("authorization").starts_with(expected), "{}", header("authorization"));
        assert_eq!((header("x-amz-date"), header("x-amz-security-token")), ("20261121T005106Z".into(), "session".into()));
    }

    #[test]
    fn each_partition_has_its_domain_and_a_request_may_go_to_another_region() {
        let url = |config: &SdkConfig, ask: &Ask<'_>| Signed::new(config).url(ask);
        assert_eq!(url(&config("cn-north-1"), &ask("/")), "https://secretsmanager.cn-north-1.amazonaws.com.cn/");
        let elsewhere = Ask { region: Some("eu-west-1"), ..ask("/a") };
        assert_eq!(url(&config("eu-central-1"), &elsewhere), "https://secretsmanager.eu-west-1.amazonaws.com/a");
        let local = config("eu-central-1").into_builder().endpoint_url("http://127.0.0.1:4566/").build();
        assert_eq!(url(&local, &elsewhere), "http://127.0.0.1:4566/a");
    }
}
