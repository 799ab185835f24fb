//! Attempts: who works on one, how it ended, what became of its effect, and how the effect is taken back.

use super::advance::Step;
use super::facts::{
    Attempt, AttemptResult, BACKOFF, BACKOFF_MOST, Closed, DAILY, DELETED_PATIENCE, Decision, Facts, LEASE, PATIENCE, Retry, SOON,
    Seen,
};
use super::state::{CLOSED, MISSING, Made, Phase, Pipeline, Promotion, REQUEST_OPEN};
use crate::condition::Condition;
use crate::ids::hash64;
use crate::time::Span;

/// The reason of a promotion that was given up and succeeded nevertheless.
pub const MERGED_LATE: &str = "MergedLate";

/// The pause after this many attempts in a row without progress: doubled each time up to an hour, varied by up to a fifth. The
/// variation is derived from the attempt, so that two deliveries of one message decide the same.
pub(super) fn backoff(attempt: &Attempt, times: u32, pipeline: (&str, &str)) -> Span {
    let base = BACKOFF.0.saturating_mul(1 << (times.clamp(1, 12) - 1)).min(BACKOFF_MOST.0);
    let identity = attempt.identity(pipeline.0, pipeline.1);
    let dice = hash64(&[&identity.to_be_bytes(), &times.to_be_bytes()]) % 401;
    Span(base * (800 + i64::try_from(dice).unwrap_or(0)) / 1000)
}

/// The promotion of an attempt, if it is the current one.
fn current<'x>(x: &'x Pipeline, attempt: &Attempt) -> Option<&'x Promotion> {
    x.environments.get(&attempt.environment)?.promotion.as_ref().filter(|promotion| attempt.is_of(promotion))
}

/// A worker asks to begin an attempt, which then is its own until the lease ends. If the evaluation finds that the attempt is no
/// longer needed, it is not begun, and the worker reads the state again.
pub(super) fn begin(x: &Pipeline, attempt: &Attempt, facts: &Facts<'_>) -> Decision {
    let present = |promotion: &&Promotion| promotion.phase == Phase::Attempting && promotion.attempt == attempt.attempt;
    let Some(promotion) = current(x, attempt).filter(present) else { return Decision::Late };
    if promotion.claimed {
        // Another worker has begun the attempt. If it has stopped, the wake-up at the end of the lease decides what follows.
        return Decision::Late;
    }
    // An attempt that is not needed is not begun: to take it back, one would have to wait for the end of its lease.
    let without = Step::new(x, facts).advance();
    if let Decision::Commit(transition) = &without
        && current(&transition.next, attempt).filter(present).is_none()
    {
        return without;
    }
    let mut step = Step::new(x, facts);
    if let Some(promotion) = step.promotion(&attempt.environment) {
        promotion.claimed = true;
        promotion.due = Some(facts.now + LEASE);
    }
    step.advance()
}

/// The heartbeat of the worker: the attempt is its own for another lease, even if it is no longer needed and waits to be closed.
pub(super) fn beat(x: &Pipeline, attempt: &Attempt, facts: &Facts<'_>) -> Decision {
    let mut step = Step::new(x, facts);
    let Some(state) = step.next.environments.get_mut(&attempt.environment) else { return Decision::Late };
    let until = facts.now + LEASE;
    let is = |of: &Promotion| attempt.is_of(of) && of.attempt == attempt.attempt && of.claimed;
    if let Some(promotion) = state.promotion.as_mut().filter(|of| of.phase == Phase::Attempting && is(of)) {
        promotion.due = Some(until);
    } else if let Some(closing) = state.closing.iter_mut().find(|closing| is(&closing.promotion) && !closing.ordered) {
        closing.due = until;
    } else {
        return Decision::Late;
    }
    step.advance()
}

