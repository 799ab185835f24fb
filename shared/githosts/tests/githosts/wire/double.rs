//! A server that expects certain requests in a certain order, and answers as it is told. Whatever else is asked fails the test.

use crate::here;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, Response, Uri};
use keelway_githosts::{Api, Change, Credentials, Form, Host, HostError, Merge, Repository};
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use tokio::task::JoinHandle;

/// The token that every test uses.
pub const TOKEN: &str = "t0p-s3cret";
pub const BASE: &str = "b000000000000000000000000000000000000000";
pub const HEAD: &str = "a000000000000000000000000000000000000000";
pub const OTHER: &str = "c000000000000000000000000000000000000000";
pub const BRANCH: &str = "promotion/staging/0123456789abcdef";
pub const OLD: &str = "tag: v1 # {\"$promotion\": \"shop:carts:staging\"}\n";
pub const NEW: &str = "tag: v2 # {\"$promotion\": \"shop:carts:staging\"}\n";

/// One request that is expected, and its answer.
pub struct Step {
    request: String,
    body: Option<Value>,
    fragments: Vec<String>,
    headers: Vec<(&'static str, String)>,
    status: u16,
    answer: Vec<u8>,
    answer_headers: Vec<(&'static str, String)>,
}

/// A request like `GET /path?query`; the path as it is sent, the query decoded. Answered with 200 and nothing.
pub fn on(request: impl Into<String>) -> Step {
    Step {
        request: request.into(),
        body: None,
        fragments: vec![],
        headers: vec![],
        status: 200,
        answer: vec![],
        answer_headers: vec![],
    }
}

impl Step {
    /// It has exactly this JSON body.
    pub fn with(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }
    /// Its body contains this text.
    pub fn containing(mut self, text: &str) -> Self {
        self.fragments.push(text.to_owned());
        self
    }
    /// It has this header; empty: it does not have it.
    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }
    pub fn gives(mut self, status: u16, answer: Value) -> Self {
        self.status = status;
        self.answer = answer.to_string().into_bytes();
        self
    }
    pub fn gives_bytes(mut self, answer: impl Into<Vec<u8>>) -> Self {
        self.answer = answer.into();
        self
    }
    pub fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }
    pub fn answer_header(mut self, name: &'static str, value: &str) -> Self {
        self.answer_headers.push((name, value.to_owned()));
        self
    }
}

#[derive(Default)]
struct Script {
    steps: VecDeque<Step>,
    wrong: Vec<String>,
    base: String,
}

type Shared = Arc<Mutex<Script>>;

pub struct Double {
    script: Shared,
    address: String,
    server: JoinHandle<()>,
}

impl Drop for Double {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn handle(State(script): State<Shared>, method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Response<Body> {
    let mut script = script.lock().unwrap();
    let query = uri.query().map(|query| format!("?{}", decode(query))).unwrap_or_default();
    let request = format!("{method} {}{query}", uri.path().strip_prefix(script.base.as_str()).unwrap_or(uri.path()));
    let Some(step) = script.steps.pop_front() else {
        script.wrong.push(format!("unexpected: {request}"));
        return Response::builder().status(418).body(Body::empty()).unwrap();
    };
    let text = String::from_utf8_lossy(&body).into_owned();
    let mut wrong = vec![];
    if request != step.request {
        wrong.push(format!("expected {}\n     got {request}", step.request));
    }
    if let Some(expected) = &step.body {
        let found: Value = serde_json::from_slice(&body).unwrap_or_default();
        if found != *expected {
            wrong.push(format!("{request}: expected the body {expected}\n     got {found}"));
        }
    } else if step.fragments.is_empty() && !body.is_empty() {
        wrong.push(format!("{request}: unexpected body {text}"));
    }
    for fragment in step.fragments.iter().filter(|fragment| !text.contains(*fragment)) {
        wrong.push(format!("{request}: {fragment:?} is not in the body {text}"));
    }
    for (name, value) in &step.headers {
        let found = headers.get(*name).map(|value| value.to_str().unwrap()).unwrap_or_default();
        if found != value {
            wrong.push(format!("{request}: expected {name}: {value}\n     got {found}"));
        }
    }
    script.wrong.extend(wrong);
    let mut response = Response::builder().status(step.status);
    for (name, value) in step.answer_headers {
        response = response.header(name, value);
    }
    response.body(Body::from(step.answer)).unwrap()
}

fn decode(query: &str) -> String {
    percent_encoding::percent_decode_str(&query.replace('+', " ")).decode_utf8_lossy().into_owned()
}

impl Double {
    /// A server whose API has this base path; the requests of the steps do not repeat it.
    pub async fn start(base: &str, steps: impl IntoIterator<Item = Step>) -> Self {
        let script = Script { steps: steps.into_iter().collect(), base: base.to_owned(), ..Script::default() };
        let script = Arc::new(Mutex::new(script));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(handle).with_state(script.clone());
        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { script, address, server }
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// Expects more.
    pub fn then(&self, steps: impl IntoIterator<Item = Step>) {
        self.script.lock().unwrap().steps.extend(steps);
    }

    /// Everything that was expected has happened, and nothing else.
    #[track_caller]
    pub fn done(&self) {
        let script = self.script.lock().unwrap();
        let left: Vec<&str> = script.steps.iter().map(|step| step.request.as_str()).collect();
        assert!(script.wrong.is_empty() && left.is_empty(), "{}\nnot asked: {left:?}", script.wrong.join("\n"));
    }
}

/// A double of a form, a client for it and a repository there.
pub struct Scene {
    pub double: Double,
    pub host: Host,
    pub repository: Repository,
}

pub async fn scene(form: Form, steps: impl IntoIterator<Item = Step>) -> Scene {
    let (base, path) = match form {
        Form::GitHub => ("/api/v3", "acme/shop"),
        Form::Gitea => ("/api/v1", "acme/shop"),
        Form::GitLab => ("/api/v4", "acme/sub/shop"),
        Form::BitbucketServer => ("/rest/api/1.0", "scm/ACME/shop"),
    };
    let double = Double::start(base, steps).await;
    let repository = Repository::parse(form, &format!("{}/{path}.git", double.address())).unwrap();
    let credentials = Credentials::parse(&format!(r#"{{"token": "{TOKEN}"}}"#)).unwrap();
    let host = Host::new(&Api::of(&repository), &credentials, &here()).unwrap();
    Scene { double, host, repository }
}

impl Scene {
    /// Reads pull request 7, and merges it if its newest commit is this one.
    pub async fn merge(&self, head: &str) -> Result<Merge, HostError> {
        let request = self.host.get(&self.repository, 7).await?.unwrap();
        self.host.merge(&self.repository, &request, head).await
    }

    pub fn change(&self) -> Change {
        Change {
            repository: self.repository.clone(),
            base: "main".to_owned(),
            head: BRANCH.to_owned(),
            marker: "shop:carts:staging".to_owned(),
            version: "v2".to_owned(),
            title: "Promote shop/carts in staging to v2".to_owned(),
            body: "!!! DO NOT EDIT !!!".to_owned(),
            message: "Promote".to_owned(),
            first: false,
        }
    }
}

/// Checks what every message promises.
#[track_caller]
pub fn told(error: &HostError) {
    assert!(error.message.contains("127.0.0.1"), "does not name the host: {error}");
    assert!(!error.message.contains(TOKEN), "contains the token: {error}");
}

/// An archive as hosts make it.
pub fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let gz = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
    let mut tar = tar::Builder::new(gz);
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(if path.ends_with("run.yaml") { 0o775 } else { 0o664 });
        tar.append_data(&mut header, path, content.as_bytes()).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

pub fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}
