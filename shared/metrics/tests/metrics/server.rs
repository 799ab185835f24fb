//! A Prometheus that takes only documented requests.

use crate::END;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, Response, Uri};
use keelway_outgoing::Url;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use tokio::task::JoinHandle;

#[derive(Default)]
struct Knows {
    /// Status and body, by query.
    answers: BTreeMap<String, (u16, String)>,
    /// The headers that each request has; empty: it has none of that name.
    headers: Vec<(&'static str, String)>,
    asked: Vec<String>,
    /// The periods and steps that were asked for.
    ranges: BTreeSet<String>,
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

/// A matrix of series with these values, a minute apart.
pub fn matrix(series: &[&[&str]]) -> (u16, String) {
    let points = |values: &[&str]| -> Vec<Value> {
        values.iter().enumerate().map(|(place, value)| json!([1_795_222_079.75 + 60.0 * place as f64, value])).collect()
    };
    success("matrix", series.iter().map(|values| json!({"metric": {"job": "carts"}, "values": points(values)})).collect())
}

/// `start`, `end` and `step` in seconds, with no more than the 11,000 points that Prometheus answers with.
fn is_documented_range(form: &[(String, String)]) -> bool {
    let number = |place: usize, name: &str| -> Option<f64> {
        let (given, value) = form.get(place)?;
        (given == name).then(|| value.parse().ok())?
    };
    let (start, end, step) = (number(0, "start"), number(1, "end"), number(2, "step"));
    let Some(((start, end), step)) = start.zip(end).zip(step) else { return false };
    form.len() == 3 && start <= end && step > 0.0 && (end - start) / step <= 11_000.0
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
    let is_range = uri.path() == "/main/api/v1/query_range";
    if method != "POST" || uri.query().is_some() || !is_range && uri.path() != "/main/api/v1/query" {
        knows.wrong.push(format!("{method} {uri}"));
    }
    let form = Url::parse(&format!("http://form/?{body}")).unwrap();
    let form: Vec<(String, String)> = form.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
    let time = format!("{}.{:03}", END / 1000, END % 1000);
    let query = match &form[..] {
        [(first, query), (second, at)] if (first.as_str(), second.as_str(), at) == ("query", "time", &time) => query.clone(),
        [(first, query), rest @ ..] if is_range && first == "query" && is_documented_range(rest) => {
            knows.ranges.insert(rest.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" "));
            query.clone()
        }
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

    /// The periods and steps that were asked for.
    pub fn ranges(&self) -> Vec<String> {
        self.knows.lock().unwrap().ranges.iter().cloned().collect()
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
