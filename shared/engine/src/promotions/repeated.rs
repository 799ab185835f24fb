//! Requests with an idempotency key of the client: the content of the first request, and its answer.

use super::{Promotions, keys};
use crate::item::Item;
use crate::ports::{Condition, PortError, Ports, Write, Written};
use keelway_domain::time::Span;

/// How long a request is remembered, at least.
pub const KEEP: Span = Span::minutes(24 * 60);

/// A request with a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keyed {
    /// The hash of everything the key is valid for, and of the key.
    pub id: String,
    /// The hash of the request's content.
    pub asked: String,
}

/// What is known about a request with a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Known {
    /// It has no final answer yet, so it is handled, possibly again.
    Open,
    /// Its answer.
    Answered(String),
    /// The key belongs to a request with other content.
    Different,
}

impl<P: Ports> Promotions<P> {
    /// Stores a request, or finds the stored one. One write; for a known key, also one read.
    ///
    /// # Errors
    /// The store fails.
    pub async fn remember_request(&self, request: &Keyed) -> Result<Known, PortError> {
        let put = Write::Put(self.request(request), Condition::Absent);
        if self.ports.write(&put).await? == Written::Done {
            return Ok(Known::Open);
        }
        // It may have expired in between, and then counts as new.
        let Some(known) = self.ports.get(&keys::request(&request.id)).await? else { return Ok(Known::Open) };
        Ok(match known.text("an") {
            _ if known.text("as") != Some(&request.asked) => Known::Different,
            Some(answer) => Known::Answered(answer.to_owned()),
            None => Known::Open,
        })
    }

    /// Remembers the final answer to a request.
    ///
    /// # Errors
    /// The store fails.
    pub async fn remember_answer(&self, request: &Keyed, answer: &str) -> Result<(), PortError> {
        let put = Write::Put(self.request(request).with("an", answer), Condition::Always);
        self.ports.write(&put).await.map(|_| ())
    }

    fn request(&self, request: &Keyed) -> Item {
        let expires = self.ports.now() + KEEP;
        Item::new(keys::request(&request.id)).with("as", request.asked.as_str()).with("ttl", expires.0 / 1000 + 1)
    }
}
