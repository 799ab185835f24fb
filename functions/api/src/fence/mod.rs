//! The code around every handler: authentication, permission, rate limits, the audit, and helpers that handlers share.
//!
//! [`fence`] wraps every request: logs one line, and turns every failure, including panics, into problem details.
//!
//! Never logged: bodies, query strings, headers, tokens.

pub mod allowed;
pub mod audit;
pub mod auth;
pub mod bodies;
pub mod caller;
pub mod client;
pub mod hand_in;
pub mod identity;
pub mod input;
pub mod manifests;
pub mod memory;
pub mod names;
pub mod openapi;
pub mod pace;
pub mod pages;
pub mod problem;
pub mod random;
pub mod raw;
pub mod repeated;
pub mod route;
pub mod signed;
pub mod strict;

use crate::fence::problem::Refused;
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;
use tracing::Instrument;

/// Why a request has no valid URI, as an extension of the request.
#[derive(Debug, Clone)]
pub struct NoUri(pub String);

/// What the local cloud puts before the page's paths, as an extension of the request: the page's addresses contain it.
#[derive(Debug, Clone)]
pub struct Mounted(pub String);

/// Logs, renders refusals, and stops panics.
pub(crate) async fn fence(mut request: Request, next: Next) -> Response {
    let no_uri = request.extensions_mut().remove::<NoUri>();
    let started = Instant::now();
    let path = request.uri().path().to_owned();
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str).to_owned();
    let span = tracing::info_span!("request", project = tracing::field::Empty, context = tracing::field::Empty);
    async move {
        let mut response = match no_uri {
            Some(NoUri(detail)) => Refused::new(StatusCode::BAD_REQUEST, "invalid address", detail).into_response(),
            None => Caught(Box::pin(next.run(request))).await,
        };
        let status = response.status();
        if let Some(refused) = response.extensions_mut().remove::<Refused>() {
            response = with_headers(refused.render(&path), &response);
        } else if status.is_client_error() || status.is_server_error() {
            response = with_headers(Refused::of_status(status).render(&path), &response);
        }
        // Answers depend on the token, and some contain one, so no cache may store them.
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(header::VARY, HeaderValue::from_static("x-token, authorization"));
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(http.method = %method, http.route = route, http.status = response.status().as_u16(), duration_ms, "answered");
        response
    }
    .instrument(span)
    .await
}

/// Keeps the router's headers, for example `Allow`.
fn with_headers(mut rendered: Response, from: &Response) -> Response {
    rendered.headers_mut().extend(from.headers().get(header::ALLOW).map(|value| (header::ALLOW, value.clone())));
    rendered
}

/// The answer to an unknown path.
pub(crate) async fn unknown_path(uri: Uri) -> Refused {
    let detail = format!("there is nothing at {}: the API's paths begin with /v1/, docs/api.md lists them", short(uri.path()));
    Refused::new(StatusCode::NOT_FOUND, "unknown path", detail)
}

/// The answer to a method that a path does not have.
pub(crate) async fn wrong_method(request: Request) -> Refused {
    let detail =
        format!("{} does not take {}: the header Allow lists what it takes", short(request.uri().path()), request.method());
    Refused::new(StatusCode::METHOD_NOT_ALLOWED, "method not allowed", detail)
}

fn short(path: &str) -> String {
    path.chars().take(200).collect()
}

/// The path at which Keptn's clients read events: the only one without a version.
pub const DATASTORE: &str = "/mongodb-datastore/event";

/// The services of Keptn whose names its clients put in front of `/v1/`.
const SERVICES: [&str; 7] = [
    "controlPlane",
    "resource-service",
    "configuration-service",
    "mongodb-datastore",
    "shipyard-controller",
    "secrets",
    "statistics",
];
/// The prefix of paths on the local cloud, before the function's id.
const EMULATED: &str = "/_aws/lambda-url/";

/// Whether a text is a known prefix of `/v1/`: `/api`, one of Keptn's services, or both; on the local cloud, after its own prefix.
/// Other paths are not changed, so that the path rules of a proxy cannot be evaded.
fn is_prefix(text: &str, emulated: bool) -> bool {
    let own = text.strip_prefix(EMULATED).filter(|_| emulated);
    let text = own.map_or(text, |rest| rest.find('/').map_or("", |at| &rest[at..]));
    let rest = text.strip_prefix("/api").filter(|rest| rest.is_empty() || rest.starts_with('/')).unwrap_or(text);
    rest.is_empty() || rest.strip_prefix('/').is_some_and(|service| SERVICES.contains(&service))
}

