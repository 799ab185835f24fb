//! Parses requests: bodies, query strings, names in paths. A refusal names the invalid part.

use crate::fence::problem::{Answer, Refused};
use crate::fence::strict;
use axum::body::{Body, to_bytes};
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{Extension, FromRequest, FromRequestParts, Query, RawPathParams, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use keelway_domain::time::Timestamp;
use keelway_engine::views::{MAX_PAGE, Position, Window};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The longest body, in bytes: 1 MiB.
pub const MAX_BODY: usize = 1 << 20;
/// The default number of entries on a page.
const DEFAULT_PAGE: u16 = 20;

/// A JSON body.
pub struct Json<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = Refused;
    async fn from_request(request: Request, _: &S) -> Result<Self, Refused> {
        let value = json(&json_body(request).await?)?;
        serde_json::from_value(value).map(Json).map_err(|error| not_expected(error.to_string()))
    }
}

/// A JSON body that may be absent.
pub struct Maybe<T>(pub T);

impl<T: DeserializeOwned + Default, S: Send + Sync> FromRequest<S> for Maybe<T> {
    type Rejection = Refused;
    async fn from_request(request: Request, _: &S) -> Result<Self, Refused> {
        let bytes = json_body(request).await?;
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(Self(T::default()));
        }
        read(json(&bytes)?).map(Self)
    }
}

/// Reads an object from JSON.
pub fn read<T: DeserializeOwned>(value: Value) -> Answer<T> {
    if !value.is_object() {
        return Err(not_expected("send a JSON object".into()));
    }
    serde_json::from_value(value).map_err(|error| not_expected(error.to_string()))
}

/// The bytes of a body that is JSON by its content type.
pub(crate) async fn json_body(request: Request) -> Answer<Vec<u8>> {
    let kind = media_type(request.headers());
    let json = kind.is_empty() || kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"));
    if !json {
        let kind: String = kind.chars().take(100).collect();
        let detail = format!("content-type: {kind:?} is not taken here: send JSON as application/json");
        return Err(Refused::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported media type", detail));
    }
    let (parts, body) = request.into_parts();
    self::body(&parts.headers, body).await
}

/// Reads JSON.
pub fn json(bytes: &[u8]) -> Answer<Value> {
    strict::parse(bytes).map_err(not_expected)
}

fn not_expected(error: String) -> Refused {
    Refused::new(StatusCode::BAD_REQUEST, "invalid body", format!("the body is not what is expected here: {error}"))
}

/// A body as text.
pub struct Text(pub String);

impl<S: Send + Sync> FromRequest<S> for Text {
    type Rejection = Refused;
    async fn from_request(request: Request, _: &S) -> Result<Self, Refused> {
        let (parts, body) = request.into_parts();
        let text = String::from_utf8(self::body(&parts.headers, body).await?).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            Refused::new(StatusCode::BAD_REQUEST, "invalid body", format!("the body is not UTF-8 at byte {at}: send it as UTF-8"))
        })?;
        match text.chars().find(|c| c.is_control() && !matches!(c, '\t' | '\n' | '\r')) {
            Some(odd) => {
                let detail = format!("the body contains the control character U+{:04X}: leave it out", u32::from(odd));
                Err(Refused::new(StatusCode::BAD_REQUEST, "invalid body", detail))
            }
            None => Ok(Self(text)),
        }
    }
}

/// The bytes of a body that is not too large.
pub(crate) async fn body(headers: &HeaderMap, body: Body) -> Answer<Vec<u8>> {
    let told = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    let too_large = || Refused::too_large(format!("the body is larger than {MAX_BODY} bytes (1 MiB): send less at once"));
    if told.is_some_and(|told| told > MAX_BODY) {
        return Err(too_large());
    }
    to_bytes(body, MAX_BODY).await.map(|bytes| bytes.to_vec()).map_err(|_| too_large())
}

/// The content type in lower case, without its parameters; empty if there is none.
pub fn media_type(headers: &HeaderMap) -> String {
    let given = headers.get(header::CONTENT_TYPE).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    given.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// The names in the path.
pub struct Path<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Refused;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refused> {
        match axum::extract::Path::<T>::from_request_parts(parts, state).await {
            Ok(axum::extract::Path(names)) => Ok(Self(names)),
            Err(error) => {
                let detail = format!("the path cannot be read: {}; percent-encode its names as UTF-8", error.body_text());
                Err(Refused::new(StatusCode::BAD_REQUEST, "invalid path", detail))
            }
        }
    }
}

