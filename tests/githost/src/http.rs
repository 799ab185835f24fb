//! Requests and answers in the terms of the forms.

use crate::refused::Refused;
use axum::body::Bytes;
use axum::http::{HeaderMap, Method, Uri};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;

/// A request.
#[derive(Debug)]
pub(crate) struct Request {
    pub method: Method,
    pub uri: Uri,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// `http://host:port`, as the caller has reached the host.
    pub origin: String,
}

impl Request {
    /// The decoded segments of the path. `%2F` stays inside its segment.
    pub fn segments(&self) -> Vec<String> {
        let path = self.uri.path().trim_start_matches('/');
        path.split('/').map(|part| percent_decode_str(part).decode_utf8_lossy().into_owned()).collect()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The query. Every parameter must be a field of `T`, which denies unknown ones.
    pub fn query<T: DeserializeOwned>(&self) -> Result<T, Refused> {
        let parsed = axum::extract::Query::<T>::try_from_uri(&self.uri);
        parsed.map(|query| query.0).map_err(|error| {
            let source = std::error::Error::source(&error).map(ToString::to_string);
            Refused::Query(source.unwrap_or_else(|| error.to_string()))
        })
    }

    /// The body, which must be JSON. Every field must be a field of `T`, which denies unknown ones.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Refused> {
        let kind = self.header("content-type").unwrap_or_default();
        if !kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json")) {
            return Err(Refused::ContentType(kind.to_owned()));
        }
        serde_json::from_slice(&self.body).map_err(|error| Refused::Field(error.to_string()))
    }

    /// The fields of a `multipart/form-data` body (RFC 7578), as bytes.
    pub fn fields(&self) -> Result<BTreeMap<String, Vec<u8>>, Refused> {
        let kind = self.header("content-type").unwrap_or_default();
        let boundary = kind.strip_prefix("multipart/form-data").and_then(|rest| rest.split("boundary=").nth(1));
        let boundary = boundary.map(|boundary| format!("\r\n--{}", boundary.trim_matches('"')));
        let boundary = boundary.ok_or_else(|| Refused::ContentType(kind.to_owned()))?;
        // With a line break in front, the first boundary looks like the others.
        let body = [b"\r\n", &self.body[..]].concat();
        let mut parts = split(&body, boundary.as_bytes());
        let malformed = || Refused::Field("the body is not multipart/form-data".into());
        if parts.len() < 3 || !parts.pop().is_some_and(|end| end.starts_with(b"--")) {
            return Err(malformed());
        }
        let field = |part: &[u8]| {
            let end = part.windows(4).position(|four| four == b"\r\n\r\n")?;
            let head = String::from_utf8_lossy(&part[..end]).into_owned();
            let name = head.split("name=\"").nth(1)?.split('"').next()?.to_owned();
            Some((name, part[end + 4..].to_vec()))
        };
        parts[1..].iter().map(|part| field(part).ok_or_else(malformed)).collect()
    }

    /// The secret in `Authorization`, after one of these schemes or as the password of `Basic`.
    pub fn secret(&self, schemes: &[&str]) -> Option<String> {
        let (scheme, rest) = self.header("authorization")?.split_once(' ')?;
        if schemes.iter().any(|known| known.eq_ignore_ascii_case(scheme)) {
            return Some(rest.trim().to_owned());
        }
        let basic = scheme.eq_ignore_ascii_case("basic").then(|| STANDARD.decode(rest.trim()).ok()).flatten()?;
        let basic = String::from_utf8(basic).ok()?;
        basic.split_once(':').map(|(user, password)| if password.is_empty() { user } else { password }.to_owned())
    }

    /// The address with another value of one query parameter.
    pub fn address_with(&self, name: &str, value: u64) -> String {
        let prefix = format!("{name}=");
        let others = self.uri.query().unwrap_or_default().split('&').filter(|part| !part.is_empty() && !part.starts_with(&prefix));
        let query: Vec<_> = others.map(str::to_owned).chain([format!("{prefix}{value}")]).collect();
        format!("{}{}?{}", self.origin, self.uri.path(), query.join("&"))
    }
}

