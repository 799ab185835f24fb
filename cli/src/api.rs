//! The HTTP API as the commands call it: where it is, the token, retries, and refusals as problem details.

use crate::api_error::{ApiError, WAY_OUT};
use crate::error::CliError;
use crate::key::Key;
use keelway_wire::http::Problem;
use keelway_wire::signature::{self, Algorithm, Signed};
use reqwest::header::{ACCEPT, CONTENT_TYPE, IF_MATCH, LOCATION};
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::time::Duration;

/// How long to wait before each further attempt of a command; an executor has a rhythm of its own.
const PAUSES: [Duration; 2] = [Duration::from_millis(300), Duration::from_millis(1200)];
const CONNECT: Duration = Duration::from_secs(5);
const WHOLE: Duration = Duration::from_secs(30);

/// What a request carries.
pub enum Body<'a> {
    /// Nothing.
    None,
    /// JSON; with a revision, only if that one is in force.
    Json(&'a Value, Option<&'a str>),
    /// Manifests; with a revision, only if that one is in force.
    Manifest(&'a str, Option<&'a str>),
}

/// What shows that a request is allowed.
#[derive(Clone)]
enum Authority {
    Token(String),
    /// The token of an attempt of a deployment.
    Bearer(String),
    Key(Key),
}

/// The API behind its base address.
#[derive(Clone)]
pub struct Api {
    http: reqwest::Client,
    base: Url,
    authority: Authority,
    pauses: &'static [Duration],
}

/// A setting that is there and not blank.
fn given(text: Option<&str>) -> Option<String> {
    text.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
}

fn missing(what: &str, flag: &str, variable: &str) -> CliError {
    CliError::Usage(format!("{what} is not known: {WAY_OUT}, or set {variable}, or give {flag}, or use keelway login"))
}

impl Api {
    /// From `--api` or `KEELWAY_API`, and `--token` or `KEELWAY_TOKEN`.
    ///
    /// # Errors
    /// What is missing or not an address, and how to set it.
    pub fn new(api: Option<&str>, token: Option<&str>) -> Result<Self, CliError> {
        let api = given(api).ok_or_else(|| missing("the API's address", "--api", "KEELWAY_API"))?;
        let token = given(token).ok_or_else(|| missing("the API's token", "--token", "KEELWAY_TOKEN"))?;
        Self::with(&api, Authority::Token(token))
    }

    /// For requests that are signed with a key, and have no token.
    ///
    /// # Errors
    /// As [`Api::new`].
    pub fn signed(api: Option<&str>, key: Key) -> Result<Self, CliError> {
        let api = given(api).ok_or_else(|| missing("the API's address", "--api", "KEELWAY_API"))?;
        Self::with(&api, Authority::Key(key))
    }

    /// With the token of an attempt of a deployment alone.
    ///
    /// # Errors
    /// When the address is none.
    pub fn with_attempt(api: &str, token: &str) -> Result<Self, CliError> {
        Self::with(api, Authority::Bearer(token.to_owned()))
    }

    fn with(api: &str, authority: Authority) -> Result<Self, CliError> {
        let base = base(api)?;
        let builder = reqwest::Client::builder().connect_timeout(CONNECT).timeout(WHOLE);
        let builder = builder.user_agent(concat!("keelway/", env!("CARGO_PKG_VERSION")));
        // Where an answer points to is no address that anybody gave the token for.
        let builder = builder.redirect(reqwest::redirect::Policy::none());
        // A proxy set for the world outside cannot reach this machine's loopback.
        let builder = if is_loopback(&base) { builder.no_proxy() } else { builder };
        let http = builder.build().map_err(|error| {
            CliError::Failed(format!("the HTTP client does not start: {}; look at this machine's certificates", innermost(&error)))
        })?;
        Ok(Self { http, base, authority, pauses: &PAUSES })
    }

    /// One attempt per call: for those who come again anyway.
    pub fn without_retries(self) -> Self {
        Self { pauses: &[], ..self }
    }

    /// For what a deployer says: with the token of its attempt, and no other.
    pub fn bearing(&self, token: &str) -> Self {
        Self { authority: Authority::Bearer(token.to_owned()), ..self.clone() }
    }

    /// `PUT` of a manifest.
    ///
    /// # Errors
    /// As [`Api::call`].
    pub async fn put<T: DeserializeOwned>(&self, path: &[&str], query: &[(&str, &str)], body: &Value) -> Result<T, ApiError> {
        self.call(Method::PUT, path, query, Body::Json(body, None)).await
    }

    /// The base address, with `/v1`.
    pub fn base(&self) -> &str {
        self.base.as_str()
    }

