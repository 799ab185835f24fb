//! What an engine supplies: the subject its messages are addressed to, and the engine itself.

use super::delivery::{Delivery, Handled};
use super::sweep::Tick;
use crate::item::{Attrs, Item, Key, Name};
use crate::ports::{Condition, PortError, Ports, Write};
use keelway_domain::cause::Cause;
use keelway_domain::event::CloudEvent;
use keelway_domain::ids::RecordId;
use keelway_domain::record::Record;
use keelway_domain::time::{Span, Timestamp};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::future::Future;

/// The state of whatever messages are addressed to: one item with a version, which a commit raises by one.
pub trait Subject: Clone + Debug + PartialEq + Send + Sync {
    /// What its commits set off in others; each becomes one message.
    type Send: Clone + Debug + PartialEq + Serialize + DeserializeOwned + Send + Sync;
    /// What its states owe besides the effects that all engines share.
    type Duty: Clone + Debug + PartialEq + Send + Sync;

    /// The newest format of its items that this code knows. Items of a newer one wait for newer code.
    const FORMAT: i64;

    /// Where its item is.
    fn key(&self) -> Key;
    /// Reads an item whose format is known.
    ///
    /// # Errors
    /// [`PortError::Refused`] for an item that cannot be read.
    fn decode(item: &Item) -> Result<Self, PortError>;
    /// Its attributes, without key, version and format. `expires`: when an ended one may be removed.
    fn attributes(&self, expires: Timestamp) -> Attrs;
    /// The record of its last transition that had one.
    fn record(&self) -> Option<RecordId>;
    /// The pending wake-up, while there is something to wake.
    fn wake(&self) -> Option<Timestamp>;
    /// Whether it has ended: it leaves the sweep, and expires.
    fn over(&self) -> bool;
    /// Everything it owes of its engine's own duties, for the message at hand.
    fn owed(&self, cause: Cause) -> Vec<Self::Duty>;
    /// The duties that come from having replaced `old` (`None`: from having been created).
    fn fresh(&self, old: Option<&Self>) -> Vec<Self::Duty>;
    /// The events of one of its records that may still be published: work that is over is never announced.
    fn events(&self, id: &RecordId, record: &RecordOf<Self>) -> Vec<CloudEvent>;
    /// The message that the `n`-th entry of a record's `sends` becomes.
    fn letter(&self, id: &RecordId, n: usize, what: &Self::Send) -> Letter;
    /// The message that wakes it at a time, and the name of the timer that sends it.
    fn wake_up(&self, at: Timestamp) -> (String, Letter);
    /// Items besides its own that it needs as long as it is open; the sweep keeps them from expiring.
    fn keeps(&self) -> Vec<Key>;
    /// Since when it is as it is: what it keeps is younger than this only by what was written since.
    fn since(&self) -> Timestamp;
}

/// The records of a subject.
pub type RecordOf<S> = Record<<S as Subject>::Send>;

/// A message for an engine's queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    /// The engine.
    pub to: &'static str,
    /// What it says.
    pub body: String,
}

/// An engine on its ports.
pub trait Engine: Send + Sync {
    /// The ports.
    type Ports: Ports;
    /// What its messages are addressed to.
    type State: Subject;
    /// Its own messages.
    type Message: Debug + PartialEq + Clone + Serialize + DeserializeOwned + Send + Sync;

    /// Its name: of its queue, and of its part of the index of open work.
    const NAME: &'static str;

    /// The ports.
    fn ports(&self) -> &Self::Ports;
    /// How long records, and subjects that have ended, are kept.
    fn retention(&self) -> Span;
    /// Handles one delivery. `Ok`: acknowledge it. `Err`: it must come back; nothing is lost by handling it again.
    fn handle(&self, delivery: &Delivery<Self::Message>) -> impl Future<Output = Result<Handled, PortError>> + Send;
    /// Fulfils a duty; it may be fulfilled any number of times.
    fn perform(
        &self,
        state: &Self::State,
        duty: &<Self::State as Subject>::Duty,
    ) -> impl Future<Output = Result<(), PortError>> + Send;
    /// Looks at open subjects for the sweep: which of them need a message, and which one.
    fn look(&self, open: &[Loaded<Self::State>], tick: &mut Tick) -> impl Future<Output = Result<Vec<Letter>, PortError>> + Send;
}

/// A state and the version of its item.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded<S> {
    /// The state.
    pub x: S,
    /// The item's version.
    pub version: i64,
}

impl<S: Subject> Loaded<S> {
    /// Reads an item.
    ///
    /// # Errors
    /// [`PortError::Retry`] for an item of a newer format, [`PortError::Refused`] for one that cannot be read.
    pub fn read(item: &Item) -> Result<Self, PortError> {
        check_format(item, S::FORMAT)?;
        Ok(Self { x: S::decode(item)?, version: item.version() })
    }

    /// The write that moves it on to the next state: only what differs, so that attributes a newer version has added survive.
    pub fn update(&self, next: &S, expires: Timestamp) -> Write {
        let (before, after) = (self.x.attributes(expires), next.attributes(expires));
        let remove = before.keys().filter(|name| !after.contains_key(*name)).cloned().collect();
        let mut set: Attrs = after.into_iter().filter(|(name, value)| before.get(name) != Some(value)).collect();
        set.insert(Name::Borrowed("v"), (self.version + 1).into());
        Write::Update { key: next.key(), condition: Condition::Version(self.version), set, remove, raise: false }
    }
}

/// The write that creates a subject.
pub fn create<S: Subject>(x: &S, expires: Timestamp) -> Write {
    let mut item = Item { key: x.key(), attrs: x.attributes(expires) };
    item.attrs.insert(Name::Borrowed("v"), 1i64.into());
    item.attrs.insert(Name::Borrowed("f"), S::FORMAT.into());
    Write::Put(item, Condition::Absent)
}

/// Refuses items of a format that this code does not know: the message waits for newer code.
///
/// # Errors
/// [`PortError::Retry`] for an item of a newer format.
pub fn check_format(item: &Item, known: i64) -> Result<(), PortError> {
    match item.number("f") {
        Some(format) if format > known => Err(PortError::Retry {
            request: "decode",
            reason: format!("item {} has format {format}, this code knows {known}: deploy the newer functions", item.key),
        }),
        _ => Ok(()),
    }
}

/// One thing that a committed state owes. All of them may be done any number of times.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect<D> {
    /// Have the subject woken at this time.
    Wake(Timestamp),
    /// Publish the record's events, in order.
    Publish,
    /// Send the message that the record's n-th entry becomes.
    Send(usize),
    /// A duty only its engine knows.
    Duty(D),
}

/// What a commit owes: the difference between the state it replaced and the next one, in the order in which it is done. The wake-up
/// comes first: when a timer cannot be set, nothing has been published yet, and trying again repeats nothing.
pub fn fresh<S: Subject>(old: Option<&S>, next: &S, record: Option<&RecordOf<S>>) -> Vec<Effect<S::Duty>> {
    let mut effects = Vec::new();
    effects.extend(next.wake().filter(|wake| old.and_then(S::wake) != Some(*wake)).map(Effect::Wake));
    if let Some(record) = record {
        effects.extend((!record.events.is_empty()).then_some(Effect::Publish));
        effects.extend((0..record.sends.len()).map(Effect::Send));
    }
    effects.extend(next.fresh(old).into_iter().map(Effect::Duty));
    effects
}
