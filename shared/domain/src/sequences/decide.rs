//! The entry point: decides what an input does to an execution.

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

/// A trigger that nobody has answered for this long may have been lost on its way to the bus.
pub const UNANSWERED: Span = Span::minutes(2);

/// Decides what an input does to an execution. Pure and total.
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
            // A person may still answer; everything else needs the lane again, including an open task.
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

/// The stage is closed: it goes back into the queue with another request, because the lock names this one.
fn hold(x: &Execution, held: Held, facts: &Facts<'_>) -> Decision {
    let mut next = x.clone();
    next.held = Some(held);
    next.ask += 1;
    arm(&mut next, facts);
    Transition::plain(next)
}

/// What an execution that is held back waits for now. One that waits for its lane only is asked when it gets it.
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

/// It never began; like an aborted one it ends, and nothing follows it.
fn superseded(x: &Execution, by: &Context, facts: &Facts<'_>) -> Decision {
    let mut step = Step::new(x, facts);
    let outcome = Outcome { end: End::Aborted, result: TaskResult::Fail, status: Status::Aborted, at: facts.now };
    let message = format!("superseded: a newer {} of {} waits for {} (context {by})", x.sequence, x.service, x.stage);
    step.end(outcome, &message);
    step.commit()
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
    let decision = match deadline(x, facts.sequence, &facts.policy) {
        None => Transition::plain(x.clone()),
        Some(deadline) if facts.now < deadline => {
            let mut next = x.clone();
            next.wake = Some(deadline);
            // The new one may be later than the deadline that a `.started` brings.
            next.quick = false;
            Transition::plain(next)
        }
        Some(_) => due(x, facts),
    };
    match decision {
        Decision::Commit(mut transition) => {
            // Used: if it stayed in the state, it would look overdue for ever. A redelivery finds it replaced, and settles.
            transition.next.wake = transition.next.wake.filter(|wake| *wake != at);
            // Its copies have to schedule the new one if this one stops before it has.
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
        // For executors that send no `.started`, the `.finished` stands for both once no other executor can have begun.
        return react::complete(step);
    } else {
        format!("sequence timed out while waiting for task {trigger} to receive a correlating .started or .finished event")
    };
    // A deployment config would go on for as long as it likes, and the lane is free.
    let config = task.properties.contains_key(DEPLOYMENT_CONFIG);
    if let Some(record) = x.record.filter(|_| config && x.is_open()) {
        step.cancel_task(record);
    }
    let outcome = Outcome { end: End::TimedOut, result: TaskResult::Fail, status: Status::Errored, at: facts.now };
    step.end(outcome, &message);
    step.commit()
}
