//! A CloudEvent in an HTTP request, in the modes of the HTTP protocol binding: structured (the body is the event), binary (the
//! attributes are headers that begin with `ce-`, the body is the data) and batched (the body is an array of events).

use crate::fence::input;
use crate::fence::problem::{Answer, Refused};
use axum::extract::{FromRequest, Request};
use axum::http::HeaderMap;
use serde_json::{Map, Value};

/// The prefix of headers in binary mode.
const PREFIX: &str = "ce-";
/// The prefix of the content type of a batch.
const BATCH: &str = "application/cloudevents-batch";

/// The content of a request, as structured JSON.
pub enum Sent {
    /// An event.
    One(Value),
    /// A batch of events.
    Batch(Vec<Value>),
}

impl input::Argument for Sent {}

impl<S: Send + Sync> FromRequest<S> for Sent {
    type Rejection = Refused;
    async fn from_request(request: Request, _: &S) -> Result<Self, Refused> {
        let kind = input::media_type(request.headers());
        if kind.starts_with(BATCH) {
            return match input::json(&input::json_body(request).await?)? {
                Value::Array(events) => Ok(Self::Batch(events)),
                _ => Err(Refused::field("body", "is no batch: send an array of events")),
            };
        }
        let attributes = attributes(request.headers())?;
        let bytes = input::json_body(request).await?;
        if kind.starts_with("application/cloudevents") || attributes.is_empty() {
            return input::json(&bytes).map(Self::One);
        }
        let mut event = attributes;
        if !bytes.is_empty() {
            event.insert("data".into(), input::json(&bytes)?);
        }
        Ok(Self::One(Value::Object(event)))
    }
}

/// The attributes of an event in binary mode; none: it is not in binary mode.
fn attributes(headers: &HeaderMap) -> Answer<Map<String, Value>> {
    let mut attributes = Map::new();
    for (header, value) in headers {
        let Some(name) = header.as_str().strip_prefix(PREFIX) else { continue };
        let Some(value) = decoded(value.as_bytes()) else {
            return Err(Refused::field(header.as_str(), "is not UTF-8 once it is percent-decoded: encode it as UTF-8"));
        };
        if attributes.insert(name.to_owned(), Value::String(value)).is_some() {
            return Err(Refused::field(header.as_str(), "is there more than once: send it once"));
        }
    }
    Ok(attributes)
}

/// A header's value without its percent-encoding.
fn decoded(value: &[u8]) -> Option<String> {
    let mut text = vec![];
    let mut rest = value;
    while let Some((first, tail)) = rest.split_first() {
        let digits = tail.get(..2).filter(|digits| *first == b'%' && digits.iter().all(u8::is_ascii_hexdigit));
        match digits {
            Some(digits) => {
                text.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
                rest = &tail[2..];
            }
            None => {
                text.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_headers_value_is_percent_decoded() {
        for (given, expected) in
            [("a%20b%C3%A9", Some("a b\u{e9}")), ("100%", Some("100%")), ("%+f%4", Some("%+f%4")), ("%ff", None)]
        {
            assert_eq!(decoded(given.as_bytes()).as_deref(), expected, "{given}");
        }
    }
}