    /// `GET`; empty parameters are left out.
    ///
    /// # Errors
    /// As [`Api::call`].
    pub async fn get<T: DeserializeOwned>(&self, path: &[&str], query: &[(&str, &str)]) -> Result<T, ApiError> {
        self.call(Method::GET, path, query, Body::None).await
    }

    /// `POST` of JSON.
    ///
    /// # Errors
    /// As [`Api::call`].
    pub async fn post<T: DeserializeOwned>(&self, path: &[&str], body: &Value) -> Result<T, ApiError> {
        self.call(Method::POST, path, &[], Body::Json(body, None)).await
    }

    /// `GET` of a text.
    ///
    /// # Errors
    /// As [`Api::call`].
    pub async fn text(&self, path: &[&str]) -> Result<String, ApiError> {
        let bytes = self.bytes(Method::GET, &self.url(path, &[]), &Body::None).await?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Asks, and asks again where that may help: every request of this client is the same request when sent twice. An empty answer
    /// is read like `null`.
    ///
    /// # Errors
    /// No answer, a refusal, or an answer that is not of this API.
    pub async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, &str)],
        body: Body<'_>,
    ) -> Result<T, ApiError> {
        let url = self.url(path, query);
        let bytes = self.bytes(method, &url, &body).await?;
        let text: &[u8] = if bytes.is_empty() { b"null" } else { &bytes };
        let odd =
            |error: serde_json::Error| ApiError::Odd { url: without_query(&url), status: StatusCode::OK, text: error.to_string() };
        serde_json::from_slice(text).map_err(odd)
    }

    async fn bytes(&self, method: Method, url: &Url, body: &Body<'_>) -> Result<Vec<u8>, ApiError> {
        let mut pauses = self.pauses.iter();
        // What is sent again asks for nothing more.
        let key = matches!(method, Method::POST | Method::PUT).then(|| uuid::Uuid::now_v7().to_string());
        loop {
            match self.once(&method, url, body, key.as_deref()).await {
                Err(error) if error.is_transient() => match pauses.next() {
                    Some(pause) => tokio::time::sleep(*pause).await,
                    None => return Err(error),
                },
                done => return done,
            }
        }
    }

    fn url(&self, path: &[&str], query: &[(&str, &str)]) -> Url {
        let mut url = self.base.clone();
        // The base was checked to be one that can have a path.
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        let given: Vec<_> = query.iter().filter(|(_, value)| !value.is_empty()).collect();
        if !given.is_empty() {
            url.query_pairs_mut().extend_pairs(given.iter().map(|(name, value)| (*name, *value)));
        }
        url
    }

    async fn once(&self, method: &Method, url: &Url, body: &Body<'_>, key: Option<&str>) -> Result<Vec<u8>, ApiError> {
        let unreachable = |error: reqwest::Error| {
            let reason = if error.is_timeout() { "no answer in time".to_owned() } else { innermost(&error) };
            ApiError::Unreachable { url: self.base.to_string(), reason }
        };
        let request = self.http.request(method.clone(), url.clone());
        let request = request.header(ACCEPT, "application/json, application/problem+json");
        let (request, sent) = match body {
            Body::None => (request, String::new()),
            Body::Json(json, replaces) => (if_match(request, *replaces).header(CONTENT_TYPE, "application/json"), json.to_string()),
            Body::Manifest(text, replaces) => {
                (if_match(request, *replaces).header(CONTENT_TYPE, "application/yaml"), (*text).to_owned())
            }
        };
        let request = key.iter().fold(request, |request, key| request.header("idempotency-key", *key));
        let request = self.authorised(request, (method, url, &sent));
        let request = if sent.is_empty() { request } else { request.body(sent) };
        let response = request.send().await.map_err(unreachable)?;
        let status = response.status();
        if let Some(to) = elsewhere(url, &response) {
            return Err(ApiError::Elsewhere { url: without_query(url), status, to });
        }
        let bytes = response.bytes().await.map_err(unreachable)?;
        let odd = |text: String| ApiError::Odd { url: without_query(url), status, text };
        if status.is_success() {
            return Ok(bytes.to_vec());
        }
        match serde_json::from_slice::<Problem>(&bytes) {
            Ok(problem) => Err(ApiError::Refused(Box::new(Problem { status: status.as_u16(), ..problem }))),
            Err(_) if bytes.is_empty() => Err(odd("an empty body".into())),
            Err(_) => Err(odd(crate::output::one_line(&String::from_utf8_lossy(&bytes), 200))),
        }
    }
}

