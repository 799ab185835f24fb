//! The entry point: decides an input of an execution.

use super::advance::Step;
use super::deadline::{arm, deadline};
use super::facts::{Decision, Facts, Input, Transition, task};
use super::freeze::{Entrance, Held, Passage};
use super::react;
use super::state::{End, Execution, Lane, Outcome, ReactionKind};
use crate::event::{Kind, Status, TaskResult};
use crate::names::Context;
use crate::shipyard::DEPLOYMENT_CONFIG;
use crate::time::{Span, Timestamp};

/// The time after which a trigger without an answer may have been lost on its way to the bus.
pub const UNANSWERED: Span = Span::minutes(2);

/// Decides an input. Pure and total.
pub fn decide(x: &Execution, input: Input<'_>, facts: &Facts<'_>) -> Decision {
    match input {
        Input::Reaction(trigger, kind, event, at) => react::executor(x, trigger, (kind, event, at), facts),
        Input::Decision(trigger, event, at) => react::person(x, trigger, (ReactionKind::Finished, event, at), facts),
        Input::Granted(ask) => granted(x, ask, facts),
        Input::Wake(at) => wake(x, at, facts),
        Input::Obey => obey(x, facts),
        Input::Abort if x.outcome.is_none() => abort(x, facts),
        Input::Superseded(by) if x.outcome.is_none() && x.is_replaceable() => superseded(x, by, facts),
        Input::Abort | Input::Superseded(_) => Decision::Settle,
        Input::Settle => overdue(x, facts),
    }
}

/// Repeats an unanswered trigger once, because it may never have been published. The trigger of an approval is never repeated. What
/// was triggered while nobody asked is listed when somebody does.
fn overdue(x: &Execution, facts: &Facts<'_>) -> Decision {
    let unanswered = x.is_open() && x.reactions.is_empty() && x.sent.is_some_and(|sent| sent + UNANSWERED < facts.now);
    let repeats = unanswered && x.repeated.is_none() && !x.waits_for_approval();
    let lists = x.is_open() && facts.policy.polled && !x.listed;
    if x.outcome.is_some() || !(repeats || lists) {
        return Decision::Settle;
    }
    let mut next = x.clone();
    next.repeated = next.repeated.or(repeats.then_some(facts.cause.id));
    next.listed |= lists;
    Transition::plain(next)
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
    let passage = Entrance::of(facts).passage(x);
    if let Passage::Held(held) = passage {
        return hold(x, held, facts);
    }
    let mut step = Step::new(x, facts);
    step.next.let_through(&passage);
    step.next.lane = Lane::Holds;
    if !x.is_open() {
        step.next_task();
    }
    step.arm();
    step.commit()
}

fn obey(x: &Execution, facts: &Facts<'_>) -> Decision {
    let pauses = facts.flags.pauses(&x.stage);
    match x.outcome {
        Some(_) => Decision::Settle,
        None if pauses && !x.paused => pause(x, facts),
        None if !pauses && x.paused => {
            let mut next = x.clone();
            next.paused = false;
            if let (Some(began), Some(paused)) = (x.began, next.paused_at.take()) {
                next.began = Some(began + (facts.now - paused));
            }
            // A person may still answer an approval; everything else needs the lane again, including an open task.
            if !x.waits_for_approval() {
                next.lane = Lane::Wants;
                next.ask += 1;
            }
            arm(&mut next, facts);
            Transition::plain(next)
        }
        None => look_at_windows(x, facts),
    }
}

/// The stage is closed: the execution returns to the queue with a new request, because the lock names the present one.
fn hold(x: &Execution, held: Held, facts: &Facts<'_>) -> Decision {
    let mut next = x.clone();
    next.held = Some(held);
    next.ask += 1;
    arm(&mut next, facts);
    Transition::plain(next)
}

/// Updates why the windows hold an execution back. An execution that only waits for its lane is checked when it gets the lane.
fn look_at_windows(x: &Execution, facts: &Facts<'_>) -> Decision {
    let Some(old) = &x.held else { return Decision::Settle };
    let mut next = x.clone();
    match Entrance::of(facts).passage(x) {
        Passage::Held(held) if held == *old => return Decision::Settle,
        Passage::Held(held) => {
            next.held = Some(held);
            arm(&mut next, facts);
        }
        passage => next.let_through(&passage),
    }
    Transition::plain(next)
}

fn pause(x: &Execution, facts: &Facts<'_>) -> Decision {
    let mut next = x.clone();
    next.paused = true;
    next.paused_at = Some(facts.now);
    next.lane = Lane::None;
    next.held = None;
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

/// A newer execution replaces this one, which never began. As after an abort, nothing follows it.
fn superseded(x: &Execution, by: &Context, facts: &Facts<'_>) -> Decision {
    let mut step = Step::new(x, facts);
    let outcome = Outcome { end: End::Aborted, result: TaskResult::Fail, status: Status::Aborted, at: facts.now };
    let message = format!("superseded: a newer {} of {} waits for {} (context {by})", x.sequence, x.service, x.stage);
    step.end(outcome, &message);
    step.commit()
}

fn wake(x: &Execution, at: Timestamp, facts: &Facts<'_>) -> Decision {
    // Replaced, possibly by a handler that stopped before it performed the effects of the new state.
    if x.outcome.is_some() || x.wake != Some(at) {
        return Decision::Settle;
    }
    // Too early: the wake-up is still owed, and is sent again.
    if facts.now < at {
        return Decision::Settle;
    }
    let decision = match deadline(x, facts.sequence, &facts.policy) {
        None => Transition::plain(x.clone()),
        Some(deadline) if facts.now < deadline => {
            let mut next = x.clone();
            next.wake = Some(deadline);
            // The new wake-up may be later than the deadline that a `.started` causes.
            next.quick = false;
            Transition::plain(next)
        }
        Some(_) => due(x, facts),
    };
    match decision {
        Decision::Commit(mut transition) => {
            // The used wake-up must leave the state, where it would look overdue for ever. A redelivery finds it replaced, and
            // settles.
            transition.next.wake = transition.next.wake.filter(|wake| *wake != at);
            // Copies of this wake-up must plan the new one if this handler stops before it does.
            transition.next.armed_by = transition.next.wake.map(|_| facts.cause.id);
            Decision::Commit(transition)
        }
        other => other,
    }
}

/// A deadline has passed.
fn due(x: &Execution, facts: &Facts<'_>) -> Decision {
    if x.held.is_some() {
        return look_at_windows(x, facts);
    }
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
    } else if x.waits_for_approval() {
        return react::nobody_decided(step, task);
    } else if x.count(ReactionKind::Started) > 0 {
        let timeout = task.timeout.unwrap_or(facts.policy.task_timeout);
        format!("sequence timed out: task {trigger} was started but not finished within {timeout}")
    } else if x.count(ReactionKind::Finished) > 0 {
        // For executors without `.started`: the `.finished` counts as both, once no other executor can have begun.
        return react::complete(step);
    } else {
        format!("sequence timed out while waiting for task {trigger} to receive a correlating .started or .finished event")
    };
    // The deployment config would continue for as long as it takes, although the lane is free.
    let config = task.properties.contains_key(DEPLOYMENT_CONFIG);
    if let Some(record) = x.record.filter(|_| config && x.is_open()) {
        step.cancel_task(record);
    }
    let outcome = Outcome { end: End::TimedOut, result: TaskResult::Fail, status: Status::Errored, at: facts.now };
    step.end(outcome, &message);
    step.commit()
}
