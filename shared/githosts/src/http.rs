//! Requests to one host: credentials, timeouts, limits, pages, and the meaning of refusals.

use crate::answer::Answer;
use crate::client::{Look, Request};
use crate::credentials::{Credentials, Proof};
use crate::error::{HostError, Kind};
use crate::repository::{Api, Form};
use keelway_domain::time::{Span, Timestamp};
use keelway_outgoing::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use keelway_outgoing::{Certificates, Failure, Guard, Method, Roots, StatusCode, Terms, Url, Wire};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const CONNECT: Duration = Duration::from_secs(5);
const WHOLE: Duration = Duration::from_secs(25);
const REDIRECTS: usize = 5;
/// How often a failed request is repeated, if repetition is harmless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// The most tries, the first one included.
    pub tries: u32,
    /// The pause before the first repetition. Each pause is shortened by up to half at random, and they double.
    pub pause: Duration,
}

impl Patience {
    /// No repetition.
    pub const NONE: Self = Self { tries: 1, pause: Duration::ZERO };
    /// Enough for a busy host or a broken connection.
    pub const USUAL: Self = Self { tries: 4, pause: Duration::from_millis(400) };

    /// Waits before this repetition; 1 is the first.
    pub(crate) async fn wait(self, repetition: u32) {
        let pause = self.pause * (1 << repetition.clamp(1, 6).saturating_sub(1));
        let part = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().subsec_micros() % 1000;
        tokio::time::sleep(pause / 2 + pause * part / 1000).await;
    }
}

/// The largest answer in bytes. Archives may be larger.
const ANSWER: usize = 16 << 20;
/// The largest size of all pages of one list together, in bytes.
const LIST: usize = 2 * ANSWER;
/// The most pages of one list.
pub(crate) const PAGES: usize = 100;
/// The most pages of changes in one look.
const RECENT: usize = 20;
/// How far a look reads beyond the newest change of the last look: a change may become visible after a newer one.
const OVERLAP: Span = Span::minutes(2);

const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Encodes one segment of a path, including `/`.
pub(crate) fn segment(text: &str) -> String {
    utf8_percent_encode(text, UNRESERVED).to_string()
}

/// Encodes several segments of a path, such as the path of a file, or a branch.
pub(crate) fn path(text: &str) -> String {
    text.split('/').map(segment).collect::<Vec<_>>().join("/")
}

/// The client of one host.
#[derive(Debug)]
pub(crate) struct Http {
    patience: Patience,
    wire: Wire,
    base: String,
    host: String,
    authorization: HeaderValue,
    /// The texts that no message may contain.
    secrets: Secrets,
}

#[derive(Clone)]
pub(crate) struct Secrets(Vec<String>);

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secrets(…)")
    }
}

impl Secrets {
    /// A text of the host without secrets.
    pub(crate) fn without(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| text.replace(secret, "***"))
    }
}

impl Http {
    pub(crate) fn new(api: &Api, credentials: &Credentials, guard: &Guard) -> Result<Self, HostError> {
        let url = Url::parse(&api.base).map_err(|error| HostError::new(Kind::Refused, format!("{:?}: {error}", api.base)))?;
        let host = url.origin().ascii_serialization();
        let host = host.split_once("://").map_or(host.as_str(), |(_, host)| host).to_owned();
        let roots = match credentials.ca().map(|pem| Certificates::from_pem(pem.as_bytes())) {
            None => Roots::Known,
            Some(Some(roots)) => Roots::Also(roots),
            Some(None) => {
                return Err(HostError::new(Kind::Credentials, "caFile in the secret is not a certificate in PEM form"));
            }
        };
        let terms = Terms { connect: CONNECT, total: WHOLE, idle: None, roots, redirects: REDIRECTS, plain: false };
        let wire = Wire::new(guard, terms);
        wire.prepare(&api.base).map_err(|failure| lost(&host, &failure))?;
        let proof = match (api.form, credentials.proof(api.form)?) {
            (Form::Gitea, Proof::Token(token)) => format!("token {token}"),
            (_, Proof::Token(token)) => format!("Bearer {token}"),
            (_, Proof::Basic(username, password)) => format!("Basic {}", crate::base64(format!("{username}:{password}"))),
        };
        let mut authorization = HeaderValue::from_str(&proof)
            .map_err(|_| HostError::new(Kind::Credentials, "the token in the secret has characters that no token has"))?;
        authorization.set_sensitive(true);
        Ok(Self {
            wire,
            patience: Patience::NONE,
            base: api.base.clone(),
            host,
            authorization,
            secrets: Secrets(credentials.secrets()),
        })
    }

