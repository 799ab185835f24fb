//! Connections and answers: routing, faults, the log of calls.

use crate::faults::{Action, Faults, instead, spoil};
use crate::forms;
use crate::http::{Answer, Request};
use crate::model::Form;
use crate::refused::Refused;
use crate::store::Store;
use crate::webhooks::{Delivery, Letter, letters};
use crate::{clone, control, web};
use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::response::Response;
use serde::Serialize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::sync::oneshot;

/// The largest body, in bytes.
const LARGEST: usize = 64 << 20;

/// A request to a form, with or without an answer.
#[derive(Debug, Clone, Serialize)]
pub struct Call {
    /// Milliseconds since 1970.
    pub at: u64,
    /// `GET`, `POST`, …
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// The status of the answer. 0: the connection was closed instead.
    pub status: u16,
    /// The form of the path.
    pub form: Form,
    /// Whether it changed something.
    pub wrote: bool,
    /// The fault that has hit it.
    pub fault: Option<String>,
}

/// A request that a correct client does not make.
#[derive(Debug, Clone, Serialize)]
pub struct Violation {
    /// `GET`, `POST`, …
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// The reason.
    pub why: String,
}

/// The state that requests, people and tests share.
pub(crate) struct Shared {
    store: Mutex<Store>,
    pub faults: Mutex<Faults>,
    pub calls: Mutex<Vec<Call>>,
    pub violations: Mutex<Vec<Violation>>,
    pub deliveries: Mutex<Vec<Delivery>>,
    /// `http://host:port`
    pub origin: String,
    /// Whether calls are also printed.
    pub log: bool,
    letters: UnboundedSender<Letter>,
}

impl Shared {
    pub fn new(store: Store, origin: String, log: bool, letters: UnboundedSender<Letter>) -> Self {
        let (faults, calls, violations, deliveries) = Default::default();
        Self { store: Mutex::new(store), faults, calls, violations, deliveries, origin, log, letters }
    }

    /// Changes the store, saves it, and sends the webhooks.
    pub fn with<T>(&self, act: impl FnOnce(&mut Store) -> Result<T, Refused>) -> Result<T, Refused> {
        let mut store = lock(&self.store);
        let done = act(&mut store);
        self.settle(&mut store)?;
        done
    }

    /// Saves the store and queues the webhooks. Returns whether anything had changed.
    fn settle(&self, store: &mut Store) -> Result<bool, Refused> {
        let form = store.form;
        for repository in store.all_mut() {
            for letter in letters(repository, form, &self.origin)? {
                // The receiver is gone: the host is being stopped.
                drop(self.letters.send(letter));
            }
        }
        let before = store.writes;
        store.save()?;
        Ok(store.writes > before)
    }
}

/// Ignores the panic of another request.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The form of a path, and the number of segments of its base.
fn form_of(path: &[String]) -> Option<(Form, usize)> {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match path.as_slice() {
        ["api", "v3", ..] => Some((Form::GitHub, 2)),
        ["api", "v1", ..] => Some((Form::Gitea, 2)),
        ["api", "v4", ..] => Some((Form::GitLab, 2)),
        ["rest" | "plugins", ..] => Some((Form::Bitbucket, 0)),
        ["user" | "rate_limit" | "repos", ..] => Some((Form::GitHub, 0)),
        _ => None,
    }
}

/// Serves until it is told to stop, or until the sender is dropped.
pub(crate) async fn serve(
    shared: Arc<Shared>,
    listener: std::net::TcpListener,
    letters: UnboundedReceiver<Letter>,
    stopped: oneshot::Receiver<()>,
) -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let poster = tokio::spawn(post(shared.clone(), letters));
    let router = axum::Router::new().fallback(move |request| handle(shared.clone(), request));
    let stopped = async { drop(stopped.await) };
    let served = axum::serve(listener, router).with_graceful_shutdown(stopped).await;
    poster.abort();
    served
}

/// Handles one request completely.
async fn handle(shared: Arc<Shared>, request: axum::extract::Request) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = axum::body::to_bytes(body, LARGEST).await else { return lost() };
    let host = parts.headers.get("host").and_then(|host| host.to_str().ok());
    let origin = host.map_or_else(|| shared.origin.clone(), |host| format!("http://{host}"));
    let request = Request { method: parts.method, uri: parts.uri, headers: parts.headers, body, origin };
    let path = request.segments();
    let Some((form, skip)) = form_of(&path) else {
        let answer = blocking(move || plain(&shared, &request, &path)).await;
        return respond(answer);
    };
    let action = lock(&shared.faults).hit(request.method.as_str(), request.uri.path());
    if let Some(Action::Delay { milliseconds }) = &action {
        tokio::time::sleep(Duration::from_millis(*milliseconds)).await;
    }
    let lose = matches!(action, Some(Action::Lose | Action::Drop));
    let answer = blocking(move || api(&shared, &request, (form, path[skip..].to_vec()), action)).await;
    if lose { lost() } else { respond(answer) }
}