/// The request without the prefixes that Keptn's clients and, if `emulated`, the local cloud put before `/v1/` or [`DATASTORE`].
pub fn without_prefix<B>(request: axum::http::Request<B>, emulated: bool) -> axum::http::Request<B> {
    if emulated && let Some(at) = page_at(request.uri().path()) {
        return mounted(request, at);
    }
    let path = request.uri().path();
    let at = path.find("/v1/").or_else(|| path.strip_suffix(DATASTORE).map(str::len)).filter(|at| *at > 0);
    let Some(at) = at.filter(|at| is_prefix(&path[..*at], emulated)) else { return request };
    let (mut parts, body) = request.into_parts();
    let kept = parts.uri.path_and_query().and_then(|path| path.as_str().get(at..)).and_then(|path| path.parse::<Uri>().ok());
    if let Some(uri) = kept {
        parts.uri = uri;
    }
    axum::http::Request::from_parts(parts, body)
}

/// Where the path of the page begins, behind the prefix of the local cloud.
fn page_at(path: &str) -> Option<usize> {
    let rest = path.strip_prefix(EMULATED)?;
    let at = rest.find('/').unwrap_or(rest.len());
    matches!(&rest[at..], "" | "/" | "/ui").then_some(()).or_else(|| rest[at..].starts_with("/ui/").then_some(()))?;
    Some(EMULATED.len() + at)
}

/// The request without what is before `at`.
fn mounted<B>(request: axum::http::Request<B>, at: usize) -> axum::http::Request<B> {
    let (mut parts, body) = request.into_parts();
    let all = parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default();
    let (before, rest) = all.split_at(at);
    let slash = if rest.starts_with('/') { "" } else { "/" };
    if let Ok(uri) = format!("{slash}{rest}").parse() {
        parts.extensions.insert(Mounted(before.to_owned()));
        parts.uri = uri;
    }
    axum::http::Request::from_parts(parts, body)
}

/// A panic while the future is polled is an internal error; the panic hook has logged it.
struct Caught<F>(Pin<Box<F>>);

impl<F: Future<Output = Response>> Future for Caught<F> {
    type Output = Response;
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Response> {
        // The data of the future is dropped with it, and not used again.
        match catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(context))) {
            Ok(poll) => poll,
            Err(_) => {
                tracing::error!("a request ended in a panic");
                Poll::Ready(Refused::internal().into_response())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    #[test]
    fn a_prefix_before_the_version_is_taken_off() {
        for (given, kept) in [
            ("/_aws/lambda-url/a1b2/v1/event?project=p", "/v1/event?project=p"),
            ("/v1/sequence/p?name=v1/v1/", "/v1/sequence/p?name=v1/v1/"),
            ("/other", "/other"),
            ("https://host/api/v1/metadata", "/v1/metadata"),
            ("/controlPlane/v1/project", "/v1/project"),
            ("/_aws/lambda-url/a1b2/api/controlPlane/v1/project", "/v1/project"),
            ("/anything/at/all/v1/whoami", "/anything/at/all/v1/whoami"),
            ("/apiary/v1/whoami", "/apiary/v1/whoami"),
            ("/api/anything/v1/whoami", "/api/anything/v1/whoami"),
            ("/api/resource-service/v1/project/p//resource", "/v1/project/p//resource"),
            ("/api/mongodb-datastore/event?keptnContext=c", "/mongodb-datastore/event?keptnContext=c"),
            ("/v1/project/p/resource/mongodb-datastore/event", "/v1/project/p/resource/mongodb-datastore/event"),
        ] {
            let request = Request::builder().uri(given).body(Body::empty()).unwrap();
            let kept_uri = without_prefix(request, true).uri().path_and_query().map(ToString::to_string);
            assert_eq!(kept_uri.as_deref(), Some(kept), "{given}");
        }
        let emulated = "/_aws/lambda-url/a1b2/v1/event";
        let request = Request::builder().uri(emulated).body(Body::empty()).unwrap();
        assert_eq!(without_prefix(request, false).uri().path(), emulated, "only the local cloud has it");
    }

    #[test]
    fn the_page_is_behind_the_prefix_of_the_local_cloud_and_of_no_other() {
        for (given, kept) in [
            ("/_aws/lambda-url/a1b2", "/"),
            ("/_aws/lambda-url/a1b2/", "/"),
            ("/_aws/lambda-url/a1b2/ui", "/ui"),
            ("/_aws/lambda-url/a1b2/ui/?code=1", "/ui/?code=1"),
            ("/_aws/lambda-url/a1b2/uib", "/_aws/lambda-url/a1b2/uib"),
            ("/other/ui/", "/other/ui/"),
        ] {
            let request = |emulated| without_prefix(Request::builder().uri(given).body(Body::empty()).unwrap(), emulated);
            assert_eq!(request(true).uri().to_string(), kept, "{given}");
            assert_eq!(request(false).uri().to_string(), given);
        }
    }

    #[test]
    fn a_panic_is_an_answer() {
        let future = Caught(Box::pin(async { panic!("a planted panic, expected in the test's output") }));
        let mut future = std::pin::pin!(future);
        match future.as_mut().poll(&mut Context::from_waker(std::task::Waker::noop())) {
            Poll::Ready(response) => assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR),
            Poll::Pending => panic!("not ready"),
        }
    }
}
