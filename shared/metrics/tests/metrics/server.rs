//! A Prometheus that takes only documented requests.

use crate::END;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, Response, Uri};
use keelway_outgoing::Url;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::task::JoinHandle;

#[derive(Default)]
struct Knows {
    /// Status and body, by query.
    answers: BTreeMap<String, (u16, String)>,
    /// The headers that each request has; empty: it has none of that name.
    headers: Vec<(&'static str, String)>,
    asked: Vec<String>,
    wrong: Vec<String>,
}

pub struct Server {
    knows: Arc<Mutex<Knows>>,
    pub url: String,
    server: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// A success with data of this kind.
pub fn success(kind: &str, result: Value) -> (u16, String) {
    (200, json!({"status": "success", "data": {"resultType": kind, "result": result}}).to_string())
}

/// A vector with one sample.
pub fn sample(value: &str) -> (u16, String) {
    success("vector", json!([{"metric": {"job": "carts"}, "value": [1_795_222_319.75, value]}]))
}

/// A refusal as Prometheus writes it.
pub fn error(status: u16, kind: &str, words: &str) -> (u16, String) {
    (status, json!({"status": "error", "errorType": kind, "error": words}).to_string())
}

async fn handle(
    State(knows): State<Arc<Mutex<Knows>>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let mut knows = knows.lock().unwrap();
    let body = String::from_utf8(body.to_vec()).unwrap();
    if (method.as_str(), uri.to_string().as_str()) != ("POST", "/main/api/v1/query") {
        knows.wrong.push(format!("{method} {uri}"));
    }
    let form = Url::parse(&format!("http://form/?{body}")).unwrap();
    let form: Vec<(String, String)> = form.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
    let time = format!("{}.{:03}", END / 1000, END % 1000);
    let query = match &form[..] {
        [(first, query), (second, at)] if (first.as_str(), second.as_str(), at) == ("query", "time", &time) => query.clone(),
        _ => {
            knows.wrong.push(format!("the form {form:?}"));
            String::new()
        }
    };
    let fixed = [("content-type", "application/x-www-form-urlencoded".to_owned()), ("accept", "application/json".to_owned())];
    for (name, value) in fixed.into_iter().chain(knows.headers.clone()) {
        let found = headers.get(name).map(|found| found.to_str().unwrap()).unwrap_or_default();
        if found != value {
            knows.wrong.push(format!("{name}: {found:?} and not {value:?}"));
        }
    }
    knows.asked.push(query.clone());
    let (status, body) = knows.answers.get(&query).cloned().unwrap_or_else(|| (418, format!("nothing is known of {query:?}")));
    Response::builder().status(status).header("content-type", "application/json").body(Body::from(body)).unwrap()
}

impl Server {
    pub async fn start(answers: impl IntoIterator<Item = (&'static str, (u16, String))>) -> Self {
        let answers = answers.into_iter().map(|(query, answer)| (query.to_owned(), answer)).collect();
        let knows = Knows { answers, headers: vec![("authorization", String::new())], ..Knows::default() };
        let knows = Arc::new(Mutex::new(knows));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/main", listener.local_addr().unwrap());
        let router = Router::new().fallback(handle).with_state(knows.clone());
        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { knows, url, server }
    }

    /// Each request has these headers.
    pub fn wants(&self, headers: &[(&'static str, &str)]) {
        self.knows.lock().unwrap().headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    }

    /// The queries that were asked, all in requests as documented.
    #[track_caller]
    pub fn asked(&self) -> Vec<String> {
        let mut knows = self.knows.lock().unwrap();
        assert!(knows.wrong.is_empty(), "{:#?}", knows.wrong);
        knows.asked.sort();
        knows.asked.clone()
    }
}
