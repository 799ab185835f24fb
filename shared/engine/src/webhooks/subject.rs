//! A delivery as a subject of the protocol.

use super::message::Message;
use super::{NAME, codec, keys};
use crate::item::{Attrs, Item, Key};
use crate::ports::PortError;
use crate::protocol::{Letter, Place, Subject};
use keelway_domain::cause::Cause;
use keelway_domain::event::CloudEvent;
use keelway_domain::ids::RecordId;
use keelway_domain::names::Context;
use keelway_domain::time::Timestamp;
use keelway_domain::webhooks::{Delivery, Health, Nothing, Record};

impl Subject for Delivery {
    type Send = Nothing;
    /// The effect of the last attempt on the subscription, which is noted there.
    type Duty = Health;

    const PART: &'static str = NAME;
    const FORMAT: i64 = codec::FORMAT;
    /// A copy of an earlier wake-up may make an attempt that is due by then.
    const ANY_MESSAGE_BY_CLOCK: bool = true;

    fn key(&self) -> Key {
        keys::delivery(self.id)
    }
    fn decode(item: &Item) -> Result<Self, PortError> {
        codec::delivery(item)
    }
    fn attributes(&self, expires: Timestamp) -> Attrs {
        codec::attributes(self, expires)
    }
    fn place(&self) -> Place {
        Place { scope: self.of.0.clone(), since: self.began, name: self.id.to_string() }
    }
    fn record(&self) -> Option<RecordId> {
        self.record
    }
    fn wake(&self) -> Option<Timestamp> {
        self.due
    }
    fn over(&self) -> bool {
        self.end.is_some()
    }
    fn events(&self, id: &RecordId, record: &Record) -> Vec<CloudEvent> {
        record.events(id, &Context::of(self.text("shkeptncontext")))
    }
    fn letter(&self, _: &RecordId, _: usize, what: &Nothing) -> Letter {
        match *what {}
    }
    fn wake_up(&self, at: Timestamp) -> Letter {
        Message::Wake { to: self.id, at }.letter()
    }
    fn owed(&self, cause: Cause) -> Vec<Health> {
        self.health.filter(|_| cause.again).into_iter().collect()
    }
    fn fresh(&self, old: Option<&Self>) -> Vec<Health> {
        let tried = old.is_some_and(|old| old.attempts.len() < self.attempts.len());
        self.health.filter(|_| tried).into_iter().collect()
    }
}
