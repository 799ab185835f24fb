//! Limits slow receivers to a share of a worker's places, so that other receivers do not wait for them.

use super::Address;
use keelway_domain::time::{Span, Timestamp};
use keelway_domain::webhooks::Exchange;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The number of messages that a worker gets at once: `BatchSize` of the function's queue.
pub const PLACES: usize = 5;
/// The most places for requests to one slow receiver: a third.
const SHARE: usize = if PLACES < 3 { 1 } else { PLACES / 3 };
/// A receiver is slow if a request took this many milliseconds: half of the timeout.
const LONG: u64 = 2500;
/// How long a receiver counts as slow.
pub const REMEMBERED: Span = Span::minutes(5);

/// A worker's knowledge of a receiver.
#[derive(Debug, Default)]
struct Receiver {
    /// The requests in progress.
    requests: usize,
    /// When it was last slow.
    long: Option<Timestamp>,
}

/// The places of a worker.
#[derive(Debug, Default)]
pub struct Places(Mutex<HashMap<Address, Receiver>>);

impl Places {
    fn lock(&self) -> MutexGuard<'_, HashMap<Address, Receiver>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place for a request. `None`: the receiver is slow, and has used its share.
    pub fn take(&self, of: &Address, now: Timestamp) -> Option<Place<'_>> {
        let mut all = self.lock();
        let receiver = all.entry(of.clone()).or_default();
        let takes_long = receiver.long.is_some_and(|at| now - at < REMEMBERED);
        if takes_long && receiver.requests >= SHARE {
            return None;
        }
        receiver.requests += 1;
        Some(Place { places: self, of: of.clone() })
    }
}

/// A place, which is free again when this is dropped.
#[derive(Debug)]
pub struct Place<'a> {
    places: &'a Places,
    of: Address,
}

impl Place<'_> {
    /// Records the result of the request.
    pub fn made(self, attempt: &Exchange, now: Timestamp) {
        if let Some(receiver) = self.places.lock().get_mut(&self.of) {
            receiver.long = (attempt.ms >= LONG).then_some(now);
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut all = self.places.lock();
        if let Some(receiver) = all.get_mut(&self.of) {
            receiver.requests -= 1;
            // Nothing to remember of receivers that answer.
            if receiver.requests == 0 && receiver.long.is_none() {
                all.remove(&self.of);
            }
        }
    }
}