/// The query string.
pub struct Params<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = Refused;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refused> {
        let Query(params) = Query::<T>::try_from_uri(&parts.uri).map_err(|error| {
            let text = error.to_string();
            let text = text.strip_prefix("Failed to deserialize query string: ").unwrap_or(&text);
            Refused::new(StatusCode::BAD_REQUEST, "invalid query", format!("the query string is not what is expected here: {text}"))
        })?;
        Ok(Self(params))
    }
}

/// What others put behind the address that they call: it is not looked at.
#[derive(Debug, Default, Deserialize)]
pub struct Anything {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// An argument of a handler. Unless one of them is [`Params`], a request with parameters is refused.
#[diagnostic::on_unimplemented(
    message = "nothing says whether `{Self}` takes the parameters of the query string",
    label = "implement `Argument` for it"
)]
pub trait Argument: Send + 'static {
    /// Whether it takes them.
    const PARAMETERS: bool = false;
}

impl<T: Send + 'static> Argument for Params<T> {
    const PARAMETERS: bool = true;
}

impl<T: Send + 'static> Argument for Path<T> {}
impl<T: Send + 'static> Argument for Json<T> {}
impl<T: Send + 'static> Argument for Maybe<T> {}
impl<T: Send + 'static> Argument for Extension<T> {}
impl<T: Argument> Argument for Answer<T> {}
impl Argument for Text {}
impl Argument for HeaderMap {}
impl Argument for Request {}

/// Refuses a request with parameters: its handler takes none. A path that cannot be read is refused before, by the handler.
pub(crate) async fn without_parameters(request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let path = RawPathParams::from_request_parts(&mut parts, &()).await;
    let readable = !matches!(path, Err(RawPathParamsRejection::InvalidUtf8InPathParam(_)));
    match Params::<Nothing>::from_request_parts(&mut parts, &()).await {
        Err(refused) if readable => refused.into_response(),
        _ => next.run(Request::from_parts(parts, body)).await,
    }
}

/// An empty value counts as absent, because Keptn's clients send empty values.
pub fn given(text: Option<&String>) -> Option<&str> {
    text.map(String::as_str).filter(|text| !text.is_empty())
}

/// The size of a page: by default 20, at most 100.
pub fn page_size(text: Option<&String>) -> Answer<u16> {
    let Some(text) = given(text) else { return Ok(DEFAULT_PAGE) };
    match text.parse::<usize>().ok().and_then(|n| u16::try_from(n.min(MAX_PAGE)).ok()) {
        Some(0) => Ok(DEFAULT_PAGE),
        Some(n) => Ok(n),
        None => Err(Refused::field("pageSize", format!("{text:?} is not a number from 1 to {MAX_PAGE}"))),
    }
}

/// A position in a list by time.
pub fn position(text: Option<&String>) -> Answer<Position> {
    let Some(text) = given(text) else { return Ok(0) };
    text.parse().ok().filter(|position| *position >= 0).ok_or_else(|| no_page_key(text))
}

/// The refusal for a page key that is not the end of any page.
pub fn no_page_key(text: &str) -> Refused {
    let shown: String = text.chars().take(100).collect();
    Refused::field("nextPageKey", format!("{shown:?} is not a key of this list: send the one the page before ended with"))
}

/// `fromTime` and `beforeTime`.
pub fn window(from: Option<&String>, before: Option<&String>) -> Answer<Window> {
    let time = |field: &str, text: Option<&String>| match given(text) {
        None => Ok(None),
        Some(text) => match Timestamp::parse(text) {
            // Keptn's clients send the year 1 for "from the beginning".
            Some(time) => Ok(Some(Timestamp(time.0.max(0)))),
            None => Err(Refused::field(field, format!("{text:?} is not a time: write it like 2026-11-20T15:04:05.000Z"))),
        },
    };
    Ok(Window { after: time("fromTime", from)?, before: time("beforeTime", before)? })
}

/// A text that people wrote: not too long, no control characters.
pub fn note(field: &str, text: Option<&String>, most: usize) -> Answer<Option<String>> {
    let Some(text) = given(text) else { return Ok(None) };
    if let Some(odd) = text.chars().find(|c| c.is_control() && !matches!(c, '\t' | '\n' | '\r')) {
        return Err(Refused::field(field, format!("contains the control character U+{:04X}: leave it out", u32::from(odd))));
    }
    match text.chars().count() {
        n if n > most => Err(Refused::field(field, format!("has {n} characters: at most {most} are allowed"))),
        _ => Ok(Some(text.to_owned())),
    }
}
