//! Attempts: who carries one out, how it ended, what became of what it made, and how it is taken back.

use super::advance::Step;
use super::facts::{Attempt, BACKOFF, BACKOFF_MOST, Closed, Decision, Facts, LEASE, Outcome, PATIENCE, Retry, Seen};
use super::state::{Condition, Made, Phase, Pipeline, Promotion};
use crate::ids::hash64;
use crate::time::Span;

/// Why a promotion that was given up has succeeded after all.
pub const MERGED_LATE: &str = "MergedLate";

/// The pause after a failed attempt: twice as long each time, up to an hour, a fifth more or less. What varies follows from the attempt,
/// so that two deliveries of one message decide the same.
pub(super) fn backoff(attempt: &Attempt, pipeline: (&str, &str)) -> Span {
    let base = BACKOFF.0.saturating_mul(1 << (attempt.attempt.clamp(1, 12) - 1)).min(BACKOFF_MOST.0);
    let identity = attempt.identity(pipeline.0, pipeline.1);
    let dice = hash64(&[&identity.to_be_bytes(), &attempt.attempt.to_be_bytes()]) % 401;
    Span(base * (800 + i64::try_from(dice).unwrap_or(0)) / 1000)
}

/// The promotion that an attempt belongs to, if that is the current one.
fn current<'x>(x: &'x Pipeline, attempt: &Attempt) -> Option<&'x Promotion> {
    x.environments.get(&attempt.environment)?.promotion.as_ref().filter(|promotion| attempt.is_of(promotion))
}

/// Somebody is about to carry out an attempt: nobody else does until the end of the lease. The evaluation may find that the attempt is no
/// longer needed, so whoever begins it looks at the state again.
pub(super) fn begin(x: &Pipeline, attempt: &Attempt, facts: &Facts<'_>) -> Decision {
    let present = |promotion: &&Promotion| promotion.phase == Phase::Attempting && promotion.attempt == attempt.attempt;
    let Some(promotion) = current(x, attempt).filter(present) else { return Decision::Late };
    if promotion.claimed {
        // Somebody else is at it, or was: after the end of the lease, the wake-up decides what happens next.
        return Decision::Late;
    }
    let mut step = Step::new(x, facts);
    if let Some(promotion) = step.promotion(&attempt.environment) {
        promotion.claimed = true;
        promotion.due = Some(facts.now + LEASE);
    }
    step.advance()
}

/// How an attempt ended. Only the present attempt counts; what an earlier one made is found by its identity.
pub(super) fn ended(x: &Pipeline, attempt: &Attempt, outcome: &Outcome, facts: &Facts<'_>) -> Decision {
    let present = |promotion: &&Promotion| promotion.phase == Phase::Attempting && promotion.attempt == attempt.attempt;
    if current(x, attempt).filter(present).is_none() {
        return ended_too_late(x, attempt, outcome, facts);
    }
    let now = facts.now;
    let mut step = Step::new(x, facts);
    let name = attempt.environment.as_str();
    let wait = backoff(attempt, (&x.namespace, &x.name));
    let Some(promotion) = step.promotion(name) else { return Decision::Late };
    promotion.due = None;
    promotion.claimed = false;
    let what = match outcome {
        Outcome::Done(made) => {
            promotion.phase = Phase::Succeeded;
            promotion.why = Condition::new("Promoted", "the promotion was carried out");
            promotion.effect = Some(made.clone());
            "succeeded"
        }
        Outcome::Nothing(why) => {
            promotion.phase = Phase::Succeeded;
            promotion.why = why.clone();
            "succeeded"
        }
        Outcome::Created(made) => {
            promotion.phase = Phase::Created;
            promotion.why = match made {
                Made::PullRequest { url, .. } => Condition::new("PullRequestOpen", format!("{url} waits to be merged")),
                Made::Sequence { context } => Condition::new("SequenceRuns", format!("sequence {context} carries it out")),
                Made::Notification { .. } => Condition::default(),
            };
            promotion.effect = Some(made.clone());
            "created"
        }
        Outcome::Failed { why, retry } => {
            promotion.phase = Phase::Failed;
            promotion.why = why.clone();
            promotion.due = match retry {
                Retry::Backoff => Some(now + wait),
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

/// An attempt that is being taken back has until the end of its lease. If it ends before, nobody is at it any more: what it made, or may have
/// made, is closed at once.
fn ended_too_late(x: &Pipeline, attempt: &Attempt, outcome: &Outcome, facts: &Facts<'_>) -> Decision {
    let mut step = Step::new(x, facts);
    let closing = step.next.environments.get_mut(&attempt.environment).map(|state| &mut state.closing);
    let Some(closing) = closing.and_then(|all| all.iter_mut().find(|closing| attempt.is_of(&closing.promotion))) else {
        return Decision::Late;
    };
    let made = match outcome {
        Outcome::Created(made) => Some(made),
        // Somebody else may be at a later attempt.
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

/// What has become of what an attempt made.
pub(super) fn seen(x: &Pipeline, attempt: &Attempt, seen: &Seen, facts: &Facts<'_>) -> Decision {
    let Some(promotion) = current(x, attempt) else { return Decision::Late };
    match (promotion.phase, seen) {
        (Phase::Created, _) => {}
        // A person reopened what was closed, or mended what the host refused, and merged it.
        (Phase::Abandoned | Phase::Failed, Seen::Succeeded(_)) if promotion.effect.is_some() => {}
        _ => return Decision::Late,
    }
    let mut step = Step::new(x, facts);
    let name = attempt.environment.as_str();
    let Some(promotion) = step.promotion(name) else { return Decision::Late };
    let what = match seen {
        Seen::Open(made) => {
            promotion.effect = Some(made.clone());
            ""
        }
        Seen::Succeeded(message) => {
            promotion.phase = Phase::Succeeded;
            promotion.why = Condition::new("Merged", message);
            "succeeded"
        }
        Seen::Closed(message) => {
            promotion.phase = Phase::Abandoned;
            promotion.why = Condition::new("Closed", message);
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

/// How taking an attempt back went.
pub(super) fn closed(x: &Pipeline, attempt: &Attempt, how: &Closed, facts: &Facts<'_>) -> Decision {
    let mut step = Step::new(x, facts);
    let wait = |tries: u32| backoff(&Attempt { attempt: tries, ..attempt.clone() }, (&x.namespace, &x.name));
    let Some(state) = step.next.environments.get_mut(&attempt.environment) else { return Decision::Late };
    let Some(n) = state.closing.iter().position(|closing| attempt.is_of(&closing.promotion)) else { return Decision::Late };
    match how {
        Closed::Failed(at) => {
            let closing = &mut state.closing[n];
            closing.tries += 1;
            closing.due = (facts.now + wait(closing.tries)).max(at.unwrap_or_default());
        }
        Closed::Closed => drop(state.closing.remove(n)),
        Closed::Merged(message) => {
            // It was merged in the moment it was given up: the revision was promoted after all.
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
