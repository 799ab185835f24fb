//! The windows of a stage: which executions they hold back, and which ones a person lets through.
//!
//! Windows belong to the stage, not to a delivery: those of the shipyard in force apply, also to executions that were accepted
//! before it. They hold back executions that have not begun; an execution that has begun continues to its end.

use super::facts::Facts;
use super::flags::Flags;
use super::state::Execution;
use crate::shipyard::{Sequence, Shipyard};
use crate::time::Timestamp;
use crate::windows::{self, Gate};
use serde::{Deserialize, Serialize};

/// Why an execution may not begin, although it is in the lane's queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// When it was first held back.
    pub since: Timestamp,
    /// When it may begin, if nothing changes. `None`: never.
    pub until: Option<Timestamp>,
    /// The windows that hold it back, in words.
    pub by: String,
}

/// A person's permission for the executions of a context in a stage to begin although its windows are closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Override {
    /// The identity of the person.
    pub by: String,
    /// The reason that the person gave.
    pub reason: String,
    /// When the permission was given.
    pub at: Timestamp,
    /// When the stage opens by itself. The permission is for this one closure.
    pub until: Option<Timestamp>,
}

/// The conditions under which an execution may begin.
#[derive(Debug, Clone, Copy)]
pub struct Entrance<'a> {
    /// The definition with which the execution was accepted.
    pub sequence: &'a Sequence,
    /// The shipyard in force.
    pub shipyard: &'a Shipyard,
    /// The flags of the context.
    pub flags: &'a Flags,
    /// The time of the decision.
    pub now: Timestamp,
}

/// Whether an execution may begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Passage<'a> {
    /// It may begin.
    Free,
    /// It may begin, because a person permits it.
    Overridden(&'a Override),
    /// It may not begin yet.
    Held(Held),
}

impl Held {
    /// Whether it still holds an execution back at a time.
    pub fn holds(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}

impl Override {
    /// Whether the permission is for a closure that ends at this time.
    pub fn covers(&self, until: Option<Timestamp>) -> bool {
        match (self.until, until) {
            (None, _) => true,
            (Some(mine), Some(until)) => until <= mine,
            (Some(_), None) => false,
        }
    }
}

impl<'a> Entrance<'a> {
    pub(super) fn of(facts: &Facts<'a>) -> Self {
        Self { sequence: facts.sequence, shipyard: facts.current.1, flags: facts.flags, now: facts.now }
    }

    /// Whether an execution may begin now.
    pub fn passage(&self, x: &Execution) -> Passage<'a> {
        let stage = self.shipyard.stage(&x.stage).filter(|stage| !stage.windows.is_empty() && x.began.is_none());
        let Some(stage) = stage else { return Passage::Free };
        let in_force = stage.sequence(&x.sequence);
        if in_force.as_ref().unwrap_or(self.sequence).ignores_windows() {
            return Passage::Free;
        }
        let Gate::Closed(until) = windows::gate(&stage.windows, self.now) else { return Passage::Free };
        if let Some(given) = self.flags.overrides.get(&x.stage).filter(|given| given.covers(until)) {
            return Passage::Overridden(given);
        }
        let since = x.held.as_ref().map_or(self.now, |held| held.since);
        Passage::Held(Held { since, until, by: windows::why(&stage.windows, self.now) })
    }

    /// Whether the reasons for holding an execution back differ from those in its state.
    pub fn differs(&self, x: &Execution) -> bool {
        match self.passage(x) {
            Passage::Held(held) => x.held.as_ref().is_some_and(|old| *old != held),
            Passage::Free | Passage::Overridden(_) => x.held.is_some(),
        }
    }
}

impl Execution {
    /// Lets an execution begin, or wait for its lane like any other.
    pub(super) fn let_through(&mut self, passage: &Passage<'_>) {
        self.held = None;
        if let Passage::Overridden(given) = passage {
            self.view.overridden = Some((given.by.clone(), given.reason.clone()));
        }
    }
}
