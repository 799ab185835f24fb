//! Idempotent requests: those with the header `Idempotency-Key`. A key identifies one request of one token to one path. Its body is
//! stored before the request is handled, and its answer afterwards. Repetitions in between get the same command id, so the engine
//! obeys the request once.

use crate::Api;
use crate::fence::audit::Replayed;
use crate::fence::auth::Authority;
use crate::fence::caller::Caller;
use crate::fence::input;
use crate::fence::problem::{Answer, Refused};
use axum::body::{Body, to_bytes};
use axum::extract::{OriginalUri, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use keelway_domain::ids::{hash64, sha256_hex};
use keelway_engine::promotions::repeated::{Keyed, Known};
use serde::{Deserialize, Serialize};

const HEADER: &str = "idempotency-key";
/// The longest key.
const MOST: usize = 255;

/// The id of the command in a request, as an extension of the request.
#[derive(Debug, Clone, Copy)]
pub struct RequestId(pub u64);

/// The part of an answer to be stored, as an extension of the response.
#[derive(Clone)]
struct ToRemember(Keyed, String);

/// A stored answer.
#[derive(Serialize, Deserialize)]
struct Remembered {
    #[serde(rename = "s")]
    status: u16,
    #[serde(rename = "l", default, skip_serializing_if = "Option::is_none")]
    location: Option<String>,
    #[serde(rename = "b", default, skip_serializing_if = "String::is_empty")]
    body: String,
}

/// Answers a repeated request with the stored answer, and gives every other request its id.
pub(crate) async fn check(State(api): State<Api>, request: Request, next: Next) -> Response {
    handle(&api, request, next).await.unwrap_or_else(IntoResponse::into_response)
}

async fn handle(api: &Api, mut request: Request, next: Next) -> Answer<Response> {
    // A signed request has a nonce instead, and its signature does not cover this header.
    let has_token = request.extensions().get() == Some(&Authority::Token);
    let key = if has_token { key(request.headers())? } else { None };
    let Some(id) = key.map(|key| id(&request, key)) else {
        let random = hash64(&[b"command", uuid::Uuid::now_v7().as_bytes()]);
        request.extensions_mut().insert(RequestId(random.max(1)));
        return Ok(next.run(request).await);
    };
    request.extensions_mut().insert(RequestId(hash64(&[b"repeated", id.as_bytes()]).max(1)));
    if let Some(caller) = request.extensions().get::<Caller>() {
        caller.told().id = Some(hash64(&[b"audit", id.as_bytes()]));
    }
    let (parts, body) = request.into_parts();
    let body = input::body(&parts.headers, body).await?;
    let keyed = Keyed { id, asked: sha256_hex(&body) };
    match api.promotions().remember_request(&keyed).await? {
        Known::Open => answered(keyed, next.run(Request::from_parts(parts, Body::from(body))).await).await,
        Known::Answered(answer) => {
            let answer: Remembered = serde_json::from_str(&answer).map_err(|_| Refused::internal())?;
            let mut response = answer.response();
            response.extensions_mut().insert(Replayed);
            Ok(response)
        }
        Known::Different => {
            let detail = "Idempotency-Key: this key was sent here before with another body: use a new key for each request, and the same \
                          one only to send the same body again";
            Err(Refused::new(StatusCode::UNPROCESSABLE_ENTITY, "key used before", detail))
        }
    }
}

/// Marks a final answer, so that it is stored. Refusals and answers without a result yet are not final: their repetitions are
/// handled again.
async fn answered(keyed: Keyed, response: Response) -> Answer<Response> {
    if !matches!(response.status(), StatusCode::OK | StatusCode::CREATED | StatusCode::NO_CONTENT) {
        return Ok(response);
    }
    let (parts, body) = response.into_parts();
    let body = to_bytes(body, usize::MAX).await.map_err(|_| Refused::internal())?;
    let answer = Remembered {
        status: parts.status.as_u16(),
        location: parts.headers.get(header::LOCATION).and_then(|value| value.to_str().ok()).map(str::to_owned),
        body: String::from_utf8_lossy(&body).into_owned(),
    };
    let answer = serde_json::to_string(&answer).unwrap_or_default();
    let mut response = Response::from_parts(parts, Body::from(body));
    response.extensions_mut().insert(ToRemember(keyed, answer));
    Ok(response)
}

/// Stores an answer after the audit has its entry: if the entry could not be written, a repetition is handled again.
pub(crate) async fn remember(api: &Api, mut response: Response) -> Response {
    let Some(ToRemember(keyed, answer)) = response.extensions_mut().remove() else { return response };
    match api.promotions().remember_answer(&keyed, &answer).await {
        Ok(()) => response,
        Err(error) => Refused::from(error).into_response(),
    }
}

impl Remembered {
    fn response(self) -> Response {
        let json = (!self.body.is_empty()).then(|| (header::CONTENT_TYPE, HeaderValue::from_static("application/json")));
        let location = self.location.and_then(|url| Some((header::LOCATION, HeaderValue::from_str(&url).ok()?)));
        let headers: HeaderMap = json.into_iter().chain(location).collect();
        (StatusCode::from_u16(self.status).unwrap_or(StatusCode::OK), headers, self.body).into_response()
    }
}

/// The identity of a request: caller, path and key.
fn id(request: &Request, key: &str) -> String {
    let caller = request.extensions().get::<Caller>().map(Caller::standing).unwrap_or_default();
    // In a nested router, the URI of the request lacks the matched prefix.
    let path = request.extensions().get::<OriginalUri>().map_or_else(|| request.uri().path(), |uri| uri.path());
    sha256_hex(format!("{caller}#{}#{path}#{key}", path.len()).as_bytes())
}

fn key(headers: &HeaderMap) -> Answer<Option<&str>> {
    let mut given = headers.get_all(HEADER).iter();
    let wrong = |why: String| Err(Refused::field("Idempotency-Key", why));
    match (given.next(), given.next()) {
        (None, _) => Ok(None),
        (Some(key), None) => match key.to_str() {
            Ok(key) if (1..=MOST).contains(&key.len()) => Ok(Some(key)),
            _ => wrong(format!("is no key: it has 1 to {MOST} ASCII characters")),
        },
        (Some(_), Some(_)) => wrong("is there more than once: send it once".into()),
    }
}