impl Api {
    /// With the token, or with a signature of its own: a nonce is good for one request.
    fn authorised(&self, request: RequestBuilder, (method, url, body): (&Method, &Url, &str)) -> RequestBuilder {
        let key = match &self.authority {
            Authority::Token(token) => return request.header("x-token", token),
            Authority::Bearer(token) => return request.bearer_auth(token),
            Authority::Key(key) => key,
        };
        // What comes before `/v1` is the way to the API, which does not see it.
        let before = self.base.path().strip_suffix("/v1").unwrap_or_default();
        let path = url.path().strip_prefix(before).unwrap_or(url.path());
        let query = url.query().unwrap_or_default();
        let installation = key.installation();
        let asked = signature::Request { installation, method: method.as_str(), path, query, body: body.as_bytes() };
        let nonce = uuid::Uuid::now_v7().to_string();
        let signed = Signed::new(&asked, key.parts(), Algorithm::default(), crate::clock::now(), &nonce);
        signed.headers().into_iter().fold(request, |request, (name, value)| request.header(name, value))
    }
}

/// Requires a revision to be in force.
fn if_match(request: RequestBuilder, revision: Option<&str>) -> RequestBuilder {
    revision.iter().fold(request, |request, revision| request.header(IF_MATCH, format!("\"{revision}\"")))
}

/// The address with `/v1` once, whether it was given with or without.
fn base(api: &str) -> Result<Url, CliError> {
    let usage =
        |why: &str| CliError::Usage(format!("the API's address {api:?} {why}: write it like https://example.org/, or {WAY_OUT}"));
    let mut url = Url::parse(api).map_err(|_| usage("is not a URL"))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(usage("is not an http or https URL"));
    }
    if url.scheme() == "http" && !is_loopback(&url) {
        return Err(CliError::Usage(format!(
            "the API's address {api:?} is not https: whoever is on the way there could read the token; only addresses of this machine \
             (localhost, 127.0.0.1) may begin with http://"
        )));
    }
    url.set_query(None);
    url.set_fragment(None);
    let path = url.path().trim_end_matches('/');
    let path = format!("{}/v1", path.strip_suffix("/v1").unwrap_or(path).trim_end_matches('/'));
    url.set_path(&path);
    Ok(url)
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.ends_with(".localhost") || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}

/// Where a redirect points to.
fn elsewhere(url: &Url, response: &Response) -> Option<String> {
    let location = response.headers().get(LOCATION).filter(|_| response.status().is_redirection())?;
    let location = String::from_utf8_lossy(location.as_bytes());
    Some(url.join(&location).map_or_else(|_| crate::output::one_line(&location, 200), |url| without_query(&url)))
}

fn without_query(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.to_string()
}

/// The last cause of an error: what the system said, without the layers in between and the system's number for it.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    let text = last.to_string();
    text.split(" (os error").next().unwrap_or_default().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_has_v1_once() {
        for (given, expected) in [
            ("http://127.0.0.1:4566/_aws/lambda-url/abc", "http://127.0.0.1:4566/_aws/lambda-url/abc/v1"),
            ("http://127.0.0.1:4566/_aws/lambda-url/abc/", "http://127.0.0.1:4566/_aws/lambda-url/abc/v1"),
            ("https://abc.lambda-url.eu-west-1.on.aws", "https://abc.lambda-url.eu-west-1.on.aws/v1"),
            ("https://x.example/v1/", "https://x.example/v1"),
            ("http://[::1]:4566", "http://[::1]:4566/v1"),
        ] {
            assert_eq!(base(given).unwrap().as_str(), expected);
        }
        for bad in
            ["localhost:80", "ftp://x", "nonsense", "http://keelway.example", "http://localhost.example", "http://10.0.0.7:4566"]
        {
            let error = base(bad).unwrap_err();
            assert!(matches!(error, CliError::Usage(_)), "{bad}");
        }
    }

    #[test]
    fn parts_of_a_path_cannot_leave_it() {
        let api = Api::new(Some("http://127.0.0.1:1/x"), Some("t")).unwrap();
        let url = api.url(&["project", "a/b", "approval", "c?d"], &[("stage", ""), ("q", "a&b")]);
        assert_eq!(url.as_str(), "http://127.0.0.1:1/x/v1/project/a%2Fb/approval/c%3Fd?q=a%26b");
    }

    #[test]
    fn what_is_missing_is_said_with_the_way_out() {
        let text = Api::new(None, Some("t")).err().and_then(|error| error.text()).unwrap();
        assert_eq!(
            text,
            "the API's address is not known: run `eval \"$(make env)\"` where the stack is up, or set KEELWAY_API, or give --api, or use keelway login"
        );
        assert!(Api::new(Some("https://x"), Some(" ")).is_err());
    }
}
