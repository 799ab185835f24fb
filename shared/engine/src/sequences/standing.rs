//! The traces of executions in their stage: the version that runs there, and how the last sequence ended. They are stored in the
//! lock of the lane, which is written anyway when an execution leaves the lane, by a worker that has read that execution.

use super::codec;
use crate::item::{Attr, Attrs, Item, Name};
use keelway_domain::names::Context;
use keelway_domain::sequences::{Deployed, Execution, Outcome};
use keelway_domain::time::Timestamp;

/// The version of a service that runs in a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    /// The image, and since when.
    pub deployed: Deployed,
    /// When the delivery that brought it was accepted.
    pub accepted: Timestamp,
    /// The delivery's context.
    pub context: Context,
}

/// The last sequence that ended there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Last {
    /// Its name.
    pub sequence: String,
    /// How it ended.
    pub outcome: Outcome,
    /// Its context.
    pub context: Context,
}

impl Running {
    /// What an execution has deployed so far.
    pub fn of(x: &Execution) -> Option<Self> {
        let deployed = x.view.deployed.clone()?;
        Some(Self { deployed, accepted: x.accepted, context: x.context.clone() })
    }

    /// Reads it from the lock.
    pub fn read(lock: &Item) -> Option<Self> {
        let (accepted, context) = lock.text("rc")?.split_once('|')?;
        let accepted = Timestamp(accepted.parse().ok()?);
        Some(Self { deployed: codec::deployed(lock, "rd")?, accepted, context: Context::new(context).ok()? })
    }
}

impl Last {
    /// How an execution ended that has held the lane.
    pub fn of(x: &Execution) -> Option<Self> {
        let outcome = x.outcome.filter(|_| x.began.is_some())?;
        Some(Self { sequence: x.sequence.clone(), outcome, context: x.context.clone() })
    }

    /// Reads it from the lock.
    pub fn read(lock: &Item) -> Option<Self> {
        let mut parts = lock.text("ls")?.splitn(4, '|');
        let (outcome, at) = (parts.next()?, parts.next()?);
        let outcome = codec::outcome(outcome, Timestamp(at.parse().ok()?))?;
        Some(Self { outcome, context: Context::new(parts.next()?).ok()?, sequence: parts.next()?.to_owned() })
    }
}

/// The attributes of the lock after an execution has left the lane. Attributes that it has not changed are kept. `last`: when the
/// sequence ended that the lock names as the last one.
pub(super) fn of(x: &Execution, last: Option<Timestamp>) -> Attrs {
    let mut told = Attrs::new();
    if let Some(running) = Running::of(x) {
        told.insert(Name::Borrowed("rd"), Attr::S(codec::encode_deployed(&running.deployed)));
        told.insert(Name::Borrowed("rc"), Attr::S(format!("{}|{}", running.accepted.0, running.context)));
    }
    told.extend(end_of(x, last));
    told
}

/// The attribute that says how an execution has ended, unless another one ended later. Clocks differ: if whoever leaves the lane
/// last took the place of one that ended later, a copy of a message to that one would take it back.
pub(super) fn end_of(x: &Execution, last: Option<Timestamp>) -> Attrs {
    let newer = |of: &Last| last.is_none_or(|last| last < of.outcome.at);
    let Some(Last { sequence, outcome, context }) = Last::of(x).filter(newer) else { return Attrs::new() };
    let told_as = format!("{}|{}|{context}|{}", codec::encode_outcome(outcome), outcome.at.0, codec::shorten(&sequence, 60));
    Attrs::from([(Name::Borrowed("ls"), Attr::S(told_as))])
}