/// The end of an attempt. Only the present attempt counts; the effect of an earlier one is found by its identity.
pub(super) fn ended(x: &Pipeline, attempt: &Attempt, outcome: &AttemptResult, facts: &Facts<'_>) -> Decision {
    let present = |promotion: &&Promotion| promotion.phase == Phase::Attempting && promotion.attempt == attempt.attempt;
    if current(x, attempt).filter(present).is_none() {
        return ended_too_late(x, attempt, outcome, facts);
    }
    let now = facts.now;
    let mut step = Step::new(x, facts);
    let name = attempt.environment.as_str();
    let Some(promotion) = step.promotion(name) else { return Decision::Late };
    promotion.due = None;
    promotion.claimed = false;
    let what = match outcome {
        AttemptResult::Done(made) => {
            promotion.phase = Phase::Succeeded;
            promotion.why = Condition::new("Promoted", "the promotion was carried out");
            promotion.effect = Some(made.clone());
            "succeeded"
        }
        AttemptResult::Nothing(why) => {
            promotion.phase = Phase::Succeeded;
            promotion.why = why.clone();
            "succeeded"
        }
        AttemptResult::Created(made) => {
            promotion.phase = Phase::Created;
            promotion.why = match made {
                Made::PullRequest { url, .. } => open(url),
                Made::Sequence { context } => Condition::new("SequenceRuns", format!("sequence {context} carries it out")),
                Made::Notification { .. } => Condition::default(),
            };
            promotion.effect = Some(made.clone());
            "created"
        }
        AttemptResult::Failed { why, retry } => {
            promotion.phase = Phase::Failed;
            promotion.why = why.clone();
            promotion.fruitless = if *retry == Retry::Soon { 0 } else { promotion.fruitless.saturating_add(1) };
            let wait = backoff(attempt, promotion.fruitless, (&x.namespace, &x.name));
            promotion.due = match retry {
                Retry::Backoff => Some(now + wait),
                Retry::Soon => Some(now + SOON),
                Retry::At(at) => Some((*at).max(now + BACKOFF)),
                Retry::Patience => Some(now + PATIENCE),
                Retry::Never => None,
            };
            "failed"
        }
    };
    step.tell(name, what, &attempt.attempt.to_string());
    step.advance()
}

/// The end of an attempt that is being taken back, before its lease ends: nobody works on it any more, so what it made, or may have
/// made, is closed at once.
fn ended_too_late(x: &Pipeline, attempt: &Attempt, outcome: &AttemptResult, facts: &Facts<'_>) -> Decision {
    let mut step = Step::new(x, facts);
    let closing = step.next.environments.get_mut(&attempt.environment).map(|state| &mut state.closing);
    let Some(closing) = closing.and_then(|all| all.iter_mut().find(|closing| attempt.is_of(&closing.promotion))) else {
        return Decision::Late;
    };
    let made = match outcome {
        AttemptResult::Created(made) => Some(made),
        // Another worker may be working on a later attempt.
        _ if closing.promotion.attempt == attempt.attempt && closing.promotion.claimed => None,
        _ => return Decision::Late,
    };
    if closing.promotion.effect.is_some() {
        return Decision::Late;
    }
    closing.promotion.effect = made.cloned();
    closing.promotion.claimed = false;
    closing.due = facts.now;
    step.advance()
}