async fn blocking(work: impl FnOnce() -> Answer + Send + 'static) -> Answer {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|panic| Answer::text(500, "text/plain", format!("the host failed: {panic}\n")))
}

/// Everything except forms: the control API, clones, archives, pages.
fn plain(shared: &Arc<Shared>, request: &Request, path: &[String]) -> Answer {
    if path.first().is_some_and(|first| first == "_host") {
        return control::answer(shared, request, &path[1..]);
    }
    let served = shared.with(|store| match clone::answer(store, request, path)? {
        Some(answer) => Ok(Some(answer)),
        None => web::answer(store, request, path),
    });
    match served {
        Ok(Some(answer)) => answer,
        Ok(None) => {
            violation(shared, request, &Refused::Path);
            Answer::text(404, "text/plain; charset=utf-8", "Not Found\n")
        }
        Err(refused) => Answer::text(500, "text/plain; charset=utf-8", format!("{refused}\n")),
    }
}

fn violation(shared: &Shared, request: &Request, refused: &Refused) {
    let violation = Violation { method: request.method.to_string(), path: request.uri.to_string(), why: refused.to_string() };
    if shared.log {
        eprintln!("violation: {} {}: {}", violation.method, violation.path, violation.why);
    }
    lock(&shared.violations).push(violation);
}

/// Handles or spoils a request to a form, and logs it.
fn api(shared: &Shared, request: &Request, (form, path): (Form, Vec<String>), action: Option<Action>) -> Answer {
    let stopped = match &action {
        Some(Action::Drop) => Some(Answer::empty(0)),
        Some(action) => instead(action, form).map(|answer| match form {
            Form::GitHub if answer.status >= 400 => forms::github::finish(request, answer),
            _ => answer,
        }),
        None => None,
    };
    let (answer, wrote) = match stopped {
        Some(answer) => (answer, false),
        None => {
            let mut store = lock(&shared.store);
            let (answer, refused) = forms::answer(form, &mut store, request, path);
            if let Some(refused) = refused.filter(Refused::is_violation) {
                violation(shared, request, &refused);
            }
            match shared.settle(&mut store) {
                // A read may discover what people have pushed, which is not a write of its own.
                Ok(changed) => (answer, changed && request.method != Method::GET),
                Err(refused) => (Answer::text(500, "text/plain", format!("{refused}\n")), false),
            }
        }
    };
    let answer = match &action {
        Some(action) => spoil(action, answer),
        None => answer,
    };
    let lost = matches!(action, Some(Action::Lose | Action::Drop));
    let call = Call {
        at: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64),
        method: request.method.to_string(),
        path: request.uri.path_and_query().map_or_else(String::new, ToString::to_string),
        status: if lost { 0 } else { answer.status },
        form,
        wrote,
        fault: action.map(|action| serde_json::to_string(&action).unwrap_or_default()),
    };
    if shared.log {
        eprintln!("{} {} {}{}", call.method, call.path, call.status, if call.wrote { " wrote" } else { "" });
    }
    lock(&shared.calls).push(call);
    answer
}

fn respond(answer: Answer) -> Response {
    let mut response = Response::new(Body::from(answer.body));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in answer.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// No answer: the body fails before the head is sent, so the server closes the connection.
fn lost() -> Response {
    let failure = futures_util::stream::once(async { Err::<Bytes, _>(std::io::Error::other("the answer is lost")) });
    Response::new(Body::from_stream(failure))
}

/// Sends webhooks one after the other, until the host stops.
async fn post(shared: Arc<Shared>, mut letters: UnboundedReceiver<Letter>) {
    let client = reqwest::Client::builder().timeout(Duration::from_secs(10)).no_proxy().build();
    let Ok(client) = client else { return };
    while let Some(letter) = letters.recv().await {
        let mut request = client.post(&letter.url).header("content-type", "application/json");
        for (name, value) in &letter.headers {
            request = request.header(*name, value);
        }
        let status = request.body(letter.body).send().await.map_or(0, |answer| answer.status().as_u16());
        if shared.log {
            eprintln!("webhook to {}: {status}", letter.url);
        }
        lock(&shared.deliveries).push(Delivery { url: letter.url, status });
    }
}
