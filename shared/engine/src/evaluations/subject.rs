//! The evaluations of a service as a subject of the protocol.

use super::message::Message;
use super::{NAME, codec, keys};
use crate::item::{Attrs, Item, Key};
use crate::ports::PortError;
use crate::promotions;
use crate::protocol::{Letter, Place, Subject};
use keelway_domain::evaluations::{Asker, Order, Record, SOURCE, Service, Told};
use keelway_domain::event::CloudEvent;
use keelway_domain::ids::{RecordId, context_of};
use keelway_domain::names::Context;
use keelway_domain::time::Timestamp;
use std::convert::Infallible;

impl Subject for Service {
    type Send = Order;
    type Duty = Infallible;

    const PART: &'static str = NAME;
    const FORMAT: i64 = codec::FORMAT;
    const PACKS_RECORDS: bool = true;
    /// Whatever comes may find that a source is due to be asked.
    const ANY_MESSAGE_BY_CLOCK: bool = true;

    fn key(&self) -> Key {
        keys::service(&self.place)
    }
    fn decode(item: &Item) -> Result<Self, PortError> {
        codec::service(item)
    }
    /// It is not removed: what came before is compared with.
    fn attributes(&self, _: Timestamp) -> Attrs {
        codec::attributes(self)
    }
    fn place(&self) -> Place {
        let [project, stage, service] = &self.place;
        Place { scope: project.clone(), since: self.began, name: format!("{stage}#{service}") }
    }
    fn record(&self) -> Option<RecordId> {
        self.record
    }
    fn wake(&self) -> Option<Timestamp> {
        self.wake
    }
    fn over(&self) -> bool {
        self.open.is_empty()
    }
    /// Each event has the context of its own sequence.
    fn events(&self, id: &RecordId, record: &Record) -> Vec<CloudEvent> {
        record.events(id, &Context::of(&context_of(SOURCE, &self.place.join("/")).to_string()))
    }
    fn letter(&self, _: &RecordId, _: usize, order: &Order) -> Letter {
        match order {
            Order::Measure { id, attempt } => {
                Message::Measure { to: self.place.clone(), id: id.clone(), attempt: *attempt }.letter()
            }
            Order::Tell { id, told: Told { asker: Asker { pipeline, environment, time, .. }, answer } } => {
                let (to, environment, id) = (pipeline.clone(), environment.clone(), id.clone());
                promotions::Message::Evaluated { to, environment, id, time: *time, answer: answer.clone() }.letter()
            }
        }
    }
    fn wake_up(&self, at: Timestamp) -> Letter {
        Message::Wake { to: self.place.clone(), at }.letter()
    }
}
