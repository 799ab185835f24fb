//! The entry point: decides what an input does to an execution.

use super::Record;
use super::advance::Step;
use super::react;
use super::state::{End, Execution, Flags, Lane, Outcome, ReactionKind};
use crate::cause::Cause;
use crate::event::{CloudEvent, Kind, Object, Status, TaskResult};
use crate::ids::RecordId;
use crate::shipyard::{Sequence, Shipyard, Task};
use crate::time::{Span, Timestamp};

/// A wake-up that is at least this far ahead can also serve a later deadline: it covers the skew of the clocks involved.
const REUSE_WAKE: Span = Span::seconds(60);

/// A trigger that nobody has answered for this long may have been lost on its way to the bus.
pub const UNANSWERED: Span = Span::minutes(2);

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
    /// The context's flags may have changed.
    Obey,
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

/// Decides what an input does to an execution. Pure and total.
pub fn decide(x: &Execution, input: Input<'_>, facts: &Facts<'_>) -> Decision {
    match input {
        Input::Reaction(trigger, kind, event, at) => react::executor(x, trigger, (kind, event, at), facts),
        Input::Decision(trigger, event, at) => react::person(x, trigger, (ReactionKind::Finished, event, at), facts),
        Input::Granted(ask) => granted(x, ask, facts),
        Input::Wake(at) => wake(x, at, facts),
        Input::Obey => obey(x, facts),
        Input::Settle => overdue(x, facts),
    }
}

/// An unanswered trigger may never have been published, so it is repeated once; that of an approval is never repeated.
fn overdue(x: &Execution, facts: &Facts<'_>) -> Decision {
    let unanswered = x.is_open() && x.reactions.is_empty() && x.sent.is_some_and(|sent| sent + UNANSWERED < facts.now);
    if x.outcome.is_some() || !unanswered || x.repeated.is_some() || x.waits_for_approval() {
        return Decision::Settle;
    }
    let mut next = x.clone();
    next.repeated = Some(facts.cause.id);
    Transition::plain(next)
}

/// The present task.
pub(super) fn task<'a>(x: &Execution, facts: &Facts<'a>) -> Option<&'a Task> {
    facts.sequence.tasks.get(usize::from(x.task))
}

fn granted(x: &Execution, ask: u32, facts: &Facts<'_>) -> Decision {
    if x.outcome.is_some() || x.lane != Lane::Wants || x.ask != ask {
        return Decision::Settle;
    }
    if facts.flags.aborts(&x.stage, x.epoch) {
        return abort(x, facts);
    }
    if facts.flags.pauses(&x.stage) {
        return pause(x, facts);
    }
    let mut step = Step::new(x, facts);
    step.next.lane = Lane::Holds;
    if !x.is_open() {
        step.next_task();
    }
    step.arm();
    step.commit()
}

fn obey(x: &Execution, facts: &Facts<'_>) -> Decision {
    let pauses = facts.flags.pauses(&x.stage);
    match (x.outcome, facts.flags.aborts(&x.stage, x.epoch)) {
        (Some(_), _) => Decision::Settle,
        (None, true) => abort(x, facts),
        (None, false) if pauses && !x.paused => pause(x, facts),
        (None, false) if !pauses && x.paused => {
            let mut next = x.clone();
            next.paused = false;
            if let (Some(began), Some(paused)) = (x.began, next.paused_at.take()) {
                next.began = Some(began + (facts.now - paused));
            }
            // A person may still answer; everything else needs the lane again, including an open task.
            if !x.waits_for_approval() {
                next.lane = Lane::Wants;
                next.ask += 1;
            }
            arm(&mut next, facts);
            Transition::plain(next)
        }
        (None, false) => Decision::Settle,
    }
}

fn pause(x: &Execution, facts: &Facts<'_>) -> Decision {
    let mut next = x.clone();
    next.paused = true;
    next.paused_at = Some(facts.now);
    next.lane = Lane::None;
    Transition::plain(next)
}

fn abort(x: &Execution, facts: &Facts<'_>) -> Decision {
    let mut step = Step::new(x, facts);
    if let (true, Some(record)) = (x.is_open(), x.record) {
        step.cancel_task(record);
    }
    let outcome = Outcome { end: End::Aborted, result: TaskResult::Fail, status: Status::Aborted, at: facts.now };
    step.end(outcome, "the sequence was aborted");
    step.commit()
}

