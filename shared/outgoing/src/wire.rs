//! Requests to servers of one kind. The guard checks each of them, redirects included.

#![expect(missing_docs, reason = "names that say what they are need no documentation")]

use crate::failure::Failure;
use crate::guard::{Guard, Reach};
use reqwest::header::{AUTHORIZATION, COOKIE, HeaderMap, HeaderName, HeaderValue, LOCATION, PROXY_AUTHORIZATION};
use reqwest::{Client as Http, Method, Request, Response, StatusCode, Url};
use std::ops::Deref;
use std::sync::OnceLock;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout, timeout_at};

/// The size from which an answer is large, in bytes. Reading on waits until no other large answer is held.
pub const LARGE: usize = 1 << 20;

/// The terms for requests to servers of one kind.
#[derive(Debug, Clone)]
pub struct Terms {
    /// The timeout of the connection, TLS included.
    pub connect: Duration,
    /// The timeout of the whole request, redirects included.
    pub total: Duration,
    /// How long idle connections are kept. `None`: the default.
    pub idle: Option<Duration>,
    /// The authorities whose certificates are accepted.
    pub roots: Roots,
    /// The most redirects. Credentials are sent only to the server that they are for.
    pub redirects: usize,
    /// Whether hosts with an exception need no TLS. Must be false where credentials are sent.
    pub plain: bool,
}

/// The authorities whose certificates are accepted.
#[derive(Debug, Clone, Default)]
pub enum Roots {
    /// The public authorities.
    #[default]
    Known,
    /// The public authorities and these.
    Also(Certificates),
    /// Only these.
    Only(Certificates),
}

/// Certificates of authorities.
#[derive(Debug, Clone)]
pub struct Certificates(Vec<reqwest::Certificate>);

impl Certificates {
    /// Parses one or more certificates in PEM form. `None`: there is none.
    pub fn from_pem(pem: &[u8]) -> Option<Self> {
        reqwest::Certificate::from_pem_bundle(pem).ok().filter(|all| !all.is_empty()).map(Self)
    }
}

/// Makes requests, and keeps its connections.
#[derive(Debug)]
pub struct Wire {
    guard: Guard,
    terms: Terms,
    /// Made when it is first needed, because most servers need only one of them.
    public: OnceLock<Http>,
    anywhere: OnceLock<Http>,
}

impl Wire {
    /// A client with this guard and these terms.
    pub fn new(guard: &Guard, terms: Terms) -> Self {
        Self { guard: guard.clone(), terms, public: OnceLock::new(), anywhere: OnceLock::new() }
    }

    /// Checks a URL, and prepares the client for it.
    ///
    /// # Errors
    /// No request could be sent there, as far as that is known without resolving the name.
    pub fn prepare(&self, url: &str) -> Result<(), Failure> {
        self.client(&parsed(url)?).map(drop)
    }

    /// A request under construction.
    pub fn call(&self, method: Method, url: &str) -> Call<'_> {
        Call { wire: self, method, url: parsed(url), headers: HeaderMap::new(), body: None }
    }

    fn client(&self, url: &Url) -> Result<&Http, Failure> {
        let reach = self.guard.reach(url, self.terms.plain)?;
        let made = match reach {
            Reach::Public => &self.public,
            Reach::Anywhere => &self.anywhere,
        };
        if let Some(http) = made.get() {
            return Ok(http);
        }
        let http = self.build(reach).map_err(|error| Failure::Unusable(error.to_string()))?;
        Ok(made.get_or_init(|| http))
    }

    fn build(&self, reach: Reach) -> Result<Http, reqwest::Error> {
        let mut builder = Http::builder()
            .user_agent(concat!("keelway/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(self.terms.connect)
            // The guard checks each step of a redirect.
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            // A proxy would resolve names itself.
            .no_proxy()
            .retry(reqwest::retry::never())
            .dns_resolver(self.guard.resolver(reach));
        if let Some(idle) = self.terms.idle {
            builder = builder.pool_idle_timeout(idle);
        }
        builder = match self.terms.roots.clone() {
            Roots::Known => builder,
            Roots::Also(Certificates(roots)) => builder.tls_certs_merge(roots),
            Roots::Only(Certificates(roots)) => builder.tls_certs_only(roots),
        };
        builder.build()
    }
}

/// The parser's error does not contain the URL.
fn parsed(url: &str) -> Result<Url, Failure> {
    Url::parse(url.trim()).map_err(|error| Failure::Url(error.to_string()))
}

/// A request under construction.
#[derive(Debug, Clone)]
pub struct Call<'w> {
    wire: &'w Wire,
    method: Method,
    url: Result<Url, Failure>,
    headers: HeaderMap,
    body: Option<Vec<u8>>,
}