    /// The name of the host, for messages.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }
    pub(crate) fn patience(&self) -> Patience {
        self.patience
    }
    pub(crate) fn be_called(&mut self, host: &str) {
        host.clone_into(&mut self.host);
    }
    pub(crate) fn be_patient(&mut self, patience: Patience) {
        self.patience = patience;
    }
    #[cfg(test)]
    pub(crate) fn secrets(&self) -> Secrets {
        self.secrets.clone()
    }

    /// The base of the API, without a trailing slash.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// A request to a path below the base. `what`: the object of the request, for messages.
    pub(crate) fn call(&self, method: Method, path: &str, what: &str) -> Call<'_> {
        self.call_at(method, &format!("{}{path}", self.base), what)
    }

    /// A request to another path of the same host.
    pub(crate) fn call_at(&self, method: Method, url: &str, what: &str) -> Call<'_> {
        let harmless = matches!(method, Method::GET | Method::DELETE);
        let request = self.wire.call(method, url).header(AUTHORIZATION, self.authorization.clone());
        Call { http: self, request, what: what.to_owned(), harmless }
    }

    /// Reads a list page by page, as long as the `Link` header names another page.
    pub(crate) async fn pages<'h, T: DeserializeOwned>(&'h self, call: impl Fn(String) -> Call<'h>) -> Result<Vec<T>, HostError> {
        let (mut items, mut left) = (vec![], LIST);
        for page in 1..=PAGES {
            let answer = call(page.to_string()).send_up_to(left.min(ANSWER)).await?;
            left -= answer.body.len();
            let answer = answer.ok()?;
            items.extend(answer.json::<Vec<T>>()?);
            if !answer.has_next() {
                return Ok(items);
            }
        }
        let message = format!("{}: the list has more than {PAGES} pages, which is more than is read", self.host);
        Err(HostError::new(Kind::TooLarge, message))
    }

    /// Reads a list that has the last changed items first, as far as a look needs it: until all wanted items were seen, or until
    /// the items have not changed since the look that returned the mark. `about` returns the number of an item and the time of its
    /// last change.
    pub(crate) async fn recent<'h, T: DeserializeOwned>(
        &'h self,
        call: impl Fn(String) -> Call<'h>,
        wanted: &[u64],
        mark: Option<&str>,
        about: impl Fn(&T) -> (u64, Option<Timestamp>),
    ) -> Result<Recent<T>, HostError> {
        let (since, tag) = mark.map(Recent::<T>::read).unwrap_or_default();
        let mut missing: BTreeSet<u64> = wanted.iter().copied().collect();
        let (mut items, mut left) = (vec![], LIST);
        let mut seen = None;
        for page in 1..=RECENT {
            let mut request = call(page.to_string());
            if let Some(tag) = tag.filter(|_| page == 1) {
                request = request.header("if-none-match", tag);
            }
            let answer = request.send_up_to(left.min(ANSWER)).await?;
            left -= answer.body.len();
            // Every change appears on the first page.
            if answer.status == StatusCode::NOT_MODIFIED && page == 1 && tag.is_some() {
                return Ok(Recent { items: None, mark: mark.map(str::to_owned) });
            }
            let answer = answer.ok()?;
            let read = answer.json::<Vec<T>>()?;
            let time = |item: Option<&T>| item.and_then(|item| about(item).1);
            if page == 1 {
                // Without a time, every look reads everything that is wanted.
                let newest = time(read.first()).or(since);
                seen = newest.map(|newest| Recent::<T>::write(newest, answer.header("etag")));
            }
            let known = since.zip(time(read.last())).is_some_and(|(since, oldest)| oldest.0 < since.0 - OVERLAP.0);
            missing.retain(|number| read.iter().all(|item| about(item).0 != *number));
            items.extend(read);
            if missing.is_empty() || known || !answer.has_next() {
                return Ok(Recent { items: Some(items), mark: seen });
            }
        }
        // There are more changes than one look reads: the next look starts at the same place.
        Ok(Recent { items: Some(items), mark: mark.map(str::to_owned) })
    }

    /// Reads only the first pages of a list.
    pub(crate) async fn first<'h, T: DeserializeOwned>(
        &'h self,
        call: impl Fn(String) -> Call<'h>,
        most: usize,
    ) -> Result<Vec<T>, HostError> {
        let (mut items, mut left) = (vec![], LIST);
        for page in 1..=most {
            let answer = call(page.to_string()).send_up_to(left.min(ANSWER)).await?;
            left -= answer.body.len();
            let answer = answer.ok()?;
            items.extend(answer.json::<Vec<T>>()?);
            if !answer.has_next() {
                break;
            }
        }
        Ok(items)
    }
}

/// The part of a list that was read, with the last changed items first.
pub(crate) struct Recent<T> {
    /// `None`: nothing has changed.
    items: Option<Vec<T>>,
    /// The newest change that was seen, and the tag of the first page.
    mark: Option<String>,
}