/// When an execution must be looked at if nothing else happens: its next deadline, or the end of a delay.
pub fn deadline(x: &Execution, sequence: &Sequence, policy: &Policy) -> Option<Timestamp> {
    let task = sequence.tasks.get(usize::from(x.task))?;
    if x.outcome.is_some() {
        return None;
    }
    let of_task = match (x.is_open(), x.sent) {
        (false, _) => x.due.filter(|_| x.lane == Lane::Holds),
        (true, Some(sent)) if !x.waits_for_approval() => {
            match x.reactions.iter().filter(|r| r.kind == ReactionKind::Started).map(|r| r.at).min() {
                None => Some(sent + task.start_deadline.unwrap_or(policy.start_deadline)),
                Some(started) => {
                    Some(task.timeout.unwrap_or(policy.task_timeout)).filter(|span| span.0 > 0).map(|span| started + span)
                }
            }
        }
        (true, _) => None,
    };
    let of_sequence = match (sequence.timeout, x.began) {
        (Some(timeout), Some(began)) if timeout.0 > 0 && !x.paused => Some(began + timeout),
        _ => None,
    };
    [of_task, of_sequence].into_iter().flatten().min()
}

/// Keeps one wake-up pending: a new one only if none is pending that is far enough ahead and early enough.
pub(super) fn arm(next: &mut Execution, facts: &Facts<'_>) {
    if let Some(deadline) = deadline(next, facts.sequence, &facts.policy) {
        let serves = next.wake.is_some_and(|wake| facts.now + REUSE_WAKE < wake && wake <= deadline);
        if !serves {
            next.wake = Some(deadline);
        }
    }
}

/// After an answer, the deadline changes. The pending wake-up finds a later deadline; only an earlier one needs its own wake-up.
pub(super) fn hasten(next: &mut Execution, facts: &Facts<'_>) {
    if let Some(deadline) = deadline(next, facts.sequence, &facts.policy)
        && next.wake.is_none_or(|wake| wake > deadline || wake < facts.now)
    {
        next.wake = Some(deadline);
    }
}

fn wake(x: &Execution, at: Timestamp, facts: &Facts<'_>) -> Decision {
    // Replaced, perhaps by a handler that stopped before performing what the new state owes.
    if x.outcome.is_some() || x.wake != Some(at) {
        return Decision::Settle;
    }
    // Early: it is still owed, and is sent again.
    if facts.now < at {
        return Decision::Settle;
    }
    match deadline(x, facts.sequence, &facts.policy) {
        // Used: if it stayed in the state, it would look overdue for ever.
        None => {
            let mut next = x.clone();
            next.wake = None;
            Transition::plain(next)
        }
        Some(deadline) if facts.now < deadline => {
            let mut next = x.clone();
            next.wake = Some(deadline);
            Transition::plain(next)
        }
        Some(_) => match due(x, facts) {
            Decision::Commit(mut transition) => {
                // Used: a redelivery of the wake-up finds it replaced, and settles.
                transition.next.wake = transition.next.wake.filter(|wake| *wake != at);
                Decision::Commit(transition)
            }
            other => other,
        },
    }
}

/// A deadline has passed.
fn due(x: &Execution, facts: &Facts<'_>) -> Decision {
    let mut step = Step::new(x, facts);
    let Some(task) = task(x, facts) else { return Decision::Settle };
    let sequence_over = match (facts.sequence.timeout, x.elapsed(facts.now)) {
        (Some(timeout), Some(elapsed)) => timeout.0 > 0 && elapsed >= timeout,
        _ => false,
    };
    let trigger = crate::event::EventType::task(task.name.as_str(), Kind::Triggered);
    let message = if sequence_over {
        format!("sequence timed out: it was not done within {}", facts.sequence.timeout.unwrap_or_default())
    } else if !x.is_open() {
        step.next_task();
        step.arm();
        return step.commit();
    } else if x.count(ReactionKind::Started) > 0 {
        let timeout = task.timeout.unwrap_or(facts.policy.task_timeout);
        format!("sequence timed out: task {trigger} was started but not finished within {timeout}")
    } else if x.count(ReactionKind::Finished) > 0 {
        // For executors that send no `.started`, the `.finished` stands for both once no other executor can have begun.
        return react::complete(step);
    } else {
        format!("sequence timed out while waiting for task {trigger} to receive a correlating .started or .finished event")
    };
    let outcome = Outcome { end: End::TimedOut, result: TaskResult::Fail, status: Status::Errored, at: facts.now };
    step.end(outcome, &message);
    step.commit()
}
