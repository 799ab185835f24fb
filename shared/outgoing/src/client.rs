//! The client for webhooks and notifications: one request, and the beginning of its answer.

use crate::failure::Failure;
use crate::guard::{Guard, Hosts, Lookup, System};
use crate::wire::{Roots, Terms, Wire};
use reqwest::Method;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// The limits of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The timeout of the connection, TLS included.
    pub connect: Duration,
    /// The timeout of the whole request.
    pub total: Duration,
    /// The largest body of a request, in bytes.
    pub request_bytes: usize,
    /// How many bytes of an answer are read.
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
    #[expect(missing_docs, reason = "the name says it")]
    pub status: u16,
    /// `Retry-After` in seconds from now, if the answer has it.
    pub retry_after: Option<i64>,
    /// The beginning of the body.
    pub body: Vec<u8>,
    /// Whether the body is longer.
    pub cut: bool,
}

/// The client. Clones share connections.
#[derive(Debug, Clone)]
pub struct Client {
    wire: Arc<Wire>,
    limits: Limits,
}

impl Client {
    /// A client with the resolver of the operating system.
    pub fn new(allowed: Hosts) -> Self {
        Self::with(System, allowed, Limits::default())
    }

    /// A client with another resolver and other limits.
    pub fn with(lookup: impl Lookup, allowed: Hosts, limits: Limits) -> Self {
        let guard = Guard::new(allowed).with_lookup(lookup);
        // Requests contain secrets, so redirects are not followed: the owner of a receiver that has moved must change the URL.
        let (redirects, plain) = (0, true);
        let terms = Terms { connect: limits.connect, total: limits.total, idle: None, roots: Roots::Known, redirects, plain };
        Self { wire: Arc::new(Wire::new(&guard, terms)), limits }
    }

    /// Posts a body.
    ///
    /// # Errors
    /// There is no answer.
    pub async fn post(&self, url: &str, headers: HeaderMap, body: String) -> Result<Answer, Failure> {
        if body.len() > self.limits.request_bytes {
            return Err(Failure::TooLarge(body.len(), self.limits.request_bytes));
        }
        let work = async {
            let mut answer = self.wire.call(Method::POST, url).headers(headers).body(body).answer().await?;
            let retry_after = answer.headers().get(RETRY_AFTER).and_then(|value| seconds(value.to_str().ok()?));
            let mut read = vec![];
            // Errors after the status do not count: a body that breaks off, or never ends, is read as far as possible.
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

/// `Retry-After`: seconds, or a date in one of the three formats of HTTP. Larger numbers count as the largest representable one.
fn seconds(text: &str) -> Option<i64> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(text.parse().unwrap_or(i64::MAX));
    }
    let left = httpdate::parse_http_date(text).ok()?.duration_since(SystemTime::now()).unwrap_or_default();
    i64::try_from(left.as_secs()).ok()
}