impl Call<'_> {
    /// Adds to the query.
    #[must_use]
    pub fn query(mut self, pairs: &[(&str, &str)]) -> Self {
        if let Ok(url) = &mut self.url
            && !pairs.is_empty()
        {
            url.query_pairs_mut().extend_pairs(pairs);
        }
        self
    }

    /// Sets a header.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// Sets all of these headers.
    #[must_use]
    pub fn headers(self, headers: HeaderMap) -> Self {
        Self { headers, ..self }
    }

    /// Sets the body.
    #[must_use]
    pub fn body(self, body: impl Into<Vec<u8>>) -> Self {
        Self { body: Some(body.into()), ..self }
    }

    /// Sends the request, and reads at most this many bytes of the answer.
    ///
    /// # Errors
    /// There is no answer, or it breaks off.
    pub async fn send(self, most: usize) -> Result<Reply, Failure> {
        let (wire, total) = (self.wire, self.wire.terms.total);
        let mut until = Instant::now() + total;
        let slow = |_| Failure::slow(total);
        let mut response = timeout_at(until, self.answer()).await.map_err(slow)??;
        let (status, headers) = (response.status(), response.headers().clone());
        let mut body = Body::default();
        loop {
            let chunk = timeout_at(until, response.chunk()).await.map_err(slow)?.map_err(|error| Failure::of(error, total))?;
            let Some(chunk) = chunk else { return Ok(Reply { status, headers, body, cut: false }) };
            if body.bytes.len() + chunk.len() > most {
                return Ok(Reply { status, headers, body, cut: true });
            }
            if body.held.is_none() && body.bytes.len() + chunk.len() > LARGE {
                let began = Instant::now();
                // Waiting for other answers does not count against the server's time.
                let held = timeout(total, wire.guard.large.clone().acquire_owned()).await.map_err(slow)?;
                body.held = held.ok();
                until += began.elapsed();
            }
            body.bytes.extend_from_slice(&chunk);
        }
    }

    /// The answer at the end of all redirects, without its body.
    pub(crate) async fn answer(self) -> Result<Response, Failure> {
        let Self { wire, method, url, mut headers, body } = self;
        let (mut url, mut left) = (url?, wire.terms.redirects);
        loop {
            let mut request = Request::new(method.clone(), url.clone());
            *request.headers_mut() = headers.clone();
            *request.body_mut() = body.clone().map(Into::into);
            let sent = wire.client(&url)?.execute(request).await;
            let response = sent.map_err(|error| Failure::of(error, wire.terms.total))?;
            let Some(next) = next(&method, &url, &response).filter(|_| left > 0) else { return Ok(response) };
            match wire.guard.reach(&next, wire.terms.plain) {
                Ok(_) => {}
                Err(failure @ Failure::Address(_)) => return Err(failure),
                // Otherwise the redirect itself is the answer.
                Err(_) => return Ok(response),
            }
            if next.origin() != url.origin() {
                for name in [AUTHORIZATION, PROXY_AUTHORIZATION, COOKIE] {
                    headers.remove(name);
                }
            }
            left -= 1;
            url = next;
        }
    }
}

/// The target of a redirect, if it may be followed. A request that changes something is not sent to another server, and never with
/// another method.
fn next(method: &Method, url: &Url, response: &Response) -> Option<Url> {
    let to = url.join(response.headers().get(LOCATION)?.to_str().ok()?).ok()?;
    let reads = [Method::GET, Method::HEAD].contains(method);
    let follows = match response.status() {
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND | StatusCode::SEE_OTHER => reads,
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => reads || to.origin() == url.origin(),
        _ => false,
    };
    follows.then_some(to)
}

/// An answer.
#[derive(Debug)]
pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// The body, or its beginning.
    pub body: Body,
    /// Whether the body is longer than the limit.
    pub cut: bool,
}

/// The bytes of an answer. While a large one is held, no other one is read.
#[derive(Debug, Default)]
pub struct Body {
    bytes: Vec<u8>,
    held: Option<OwnedSemaphorePermit>,
}

impl Deref for Body {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes, held: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the rules of UTS 46, whichever tables `idna` has.
    #[test]
    fn a_host_in_another_script_is_asked_under_its_ascii_name() {
        let host = |url: &str| parsed(url).ok().and_then(|url| url.host_str().map(str::to_owned));
        for (url, ascii) in [
            ("https://bücher.example/hook", "xn--bcher-kva.example"),
            ("https://BÜCHER.example", "xn--bcher-kva.example"),
            ("https://例え.テスト", "xn--r8jz45g.xn--zckzah"),
            ("https://ｅｘａｍｐｌｅ。com", "example.com"),
        ] {
            assert!(host(url).is_some_and(|host| host == ascii), "{url}: {:?}", host(url));
        }
        // A right-to-left label with a digit in front, an invisible character and broken Punycode are no names.
        for url in ["https://1א.example", "https://a\u{202e}b.example", "https://xn--a.example"] {
            assert_eq!(host(url), None, "{url}");
        }
    }
}
