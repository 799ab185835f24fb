//! An execution as a subject of the protocol.

use super::keys::{self, LaneKey};
use super::message::{Address, Message};
use super::{NAME, codec};
use crate::item::{Attrs, Item, Key};
use crate::ports::PortError;
use crate::protocol::{Letter, Place, Subject};
use keelway_domain::cause::Cause;
use keelway_domain::event::CloudEvent;
use keelway_domain::ids::RecordId;
use keelway_domain::sequences::{self, Duty, Execution, FollowUp, Gathered, Record};
use keelway_domain::time::Timestamp;

impl Subject for Execution {
    type Send = FollowUp;
    type Duty = Duty;

    const PART: &'static str = NAME;
    const FORMAT: i64 = codec::EXECUTIONS;
    const PACKS_RECORDS: bool = true;

    fn key(&self) -> Key {
        keys::execution(&Address::of(self))
    }
    fn decode(item: &Item) -> Result<Self, PortError> {
        codec::execution(item)
    }
    fn attributes(&self, expires: Timestamp) -> Attrs {
        codec::attributes(self, expires)
    }
    fn place(&self) -> Place {
        let name = format!("{}#{}", self.context, self.id);
        Place { scope: self.project.to_string(), since: self.accepted, name }
    }
    fn record(&self) -> Option<RecordId> {
        self.record
    }
    fn wake(&self) -> Option<Timestamp> {
        self.wake.filter(|_| self.outcome.is_none())
    }
    fn armed_by(&self) -> Option<u64> {
        self.armed_by
    }
    fn over(&self) -> bool {
        self.outcome.is_some()
    }
    fn is_swept(&self, record: &Record) -> bool {
        // An open task whose trigger nobody answers, an execution that waits for its lane, a wake-up that is overdue. An end, an
        // approval and a follow-up are told once.
        let told = record.events.iter().filter(|event| event.id.is_some()).count() + record.sends.len();
        self.outcome.is_none() && told == 0 && !self.waits_for_approval()
    }
    fn owed(&self, cause: Cause) -> Vec<Duty> {
        sequences::owed(self, cause)
    }
    fn fresh(&self, old: Option<&Self>) -> Vec<Duty> {
        sequences::fresh(old, self)
    }
    fn events(&self, id: &RecordId, record: &Record) -> Vec<CloudEvent> {
        // Only the task of the newest record can still be open; a later record was made when the task was over.
        if self.record == Some(*id) { record.events(id, &self.context) } else { record.events_but_trigger(id, &self.context) }
    }
    fn letter(&self, id: &RecordId, n: usize, _: &FollowUp) -> Letter {
        Message::Follow { to: Address::of(self), record: *id, n }.letter()
    }
    fn wake_up(&self, at: Timestamp) -> Letter {
        Message::Wake { to: Address::of(self), at }.letter()
    }
    fn keeps(&self) -> Vec<Key> {
        let partition = keys::context_partition(&self.project, &self.context);
        let answers = self.reactions.iter().filter(|reaction| reaction.has_data);
        let mut kept: Vec<Key> =
            answers.map(|answer| Key::new(partition.clone(), keys::event_sort(answer.at, answer.content))).collect();
        kept.push(Key::new(partition, gathered(self)));
        kept.push(keys::context(&self.project, &self.context));
        kept
    }
}

/// Sort key of the item that holds the payload that an execution has gathered.
pub(super) fn gathered(x: &Execution) -> String {
    match x.gathered() {
        Gathered::Record(id) => keys::record_sort(&id),
        Gathered::Payload(sort) => sort.to_owned(),
    }
}

/// The entry of an execution's present request in its lane's queue.
pub(crate) fn entry(x: &Execution) -> Key {
    LaneKey::of(x).entry(x, x.ask)
}