/// The state of an attempt's effect was read.
pub(super) fn seen(x: &Pipeline, attempt: &Attempt, seen: &Seen, facts: &Facts<'_>) -> Decision {
    let Some(promotion) = current(x, attempt) else { return Decision::Late };
    match (promotion.phase, seen) {
        (Phase::Created, Seen::Unobserved(why)) if promotion.unseen == hash64(&[why.reason.as_bytes(), why.message.as_bytes()]) => {
            return Decision::Settle;
        }
        (Phase::Created, _) => {}
        // A person reopened a closed pull request, or merged one that the host had refused.
        (Phase::Abandoned | Phase::Failed, Seen::Succeeded(_)) if promotion.effect.is_some() => {}
        // It is read because it may have been merged late.
        (_, Seen::Unobserved(_)) if promotion.is_watched() => return Decision::Settle,
        _ if promotion.is_watched() => return asked(x, attempt, facts),
        _ => return Decision::Late,
    }
    let mut step = Step::new(x, facts);
    let name = attempt.environment.as_str();
    let Some(promotion) = step.promotion(name) else { return Decision::Late };
    let what = match seen {
        Seen::Open(made) => {
            if let Made::PullRequest { url, .. } = made {
                promotion.why = open(url);
            }
            promotion.effect = Some(made.clone());
            ""
        }
        Seen::Unobserved(why) => {
            let told = promotion.is_unobserved();
            promotion.why = why.clone();
            promotion.unseen = hash64(&[why.reason.as_bytes(), why.message.as_bytes()]);
            if told { "" } else { "unobserved" }
        }
        Seen::Missing(message) => {
            promotion.phase = Phase::Abandoned;
            promotion.why = Condition::new(MISSING, message);
            "abandoned"
        }
        Seen::Succeeded(message) => {
            promotion.phase = Phase::Succeeded;
            promotion.why = Condition::new("Merged", message);
            "succeeded"
        }
        Seen::Closed(message) => {
            promotion.phase = Phase::Abandoned;
            promotion.why = Condition::new(CLOSED, message);
            "abandoned"
        }
        Seen::Failed(message) => {
            promotion.phase = Phase::Failed;
            promotion.why = Condition::new("Failed", message);
            "failed"
        }
    };
    if !what.is_empty() {
        step.tell(name, what, "");
    }
    step.advance()
}

/// The failed promotion was not merged late. The host is not asked again.
fn asked(x: &Pipeline, attempt: &Attempt, facts: &Facts<'_>) -> Decision {
    let mut step = Step::new(x, facts);
    if let Some(promotion) = step.promotion(&attempt.environment) {
        promotion.asked = true;
    }
    step.advance()
}

fn open(url: &str) -> Condition {
    Condition::new(REQUEST_OPEN, format!("{url} waits to be merged"))
}

/// The result of taking an attempt back.
pub(super) fn closed(x: &Pipeline, attempt: &Attempt, how: &Closed, facts: &Facts<'_>) -> Decision {
    let mut step = Step::new(x, facts);
    let wait = |tries: u32| backoff(attempt, tries, (&x.namespace, &x.name));
    let Some(state) = step.next.environments.get_mut(&attempt.environment) else { return Decision::Late };
    let Some(n) = state.closing.iter().position(|closing| attempt.is_of(&closing.promotion)) else { return Decision::Late };
    match how {
        Closed::Failed(at) => {
            let closing = &mut state.closing[n];
            closing.tries += 1;
            closing.ordered = false;
            let failing = facts.now - *closing.failing.get_or_insert(facts.now);
            let pause = if failing >= DAILY { DAILY } else { wait(closing.tries) };
            closing.due = (facts.now + pause).max(at.unwrap_or_default());
            // Otherwise a deleted pipeline whose host has disappeared would never end.
            if x.deleted && failing >= DELETED_PATIENCE {
                let closing = state.closing.remove(n);
                step.leave_open(&attempt.environment, closing);
            }
        }
        Closed::Closed => {
            let closing = state.closing.remove(n);
            if let Some((phase, why)) = closing.gone {
                step.past(&attempt.environment, Promotion { phase, why, due: None, ..closing.promotion });
            }
        }
        Closed::Merged(message) => {
            // It was merged at the moment in which it was given up: the revision was promoted nevertheless.
            let mut promotion = state.closing.remove(n).promotion;
            let known = state.promotion.as_ref().is_some_and(|current| attempt.is_of(current));
            if !known {
                promotion.phase = Phase::Succeeded;
                promotion.due = None;
                promotion.why = Condition::new(MERGED_LATE, message);
                step.past(&attempt.environment, promotion);
            }
        }
    }
    step.advance()
}
