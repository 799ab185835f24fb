//! The parts of an engine besides its inbox: the subjects of its messages, and its duties for them.

use super::inbox::{Inbox, Letter};
use super::tick::Tick;
use crate::item::{Attr, Attrs, Item, Key, Name};
use crate::keys;
use crate::ports::{Condition, PortError, Write};
use keelway_domain::cause::Cause;
use keelway_domain::event::CloudEvent;
use keelway_domain::ids::RecordId;
use keelway_domain::record::Record;
use keelway_domain::stored::Recorded;
use keelway_domain::time::Timestamp;
use std::fmt::Debug;
use std::future::Future;

/// A subject: the state to which messages are addressed. It is one item with a version, which a commit raises by one.
pub trait Subject: Clone + Debug + PartialEq + Send + Sync {
    /// An effect of its commits on other subjects. Each becomes one message.
    type Send: Clone + Debug + PartialEq + Recorded + Send + Sync;
    /// An effect that its states owe in addition to those of all engines.
    type Duty: Clone + Debug + PartialEq + Send + Sync;

    /// Its part of the index of open work, which has its own sweep.
    const PART: &'static str;
    /// The newest format of its items that this code knows. Messages for items with a newer format wait for newer code.
    const FORMAT: i64;
    /// Whether its records are packed if they need more than one write unit otherwise. Code that packs them writes a format that
    /// code which cannot read them does not know.
    const PACKS_RECORDS: bool = false;
    /// Whether every message, and not only a wake-up, may decide something because time has passed. A copy of an acknowledged
    /// message may then commit without ever being redelivered: see [`Loaded::owes`].
    const ANY_MESSAGE_BY_CLOCK: bool = false;

    /// The key of its item. Its transition records are in the same partition.
    fn key(&self) -> Key;
    /// Reads an item whose format is known.
    ///
    /// # Errors
    /// [`PortError::Refused`] for an item that cannot be read.
    fn decode(item: &Item) -> Result<Self, PortError>;
    /// Its attributes, without key, version, format and the sweep's index. `expires`: when an ended subject may be removed, if
    /// ever.
    fn attributes(&self, expires: Timestamp) -> Attrs;
    /// Its entry in the sweep's index while it is open.
    fn place(&self) -> Place;
    /// The record of its last transition that had one.
    fn record(&self) -> Option<RecordId>;
    /// The pending wake-up, if any.
    fn wake(&self) -> Option<Timestamp>;
    /// Whether it has ended: it leaves the sweep, and expires.
    fn over(&self) -> bool;
    /// The events of one of its records that may still be published: work that is over is never announced.
    fn events(&self, id: &RecordId, record: &RecordOf<Self>) -> Vec<CloudEvent>;
    /// The message that the `n`-th entry of a record's `sends` becomes.
    fn letter(&self, id: &RecordId, n: usize, what: &Self::Send) -> Letter;
    /// The message that wakes it at a time.
    fn wake_up(&self, at: Timestamp) -> Letter;

    /// The cause that planned the pending wake-up, if the state stores it. No other message schedules it again then.
    fn armed_by(&self) -> Option<u64> {
        None
    }
    /// Whether the sweep would find all that the commit of this record owes, if nobody performed it. By default, it would not.
    fn is_swept(&self, _record: &RecordOf<Self>) -> bool {
        false
    }
    /// All of its engine's own duties that it owes, for the message at hand.
    fn owed(&self, _cause: Cause) -> Vec<Self::Duty> {
        vec![]
    }
    /// The duties that result from replacing `old` (`None`: from creating the subject).
    fn fresh(&self, _old: Option<&Self>) -> Vec<Self::Duty> {
        vec![]
    }
    /// Other items that the subject needs while it is open. The sweep keeps them from expiring.
    fn keeps(&self) -> Vec<Key> {
        vec![]
    }
}

/// A place in the sweep's index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// All entries of one scope (a project) are in one shard; its name begins the sort key.
    pub scope: String,
    /// Since when it has been open: the oldest entries of a scope come first.
    pub since: Timestamp,
    /// Ends the sort key.
    pub name: String,
}

impl Place {
    /// The attributes of the index.
    fn attributes(&self, part: &str) -> [(Name, Attr); 2] {
        let sort = format!("{}#{}#{}", self.scope, keys::ms(self.since), self.name);
        let partition = keys::open_work(part, keys::shard_of(&self.scope));
        [(Name::Borrowed("gp2"), partition.into()), (Name::Borrowed("gs2"), sort.into())]
    }
}

