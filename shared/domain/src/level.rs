//! What the level-triggered engines share. Every input to such a state ends in an evaluation of the whole of it; what that comes to
//! is one commit.

use crate::address::Address;
use crate::cause::Cause;
use crate::ids::{RecordId, SubjectId};
use crate::note::Note;
use crate::record::{Draft, Record};
use crate::stored::Recorded;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;

/// At most this many obeyed commands are remembered; the oldest are forgotten first.
pub const MAX_OBEYED: usize = 50;

/// A state that is evaluated as a whole.
pub trait Level: Clone + Debug + PartialEq {
    /// What a commit has done by somebody else.
    type Order: Clone + Debug + PartialEq + Recorded;
    /// What a commit writes beside the state and its record.
    type With: Clone + Debug + Default + PartialEq;

    /// Its id, in the addresses of its records.
    fn id(&self) -> SubjectId;
    /// What it is called.
    fn address(&self) -> Address;
    /// What a commit changes in every such state.
    fn marks(&mut self) -> Marks<'_>;
    /// The ids of the last commands that were obeyed, oldest first.
    fn obeyed(&self) -> &[u64];

    /// Whether a command was obeyed already, as far as that is remembered.
    fn has_obeyed(&self, note: &Note) -> bool {
        note.id != 0 && self.obeyed().contains(&note.id)
    }
}

/// The fields of a state that commits write.
#[derive(Debug)]
pub struct Marks<'a> {
    /// The one pending wake-up.
    pub wake: &'a mut Option<Timestamp>,
    /// The message that set it.
    pub armed_by: &'a mut u64,
    /// The record of the last transition that had one.
    pub record: &'a mut Option<RecordId>,
    /// The ids of the last commands that were obeyed, oldest first.
    pub obeyed: &'a mut Vec<u64>,
}

/// The decision about an input.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision<X: Level> {
    /// Nothing to decide any more: complete what an earlier delivery of this message began, if there was one.
    Settle,
    /// It came too late to count.
    Late,
    /// It cannot be obeyed.
    Refused(Refused),
    /// The next state.
    Commit(Box<Transition<X>>),
}

/// Why a command cannot be obeyed, or a call does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// It names something that does not exist.
    Unknown(String),
    /// It does not fit the present state.
    Conflict(String),
    /// There is nothing to do.
    Nothing(String),
}

impl Refused {
    /// For people.
    pub fn reason(&self) -> &str {
        match self {
            Self::Unknown(reason) | Self::Conflict(reason) | Self::Nothing(reason) => reason,
        }
    }
}

/// A commit.
#[derive(Debug, Clone, PartialEq)]
pub struct Transition<X: Level> {
    /// The next state.
    pub next: X,
    /// Its record, if it publishes or orders something.
    pub record: Option<Record<X::Order>>,
    /// What is written with it.
    pub with: X::With,
}

/// A command that was obeyed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Obeyed<C> {
    /// What was asked.
    #[serde(rename = "c")]
    pub command: C,
    /// Who asked, when and why.
    #[serde(rename = "n")]
    pub note: Note,
    /// When it was obeyed.
    #[serde(rename = "t")]
    pub at: Timestamp,
    /// The version it led to, if the state has versions.
    #[serde(rename = "v", default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
}

/// A decision in the making: the next state and what it owes.
pub(crate) struct Step<'a, X: Level, F> {
    pub next: X,
    pub before: &'a X,
    pub facts: &'a F,
    pub events: Vec<Draft>,
    pub orders: Vec<X::Order>,
    pub with: X::With,
    wake: Option<Timestamp>,
}

impl<'a, X: Level, F> Step<'a, X, F> {
    pub fn new(before: &'a X, facts: &'a F) -> Self {
        Self { next: before.clone(), before, facts, events: vec![], orders: vec![], with: X::With::default(), wake: None }
    }

    /// Wakes the state at a time, if nothing does so earlier.
    pub fn wake_at(&mut self, at: Timestamp) {
        self.wake = Some(self.wake.map_or(at, |wake| wake.min(at)));
    }

    /// What was waited for has ended.
    pub fn forget_wakes(&mut self) {
        self.wake = None;
    }

    /// Remembers a command that is obeyed: its copies do nothing.
    pub fn remember(&mut self, note: &Note) {
        if note.id != 0 {
            let obeyed = self.next.marks().obeyed;
            obeyed.push(note.id);
            let too_many = obeyed.len().saturating_sub(MAX_OBEYED);
            obeyed.drain(..too_many);
        }
    }

    /// The commit of what was decided, if anything has changed.
    pub fn commit(mut self, cause: Cause, now: Timestamp) -> Decision<X> {
        let marks = self.next.marks();
        if *marks.wake != self.wake {
            (*marks.wake, *marks.armed_by) = (self.wake, cause.id);
        }
        let previous = *marks.record;
        let says = !self.events.is_empty() || !self.orders.is_empty();
        if self.next == *self.before && !says {
            return Decision::Settle;
        }
        let record = says.then(|| Record { events: self.events, sends: self.orders, ..Record::after(previous, cause, now) });
        if let Some(record) = &record {
            *self.next.marks().record = Some(record.id(self.before.id(), record.number_going_round()));
        }
        Decision::Commit(Box::new(Transition { next: self.next, record, with: self.with }))
    }
}