/// An answer.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn empty(status: u16) -> Self {
        Self { status, headers: vec![], body: vec![] }
    }

    pub fn json(status: u16, body: impl Serialize) -> Self {
        let body = serde_json::to_vec(&body).unwrap_or_default();
        Self { status, headers: vec![], body }.with("content-type", "application/json; charset=utf-8")
    }

    pub fn text(status: u16, kind: &str, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: vec![], body: body.into() }.with("content-type", kind)
    }

    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.retain(|(present, _)| present != name);
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Adds the entity tag of the body, and removes the body if the caller has it already.
    pub fn tagged(self, request: &Request, weak: bool) -> Self {
        let readable = request.method == Method::GET && self.status == 200;
        if !readable {
            return self;
        }
        let tag = format!("{}\"{}\"", if weak { "W/" } else { "" }, &crate::webhooks::sha256(&self.body)[..40]);
        // RFC 9110, 13.1.2: If-None-Match uses the weak comparison.
        let opaque = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
        let known = request
            .header("if-none-match")
            .is_some_and(|given| given.split(',').any(|given| opaque(given) == opaque(&tag) || given.trim() == "*"));
        let mut answer = self.with("etag", tag);
        if known {
            answer.status = 304;
            answer.body.clear();
            answer.headers.retain(|(name, _)| name != "content-type");
        }
        answer
    }
}

/// The wanted page of a list, and its length.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Page {
    pub page: u64,
    pub size: u64,
}

impl Page {
    /// A size above the limit means the limit, as on the real hosts.
    pub fn new(page: Option<u64>, size: Option<u64>, default: u64, limit: u64) -> Self {
        Self { page: page.unwrap_or(1).max(1), size: size.filter(|size| *size > 0).unwrap_or(default).min(limit) }
    }

    pub fn cut<T>(self, all: Vec<T>) -> (Vec<T>, u64) {
        let total = all.len() as u64;
        let skip = usize::try_from((self.page - 1).saturating_mul(self.size)).unwrap_or(usize::MAX);
        (all.into_iter().skip(skip).take(self.size as usize).collect(), total)
    }

    /// The entries of the page, which alone are rendered, and how many there are on all pages.
    pub fn shown<T>(self, all: Vec<T>, show: impl FnMut(T) -> Result<Value, Refused>) -> Result<(Vec<Value>, u64), Refused> {
        let (shown, total) = self.cut(all);
        Ok((shown.into_iter().map(show).collect::<Result<_, _>>()?, total))
    }

    /// The page of a list with the links to others, and how many entries there are on all pages.
    pub fn answer<T>(
        self,
        request: &Request,
        all: Vec<T>,
        show: impl FnMut(T) -> Result<Value, Refused>,
    ) -> Result<(Answer, u64), Refused> {
        let (shown, total) = self.shown(all, show)?;
        let answer = Answer::json(200, shown);
        Ok((if let Some(links) = self.links(request, total) { answer.with("link", links) } else { answer }, total))
    }

    /// The `Link` header (RFC 8288), if there is more than one page.
    pub fn links(self, request: &Request, total: u64) -> Option<String> {
        let last = total.div_ceil(self.size).max(1);
        let link = |page: u64, rel: &str| format!("<{}>; rel=\"{rel}\"", request.address_with("page", page));
        let mut links = vec![];
        if self.page < last {
            links.extend([link(self.page + 1, "next"), link(last, "last")]);
        }
        if self.page > 1 {
            links.extend([link(1, "first"), link(self.page - 1, "prev")]);
        }
        (!links.is_empty()).then(|| links.join(", "))
    }
}

/// Percent-encodes the characters that a segment of a URL must not contain (RFC 3986).
pub(crate) fn encoded(path: &str) -> String {
    const OTHERS: &AsciiSet =
        &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/').remove(b'&').remove(b'+').remove(b'=');
    utf8_percent_encode(path, OTHERS).to_string()
}

/// Base64, in which all forms carry bytes in JSON.
pub(crate) fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Base64 with or without line breaks.
pub(crate) fn unbase64(field: &str, text: &str) -> Result<Vec<u8>, Refused> {
    let compact: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    STANDARD.decode(compact).map_err(|error| Refused::Field(format!("{field} is not Base64: {error}")))
}

fn split<'b>(bytes: &'b [u8], separator: &[u8]) -> Vec<&'b [u8]> {
    let mut parts = vec![];
    let mut rest = bytes;
    while let Some(at) = rest.windows(separator.len()).position(|window| window == separator) {
        parts.push(&rest[..at]);
        rest = &rest[at + separator.len()..];
    }
    parts.push(rest);
    parts
}