impl<T> Recent<T> {
    fn read(mark: &str) -> (Option<Timestamp>, Option<&str>) {
        let (since, tag) = mark.split_once(' ').unwrap_or((mark, ""));
        let since = since.parse().ok().map(Timestamp);
        (since, Some(tag).filter(|tag| since.is_some() && !tag.is_empty()))
    }

    fn write(newest: Timestamp, tag: Option<&str>) -> String {
        tag.map_or_else(|| newest.0.to_string(), |tag| format!("{} {tag}", newest.0))
    }

    /// The list as pull requests, without those of other repositories.
    pub(crate) fn look(self, request: impl Fn(T) -> Option<Request>) -> Look {
        let requests = self.items.map(|pulls| pulls.into_iter().filter_map(request).collect());
        Look { requests, mark: self.mark, every: false }
    }
}

/// A request under construction.
pub(crate) struct Call<'h> {
    http: &'h Http,
    request: keelway_outgoing::Call<'h>,
    what: String,
    /// Whether a repetition has no further effect.
    harmless: bool,
}

impl Call<'_> {
    pub(crate) fn query(mut self, pairs: &[(&str, &str)]) -> Self {
        self.request = self.request.query(pairs);
        self
    }
    /// Adds a header, unless its value is invalid.
    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.request = self.request.header(HeaderName::from_static(name), value);
        }
        self
    }
    /// Adds a JSON body. Every value can be serialised.
    pub(crate) fn json(mut self, body: &impl Serialize) -> Self {
        let body = serde_json::to_vec(body).unwrap_or_default();
        self.request = self.request.header(CONTENT_TYPE, HeaderValue::from_static("application/json")).body(body);
        self
    }
    /// Adds the fields of a form as `multipart/form-data`.
    pub(crate) fn form(mut self, fields: &[(&str, &str)]) -> Self {
        let (kind, body) = crate::multipart::encode(fields);
        self.request = self.request.body(body);
        self.header("content-type", &kind)
    }

    /// Declares that a repetition has no further effect that anybody sees.
    pub(crate) fn harmless(self) -> Self {
        Self { harmless: true, ..self }
    }

    /// Sends the request. Every status is an answer; [`Answer::ok`] turns refusals into errors.
    pub(crate) async fn send(self) -> Result<Answer, HostError> {
        self.send_up_to(ANSWER).await
    }

    /// Sends the request, and reads at most this many bytes.
    pub(crate) async fn send_up_to(self, limit: usize) -> Result<Answer, HostError> {
        let Self { http, request, what, harmless } = self;
        let tries = if harmless { http.patience.tries } else { 1 };
        let mut tried = 1;
        let reply = loop {
            let reply = request.clone().send(limit).await.map_err(|failure| lost(&http.host, &failure));
            if tried >= tries || !passes(&reply) {
                break reply?;
            }
            http.patience.wait(tried).await;
            tried += 1;
        };
        if reply.cut {
            let message = format!("{}: the answer about {what} is larger than {} MiB", http.host, limit >> 20);
            return Err(HostError::new(Kind::TooLarge, message));
        }
        let keelway_outgoing::Reply { status, headers, body, .. } = reply;
        Ok(Answer { host: http.host.clone(), what, status, headers, body, secrets: http.secrets.clone() })
    }
}

/// Whether the same request may succeed a moment later.
fn passes(reply: &Result<keelway_outgoing::Reply, HostError>) -> bool {
    match reply {
        Ok(reply) => matches!(reply.status.as_u16(), 408 | 425 | 500..) && !reply.headers.contains_key("retry-after"),
        Err(error) => error.kind == Kind::Transient,
    }
}

/// The error of a request without an answer.
fn lost(host: &str, failure: &Failure) -> HostError {
    let (kind, message) = match failure {
        Failure::Address(_) | Failure::Url(_) => (Kind::Address, format!("{host} is not asked: {failure}")),
        Failure::Unusable(_) => (Kind::Refused, format!("{host} is not asked: {failure}")),
        Failure::TooLarge(..) => (Kind::TooLarge, format!("{host}: {failure}")),
        Failure::TooSlow(seconds) => (Kind::Transient, format!("{host} did not answer within {seconds} seconds")),
        Failure::Untrusted(_) => (
            Kind::Transient,
            format!("{host} has a certificate that is not trusted: add the authority's certificate as caFile to the secret"),
        ),
        Failure::Unreachable(_) => (Kind::Transient, format!("{host} cannot be reached")),
        Failure::Broken(_) => (Kind::Transient, format!("the connection to {host} broke")),
    };
    HostError::new(kind, message)
}
