//! The client for webhooks and notifications: one request, whose answer is read as far as it goes.

use crate::failure::Failure;
use crate::guard::{Guard, Hosts, Lookup, System};
use crate::wire::{Roots, Terms, Wire};
use reqwest::Method;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Bounds of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// For the connection, TLS included.
    pub connect: Duration,
    /// For everything together.
    pub total: Duration,
    /// The largest body sent, in bytes.
    pub request_bytes: usize,
    /// So many bytes of an answer are read; the rest is not.
    pub answer_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connect: Duration::from_secs(3), total: Duration::from_secs(5), request_bytes: 256 * 1024, answer_bytes: 16 * 1024 }
    }
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// `Retry-After` in seconds from now, if it has one.
    pub retry_after: Option<i64>,
    /// The beginning of its body.
    pub body: Vec<u8>,
    /// Whether there is more of it.
    pub cut: bool,
}

/// Sends requests. Clones share connections.
#[derive(Debug, Clone)]
pub struct Client {
    wire: Arc<Wire>,
    limits: Limits,
}

impl Client {
    /// With the resolver of the operating system.
    pub fn new(allowed: Hosts) -> Self {
        Self::with(System, allowed, Limits::default())
    }

    /// With another resolver and other bounds.
    pub fn with(lookup: impl Lookup, allowed: Hosts, limits: Limits) -> Self {
        let guard = Guard::new(allowed).with_lookup(lookup);
        // A receiver that has moved is told by its owner; requests with secrets in them follow nobody.
        let (redirects, plain) = (0, true);
        let terms = Terms { connect: limits.connect, total: limits.total, idle: None, roots: Roots::Known, redirects, plain };
        Self { wire: Arc::new(Wire::new(&guard, terms)), limits }
    }

    /// Posts a body.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn post(&self, url: &str, headers: HeaderMap, body: String) -> Result<Answer, Failure> {
        if body.len() > self.limits.request_bytes {
            return Err(Failure::TooLarge(body.len(), self.limits.request_bytes));
        }
        let work = async {
            let mut answer = self.wire.call(Method::POST, url).headers(headers).body(body).answer().await?;
            let retry_after = answer.headers().get(RETRY_AFTER).and_then(|value| seconds(value.to_str().ok()?));
            let mut read = vec![];
            // What comes after the status changes nothing: a body that breaks off, or never ends, is read as far as it goes.
            while read.len() < self.limits.answer_bytes
                && let Ok(Some(chunk)) = answer.chunk().await
            {
                read.extend_from_slice(&chunk);
            }
            let cut = read.len() >= self.limits.answer_bytes;
            read.truncate(self.limits.answer_bytes);
            Ok(Answer { status: answer.status().as_u16(), retry_after, body: read, cut })
        };
        let slow = |_| Failure::slow(self.limits.total);
        tokio::time::timeout(self.limits.total, work).await.map_err(slow)?
    }
}

/// `Retry-After`: seconds, or a date in one of the three forms of HTTP. More seconds than there are numbers are the most there can be.
fn seconds(text: &str) -> Option<i64> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(text.parse().unwrap_or(i64::MAX));
    }
    let left = httpdate::parse_http_date(text).ok()?.duration_since(SystemTime::now()).unwrap_or_default();
    i64::try_from(left.as_secs()).ok()
}
