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
    /// The lane was granted for this request.
    Granted(u32),
    /// An executor's `.started` or `.finished` of the task with this trigger, and when it was accepted.
    Reaction(RecordId, ReactionKind, &'a CloudEvent, Timestamp),
    /// A person's `approval.finished` for this trigger, and when it was accepted. The API has verified the person.
    Decision(RecordId, &'a CloudEvent, Timestamp),
    /// The wake-up for this time.
    Wake(Timestamp),
    /// The conditions that hold executions back may have changed: the context's flags, or the windows of the stage.
    Obey,
    /// The context, or the execution's stage in it, was aborted. Separate from [`Input::Obey`], because an abort publishes events:
    /// two deliveries of one message must both decide it.
    Abort,
    /// A newer execution of the sequence, in that context, waits for the same lane.
    Superseded(&'a Context),
    /// The sweep found the execution overdue: settle it.
    Settle,
}

/// The inputs of a decision besides the state.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The time of the decision.
    pub now: Timestamp,
    /// The message at hand.
    pub cause: Cause,
    /// The flags of the context. Needed for [`Input::Granted`] and [`Input::Obey`].
    pub flags: &'a Flags,
    /// The definition with which the execution was accepted.
    pub sequence: &'a Sequence,
    /// The revision of the shipyard in force, and the shipyard, which decides what follows.
    pub current: (&'a str, &'a Shipyard),
    /// The payload so far: that of the named record or, before the first task, that of the trigger ([`super::first_payload`]).
    pub base: &'a Object,
    /// The events of the open task's reactions that carry data, as [`super::events_needed`] lists them.
    pub events: &'a [CloudEvent],
    /// The stored remediations of the service. Needed where the next task may be `get-action`.
    pub remediation: Option<&'a Remediation>,
    /// Deadlines and limits.
    pub policy: Policy,
}

/// Deadlines and limits in force for a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// The time from a task's trigger to its first `.started`, unless the task says otherwise.
    pub start_deadline: Span,
    /// The time from `.started` to the completion of a task, unless the task says otherwise. 0: no limit.
    pub task_timeout: Span,
    /// The largest event in bytes.
    pub max_event_bytes: usize,
    /// Largest record in bytes.
    pub max_record_bytes: usize,
    /// Whether executors ask what is open, so that open tasks are put into the index for them.
    pub polled: bool,
}

/// The decision about an input.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// No change: complete what an earlier delivery of this message began, if there was one.
    Settle,
    /// The same answer was absorbed in another message, which completes its own work: nothing to do.
    Duplicate,
    /// An answer to a task that is over. It is a duplicate if the record that closed the task has absorbed it, otherwise it is
    /// stale.
    Late,
    /// It is stored in the history, and has no effect.
    Noted,
    /// It is invalid, for this reason.
    Invalid(String),
    /// The next state.
    Commit(Box<Transition>),
}

/// A commit: the next state and, if it publishes or passes on a payload, its record, which the next state names.
#[derive(Debug, Clone, PartialEq)]
pub struct Transition {
    /// The next state.
    pub next: Execution,
    /// The transition record, if there is one.
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
