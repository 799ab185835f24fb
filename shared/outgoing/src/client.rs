//! The client. An address is checked where it is resolved, and the connection is made to what was checked: a name that resolves to
//! another address a moment later changes nothing.

use crate::address::is_public;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Client as Http, Url};
use std::error::Error;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
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
        Self { connect: Duration::from_secs(5), total: Duration::from_secs(15), request_bytes: 256 * 1024, answer_bytes: 16 * 1024 }
    }
}

/// Hosts that may be reached wherever they are, and without TLS: `host` or `host:port`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hosts(Vec<String>);

impl Hosts {
    /// From a list with commas between.
    pub fn parse(list: &str) -> Self {
        Self(list.split(',').map(|host| host.trim().to_ascii_lowercase()).filter(|host| !host.is_empty()).collect())
    }

    fn has(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default();
        let port = url.port_or_known_default().unwrap_or_default();
        self.0.iter().any(|known| known == host || *known == format!("{host}:{port}"))
    }
}

/// Finds the addresses of a name.
pub trait Lookup: Send + Sync + 'static {
    /// The addresses.
    ///
    /// # Errors
    /// When the name has none.
    fn lookup(&self, name: &str) -> Pin<Box<dyn Future<Output = std::io::Result<Vec<IpAddr>>> + Send>>;
}

/// The resolver of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct System;

impl Lookup for System {
    fn lookup(&self, name: &str) -> Pin<Box<dyn Future<Output = std::io::Result<Vec<IpAddr>>> + Send>> {
        let name = name.to_owned();
        Box::pin(async move { Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect()) })
    }
}

/// Why there is no answer. Neither URL nor header stands in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The URL cannot be used.
    #[error("the URL cannot be used: {0}")]
    Url(String),
    /// The address is not one of the public internet.
    #[error("{0} is not an address of the public internet: nothing was sent; an operator can allow the host (WebhookAllowedHosts)")]
    Address(IpAddr),
    /// The body is too large.
    #[error("the body has {0} bytes: at most {1} are sent")]
    TooLarge(usize, usize),
    /// The name has no address, nobody listens there, TLS failed, or the connection broke.
    #[error("the receiver could not be reached: {0}")]
    Unreachable(String),
    /// It took too long.
    #[error("there was no answer within {0} seconds")]
    TooSlow(u64),
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
    guarded: Http,
    open: Http,
    allowed: Hosts,
    limits: Limits,
}

impl Client {
    /// With the resolver of the operating system.
    ///
    /// # Errors
    /// When there is no TLS.
    pub fn new(allowed: Hosts) -> Result<Self, reqwest::Error> {
        Self::with(System, allowed, Limits::default())
    }

    /// With another resolver and other bounds.
    ///
    /// # Errors
    /// When there is no TLS.
    pub fn with(lookup: impl Lookup, allowed: Hosts, limits: Limits) -> Result<Self, reqwest::Error> {
        let lookup: Arc<dyn Lookup> = Arc::new(lookup);
        let client = |guarded| {
            Http::builder()
                .user_agent(concat!("keelway/", env!("CARGO_PKG_VERSION")))
                .connect_timeout(limits.connect)
                .timeout(limits.total)
                // A receiver that has moved is told by its owner; requests with secrets in them follow nobody.
                .redirect(reqwest::redirect::Policy::none())
                // A proxy would connect to what it resolves itself.
                .no_proxy()
                .retry(reqwest::retry::never())
                .dns_resolver(Resolver { lookup: lookup.clone(), guarded })
                .build()
        };
        Ok(Self { guarded: client(true)?, open: client(false)?, allowed, limits })
    }

    /// Posts a body.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn post(&self, url: &str, headers: HeaderMap, body: String) -> Result<Answer, Failure> {
        if body.len() > self.limits.request_bytes {
            return Err(Failure::TooLarge(body.len(), self.limits.request_bytes));
        }
        let (client, url) = self.checked(url)?;
        let work = async {
            let sent = client.post(url).headers(headers).body(body).send().await;
            let mut answer = sent.map_err(|error| self.failure(error))?;
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
        let slow = |_| Failure::TooSlow(self.limits.total.as_secs());
        tokio::time::timeout(self.limits.total, work).await.map_err(slow)?
    }

    /// The URL, and the client for it.
    fn checked(&self, url: &str) -> Result<(&Http, Url), Failure> {
        // The parser's own text does not repeat the URL.
        let url = Url::parse(url.trim()).map_err(|error| Failure::Url(error.to_string()))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Failure::Url("it names a user: put credentials into a header".into()));
        }
        let host = url.host_str().unwrap_or_default();
        if host.is_empty() || !["http", "https"].contains(&url.scheme()) {
            return Err(Failure::Url("it must begin with https://".into()));
        }
        if self.allowed.has(&url) {
            return Ok((&self.open, url));
        }
        if url.scheme() != "https" {
            return Err(Failure::Url("it must begin with https://".into()));
        }
        // Of a URL with an address, nothing is resolved.
        let literal = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        if let Some(address) = literal.ok().filter(|address| !is_public(*address)) {
            return Err(Failure::Address(address));
        }
        Ok((&self.guarded, url))
    }

    fn failure(&self, error: reqwest::Error) -> Failure {
        let error = error.without_url();
        let mut causes: Vec<String> = vec![];
        let mut at: Option<&(dyn Error + 'static)> = Some(&error);
        while let Some(cause) = at {
            if let Some(Refused(address)) = cause.downcast_ref() {
                return Failure::Address(*address);
            }
            let text = cause.to_string();
            causes.extend(Some(text).filter(|text| !causes.contains(text)));
            at = cause.source();
        }
        if error.is_timeout() { Failure::TooSlow(self.limits.total.as_secs()) } else { Failure::Unreachable(causes.join(": ")) }
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

/// What the resolver answers instead of an address that is not public.
#[derive(Debug, thiserror::Error)]
#[error("{0} is not an address of the public internet")]
struct Refused(IpAddr);

struct Resolver {
    lookup: Arc<dyn Lookup>,
    guarded: bool,
}

impl Resolve for Resolver {
    /// One address that is not public refuses the name: of a public receiver, all are.
    fn resolve(&self, name: Name) -> Resolving {
        let (found, guarded) = (self.lookup.lookup(name.as_str()), self.guarded);
        Box::pin(async move {
            let found = found.await?;
            if let Some(address) = found.iter().find(|address| guarded && !is_public(**address)) {
                return Err(Refused(*address).into());
            }
            Ok(Box::new(found.into_iter().map(|address| SocketAddr::new(address, 0))) as Addrs)
        })
    }
}
