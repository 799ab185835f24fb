//! Deadlines, and the single wake-up that serves them.

use super::facts::{Facts, Policy};
use super::state::{Execution, Lane, ReactionKind};
use crate::shipyard::Sequence;
use crate::time::{Span, Timestamp};

/// A pending wake-up that is at least this far ahead can serve a later deadline too. Covers the skew of the clocks involved.
const REUSE_WAKE: Span = Span::seconds(60);

/// When the execution needs a decision if nothing else happens: its next deadline, or the end of a delay.
pub fn deadline(x: &Execution, sequence: &Sequence, policy: &Policy) -> Option<Timestamp> {
    if x.outcome.is_some() {
        return None;
    }
    if let Some(held) = &x.held {
        return held.until;
    }
    let task = sequence.tasks.get(usize::from(x.task))?;
    let of_task = match (x.is_open(), x.sent) {
        (false, _) => x.due.filter(|_| x.lane == Lane::Holds),
        // A person has as long as the task says, otherwise unlimited time: the defaults apply to executors only.
        (true, Some(sent)) if x.waits_for_approval() => task.timeout.filter(|span| span.0 > 0).map(|span| sent + span),
        (true, Some(sent)) => match x.reactions.iter().filter(|r| r.kind == ReactionKind::Started).map(|r| r.at).min() {
            None => Some(sent + task.start_deadline.unwrap_or(policy.start_deadline)),
            Some(started) => Some(task.timeout.unwrap_or(policy.task_timeout)).filter(|span| span.0 > 0).map(|span| started + span),
        },
        (true, None) => None,
    };
    let of_sequence = match (sequence.timeout, x.counted_from()) {
        (Some(timeout), Some(began)) if timeout.0 > 0 && !x.paused => Some(began + timeout),
        _ => None,
    };
    [of_task, of_sequence].into_iter().flatten().min()
}

/// Keeps one wake-up pending. Plans a new one only if the pending one is too late or about to be due.
pub(super) fn arm(next: &mut Execution, facts: &Facts<'_>) {
    if let Some(deadline) = deadline(next, facts.sequence, &facts.policy) {
        let serves = next.wake.is_some_and(|wake| facts.now + REUSE_WAKE < wake && wake <= deadline);
        if !serves {
            set(next, deadline);
            next.quick = false;
        }
    }
}

/// Adjusts the wake-up after an answer. The pending wake-up will find a later deadline by itself; only an earlier deadline needs
/// another one.
pub(super) fn hasten(next: &mut Execution, facts: &Facts<'_>) {
    if let Some(deadline) = deadline(next, facts.sequence, &facts.policy)
        && next.wake.is_none_or(|wake| wake > deadline || wake < facts.now)
    {
        set(next, deadline);
    }
}

fn set(next: &mut Execution, deadline: Timestamp) {
    next.wake = Some(deadline);
    // A wake-up that plans the next one notes this afterwards.
    next.armed_by = None;
}
