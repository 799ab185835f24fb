//! The inputs and the results of a decision.

use super::Record;
use super::flags::Flags;
use super::remediation::Remediation;
use super::state::{Execution, ReactionKind};
use crate::cause::Cause;
use crate::event::{CloudEvent, Object};
use crate::ids::RecordId;
use crate::names::Context;
use crate::shipyard::{Sequence, Shipyard, Task};
use crate::time::{Span, Timestamp};

/// An input of an execution.
#[derive(Debug, Clone, Copy)]
pub enum Input<'a> {
    /// The lane is given to it for this request.
    Granted(u32),
    /// An executor's `.started` or `.finished` of the task this trigger names, accepted at that time.
    Reaction(RecordId, ReactionKind, &'a CloudEvent, Timestamp),
    /// A person's `approval.finished` for this trigger; the API knows who it was.
    Decision(RecordId, &'a CloudEvent, Timestamp),
    /// The wake-up armed for this time.
    Wake(Timestamp),
    /// What holds it back, or should, may have changed: the context's flags, or the windows of its stage.
    Obey,
    /// The context, or the execution's stage of it, was aborted. This is no part of [`Input::Obey`], because an abort publishes: of two
    /// deliveries of one message, both must decide it.
    Abort,
    /// A newer execution of its sequence, in that context, waits for the same lane.
    Superseded(&'a Context),
    /// The sweep found it overdue: settle what it waits for.
    Settle,
}

/// What a decision reads in addition to the state.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// Now.
    pub now: Timestamp,
    /// The message at hand.
    pub cause: Cause,
    /// The context's flags; needed for [`Input::Granted`] and [`Input::Obey`].
    pub flags: &'a Flags,
    /// The definition it was accepted with.
    pub sequence: &'a Sequence,
    /// The shipyard in force now and its revision: decides what follows.
    pub current: (&'a str, &'a Shipyard),
    /// The payload gathered so far: of the named record, or before the first task of the trigger ([`super::first_payload`]).
    pub base: &'a Object,
    /// The events behind the open task's reactions that carry data, as [`super::events_needed`] says.
    pub events: &'a [CloudEvent],
    /// What is stored about remediations of the service; needed where the next task may be `get-action`.
    pub remediation: Option<&'a Remediation>,
    /// Deadlines and limits.
    pub policy: Policy,
}

/// Deadlines and limits in force for a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// From a task's trigger to its first `.started`, unless the task says otherwise.
    pub start_deadline: Span,
    /// From `.started` to the task's completion, unless the task says otherwise; 0 = for ever.
    pub task_timeout: Span,
    /// Largest event in bytes.
    pub max_event_bytes: usize,
    /// Largest record in bytes.
    pub max_record_bytes: usize,
}

/// The decision about an input.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// Nothing to decide any more: complete what an earlier delivery of this message began, if there was one.
    Settle,
    /// The same answer counted before, in another message, which completes its own work: nothing to do.
    Duplicate,
    /// An answer to a task that is over: a duplicate if the record that closed the task absorbed it, otherwise stale.
    Late,
    /// It is kept in the history and counts for nothing.
    Noted,
    /// It cannot be used, for this reason.
    Invalid(String),
    /// The next state.
    Commit(Box<Transition>),
}

/// A commit: the next state and, if it publishes or passes on a payload, its record (which the next state names).
#[derive(Debug, Clone, PartialEq)]
pub struct Transition {
    /// The next state.
    pub next: Execution,
    /// Its record.
    pub record: Option<Record>,
}

impl Transition {
    pub(super) fn plain(next: Execution) -> Decision {
        Decision::Commit(Box::new(Self { next, record: None }))
    }
}

/// The present task.
pub(super) fn task<'a>(x: &Execution, facts: &Facts<'a>) -> Option<&'a Task> {
    facts.sequence.tasks.get(usize::from(x.task))
}
