//! The receivers of the simulation: whatever a server of other people may do, and a log of what it got.

use super::planted::{Plant, Planted};
use keelway_domain::ids::{SubjectId, hash64};
use keelway_domain::time::{Span, Timestamp};
use keelway_domain::webhooks::{Exchange, id};
use keelway_engine::ports::{Clock, PortError};
use keelway_engine::webhooks::{Address, Request, Sender, keys};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The text of the secret that all requests carry.
pub const SECRET: &str = "whsec_c2ltdWxhdGlvbi1vZi1kZWxpdmVyaWVz";

/// How a receiver is disposed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    /// It takes everything.
    Takes,
    /// It takes nothing and answers with this status.
    Refuses(u16),
    /// It answers with this status, and wants to be left alone for so many seconds.
    Busy(u16, i64),
    /// It does not answer.
    Silent,
    /// It takes one of three requests, and answers late.
    Slow,
}

/// A request that a receiver got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Got {
    /// `webhook-id`.
    pub id: SubjectId,
    /// Whether the receiver took it.
    pub taken: bool,
}

/// The receivers, and what the watcher knows of their subscriptions.
#[derive(Debug, Default)]
pub struct Yard {
    /// How receivers are disposed, by name of the subscription.
    pub moods: BTreeMap<String, Mood>,
    /// What was requested for each delivery.
    pub got: HashMap<SubjectId, Vec<Got>>,
    /// Since when subscriptions take nothing, counted in requests.
    pub stopped: HashMap<Address, u64>,
    /// Since when deliveries are over.
    pub ended: HashMap<SubjectId, u64>,
    /// What must never happen, and did.
    pub wrong: Option<String>,
}

/// The yard of one seed.
pub type Shared = Arc<Mutex<Yard>>;

pub(super) fn lock(yard: &Shared) -> MutexGuard<'_, Yard> {
    yard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A worker's way to the receivers.
#[derive(Debug, Clone)]
pub struct Receivers {
    pub(super) ports: Planted,
    pub(super) yard: Shared,
}

impl Receivers {
    /// A request was made: was there still somebody who wanted it?
    fn inspect(&self, request: &Request<'_>) {
        let delivery = request.delivery.id;
        let (read, seen) = (self.ports.read_at(&keys::subscription(request.of)), self.ports.read_at(&keys::delivery(delivery)));
        let mut yard = lock(&self.yard);
        let known = |at: Option<&u64>, read| at.is_some_and(|at| *at < read);
        if known(yard.stopped.get(request.of), read) {
            yard.wrong = Some(format!("{} takes nothing any more and gets a request for {delivery}", request.of));
        }
        if known(yard.ended.get(&delivery), seen) {
            yard.wrong = Some(format!("{delivery} is over, and {} gets a request for it", request.of));
        }
    }
}

impl Sender for Receivers {
    async fn send(&self, request: &Request<'_>) -> Result<Exchange, PortError> {
        let (name, delivery) = (&request.of.name, request.delivery);
        let mood = lock(&self.yard).moods.get(name).copied().unwrap_or(Mood::Takes);
        for _ in 0..if mood == Mood::Slow { 4 } else { 0 } {
            self.ports.ports().pause(Span::seconds(5)).await;
        }
        let of = (request.of.namespace.as_str(), name.as_str());
        let webhook_id = id(of, delivery.text("source"), delivery.text("id"), None);
        let n = delivery.attempts.len();
        let reply = self.ports.inner.outside(
            || format!("post {name} {} {}", delivery.id, n + 1),
            |_| {
                let mut yard = lock(&self.yard);
                let got = yard.got.entry(delivery.id).or_default();
                let dice = hash64(&[&delivery.id.0.to_be_bytes(), &got.len().to_be_bytes()]);
                let status = match mood {
                    Mood::Takes => Some(200 + (dice % 5) as u16),
                    Mood::Refuses(status) | Mood::Busy(status, _) => Some(status),
                    Mood::Silent => None,
                    Mood::Slow if dice.is_multiple_of(3) => Some(202),
                    Mood::Slow => Some(504),
                };
                got.push(Got { id: webhook_id, taken: status.is_some_and(|status| (200..300).contains(&status)) });
                status
            },
        );
        let reply = reply.await;
        self.inspect(request);
        let status = reply?;
        let retry_after = match mood {
            Mood::Busy(_, seconds) => Some(Span::seconds(seconds)),
            _ => None,
        };
        // A receiver may show what it got, and its answer is kept: without the secrets.
        let told = format!("I got {SECRET}");
        let answer = if self.ports.plant == Some(Plant::SecretTold) { told } else { told.replace(SECRET, "***") };
        let error = if status.is_none() { "no answer within 10 s".to_owned() } else { String::new() };
        let answer = if status.is_some() { answer } else { String::new() };
        Ok(Exchange { at: request.now, status, ms: 7, answer, error, retry_after })
    }
}

/// A time by which a request is at the earliest, after an attempt: as the documentation has it.
pub fn earliest(attempt: &Exchange, made: usize) -> Timestamp {
    const MINUTES: [i64; 10] = [0, 0, 5, 30, 120, 300, 600, 840, 1200, 1440];
    let pause = if made == 1 { Span::seconds(5) } else { Span::minutes(MINUTES[made.min(9)]) };
    let asked = attempt.retry_after.unwrap_or_default().min(Span::minutes(24 * 60));
    attempt.at + pause.max(asked)
}