/// The attribute with a committed record whose effects may not have been performed: see [`Loaded::owes`].
pub(super) const OWES: Name = Name::Borrowed("ow");

/// All attributes of a subject except version and format. The sweep finds a subject that is over as long as it owes something.
fn attributes<S: Subject>(x: &S, expires: Timestamp, owes: Option<&RecordId>) -> Attrs {
    let mut attributes = x.attributes(expires);
    if !x.over() || owes.is_some() {
        attributes.extend(x.place().attributes(S::PART));
    }
    attributes.extend(owes.map(|record| (OWES, keys::record_sort(record).into())));
    attributes
}

/// The records of a subject.
pub type RecordOf<S> = Record<<S as Subject>::Send>;

/// An inbox that keeps subjects of one kind.
pub trait Engine<S: Subject>: Inbox {
    /// Performs a duty; this may happen any number of times.
    fn perform(&self, _state: &S, _duty: &S::Duty) -> impl Future<Output = Result<(), PortError>> + Send {
        async { Ok(()) }
    }
    /// Looks at open subjects for the sweep: which of them need a message, and which one. By default, overdue wake-ups are sent
    /// again, which is enough for an engine that waits only for wake-ups.
    fn look(&self, open: &[Loaded<S>], tick: &mut Tick) -> impl Future<Output = Result<Vec<Letter>, PortError>> + Send {
        let overdue = |x: &S| x.wake().filter(|at| tick.overdue(Some(*at))).map(|at| x.wake_up(at));
        let letters = open.iter().filter_map(|loaded| overdue(&loaded.x)).collect();
        async move { Ok(letters) }
    }
}

/// A state and the version of its item.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded<S> {
    /// The state.
    pub x: S,
    /// The item's version.
    pub version: i64,
    /// The item's format.
    pub format: i64,
    /// A committed record whose effects may not have been performed, because its message may be acknowledged. The commit notes it,
    /// and removes the note after the effects. A worker that finds the note performs the effects first.
    pub owes: Option<RecordId>,
}

impl<S: Subject> Loaded<S> {
    /// Reads an item.
    ///
    /// # Errors
    /// [`PortError::Retry`] for an item of a newer format, [`PortError::Refused`] for one that cannot be read.
    pub fn read(item: &Item) -> Result<Self, PortError> {
        check_format(item, S::FORMAT)?;
        let owes = item.text(&OWES).and_then(keys::record_id);
        Ok(Self { x: S::decode(item)?, version: item.version(), format: item.number("f").unwrap_or(S::FORMAT), owes })
    }

    /// The write that changes it to the next state: only what differs, so that attributes added by a newer version survive. An item
    /// of an older format is written in this code's format, with all its attributes. `owes`: the record to note, if any.
    pub fn update(&self, next: &S, expires: Timestamp, owes: Option<&RecordId>) -> Write {
        let before = attributes(&self.x, expires, self.owes.as_ref());
        let after = attributes(next, expires, owes);
        let remove = before.keys().filter(|name| !after.contains_key(*name)).cloned().collect();
        let older = self.format < S::FORMAT;
        let mut set: Attrs = after.into_iter().filter(|(name, value)| older || before.get(name) != Some(value)).collect();
        set.extend(older.then(|| (Name::Borrowed("f"), S::FORMAT.into())));
        set.insert(Name::Borrowed("v"), (self.version + 1).into());
        Write::Update { key: next.key(), condition: Condition::Version(self.version), set, remove, raise: false }
    }
}

/// The write that creates a subject.
pub fn create<S: Subject>(x: &S, expires: Timestamp) -> Write {
    let mut item = Item { key: x.key(), attrs: attributes(x, expires, None) };
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

/// One effect that a committed state owes. Each may be performed any number of times.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect<D> {
    /// Schedule a wake-up of the subject at this time.
    Wake(Timestamp),
    /// Publish the record's events, in order.
    Publish,
    /// Send the message that the record's n-th entry becomes.
    Send(usize),
    /// A duty only its engine knows.
    Duty(D),
}

/// The effects that a commit owes: the difference between the replaced state and the next one, in the order of execution. The
/// wake-up comes first: if the timer cannot be set, nothing has been published yet, and a retry repeats nothing.
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
