//! A deployment config as a subject of the protocol.

use super::message::Message;
use super::{NAME, codec, keys};
use crate::item::{Attrs, Item, Key};
use crate::ports::PortError;
use crate::protocol::{Letter, Place, Subject, level};
use keelway_domain::cause::Cause;
use keelway_domain::deployments::{Config, Order, Record};
use keelway_domain::event::CloudEvent;
use keelway_domain::ids::RecordId;
use keelway_domain::level::Level as _;
use keelway_domain::time::Timestamp;

/// The effects that a config owes besides those of all engines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Duty {
    /// Order an evaluation, because a deployer's call was written.
    Evaluate(String),
    /// Delete the versions below this one.
    Prune(u64),
}

impl Subject for Config {
    type Send = Order;
    type Duty = Duty;

    const PART: &'static str = NAME;
    const FORMAT: i64 = codec::FORMAT;
    const ANY_MESSAGE_BY_CLOCK: bool = true;

    fn key(&self) -> Key {
        keys::config(&self.address())
    }
    fn decode(item: &Item) -> Result<Self, PortError> {
        codec::config(item)
    }
    /// A config that has ended is not removed: if it is applied again, the numbers of its versions continue.
    fn attributes(&self, _: Timestamp) -> Attrs {
        codec::attributes(self, self.key())
    }
    fn place(&self) -> Place {
        Place { scope: self.namespace.clone(), since: self.began, name: self.name.clone() }
    }
    fn record(&self) -> Option<RecordId> {
        self.record
    }
    fn wake(&self) -> Option<Timestamp> {
        self.wake.filter(|_| !self.over())
    }
    fn armed_by(&self) -> Option<u64> {
        Some(self.armed_by)
    }
    fn over(&self) -> bool {
        Config::over(self)
    }
    fn events(&self, id: &RecordId, record: &Record) -> Vec<CloudEvent> {
        level::events("deploymentconfig", &self.address(), id, record)
    }
    fn letter(&self, _: &RecordId, _: usize, order: &Order) -> Letter {
        let of = self.address();
        match order {
            Order::Start { n, attempt, at } => super::Job::Start { of, n: *n, attempt: *attempt, at: *at },
            Order::Look { n, at } => super::Job::Look { of, n: *n, at: *at },
        }
        .letter()
    }
    fn wake_up(&self, at: Timestamp) -> Letter {
        Message::Wake { to: self.address(), at }.letter()
    }
    fn owed(&self, cause: Cause) -> Vec<Duty> {
        // The worker that was to prune may have stopped before.
        if cause.again && self.oldest > 1 { vec![Duty::Prune(self.oldest)] } else { vec![] }
    }
    fn fresh(&self, old: Option<&Self>) -> Vec<Duty> {
        let pruned = old.is_some_and(|old| old.oldest < self.oldest);
        if pruned { vec![Duty::Prune(self.oldest)] } else { vec![] }
    }
}
