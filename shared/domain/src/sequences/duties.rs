//! What a committed state owes in addition to its record's events and messages and its wake-up, which every engine owes. Duties are
//! derived, never stored: every handler that loads the state derives the same.

use super::state::{End, Execution, Lane};
use crate::cause::Cause;
use crate::ids::ExecutionId;
use crate::names::Context;

/// One duty. Each may be performed any number of times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Duty {
    /// Write a tombstone for an execution that ended before it began; for all others, it is written before the end is committed.
    Bury,
    /// Remove the entry of this request from the lane's queue: it is no longer needed.
    Leave(u32),
    /// Enter the lane's queue with the present request, then drive the lane.
    Ask,
    /// Check whether this request still holds the lane, as it did before the execution entered the queue; drive the lane if not.
    Look {
        /// The holder.
        holder: ExecutionId,
        /// The holder's context.
        context: Context,
        /// Which of the holder's requests.
        ask: u32,
    },
    /// End the older executions of its sequence that wait for the lane, or have it ended by a newer one.
    Supersede,
    /// Drive the lane: it may be free.
    Drive,
    /// Notify a follow-up that it holds the lane: the commit that created it gave it the lane.
    Grant(ExecutionId),
    /// Publish the open task's trigger once more.
    Repeat,
    /// Check the context's flags and the shipyard in force again: between our read and our write, the pause may have been lifted, somebody may
    /// have let the execution through, or other windows may have been applied.
    Recheck,
}

/// Everything `x` owes, for a message that may be a redelivery: afterwards, nothing remains to be done.
pub fn owed(x: &Execution, cause: Cause) -> Vec<Duty> {
    let mut duties: Vec<Duty> = over_at_birth(x).into_iter().chain(of_lane(x)).collect();
    duties.extend(x.is_replaceable().then_some(Duty::Supersede));
    if x.repeated == Some(cause.id) {
        duties.push(Duty::Repeat);
    }
    if x.paused || x.held.is_some() {
        duties.push(Duty::Recheck);
    }
    duties
}

/// What a fresh commit owes: the difference between the two states. `old` is what it replaced; `None` = it created the execution.
pub fn fresh(old: Option<&Execution>, next: &Execution) -> Vec<Duty> {
    let mut duties: Vec<Duty> = over_at_birth(next).filter(|_| old.is_none()).into_iter().collect();
    if let Some(old) = old.filter(|old| old.lane == Lane::Wants && next.lane != Lane::Wants) {
        duties.push(Duty::Leave(old.ask));
    }
    let moved = old.is_none_or(|old| old.lane != next.lane || old.ask != next.ask || (old.held.is_some() && next.held.is_none()))
        || next.outcome.is_some();
    duties.extend(of_lane(next).filter(|_| moved));
    // After it entered the queue: of two that come at once, at least one sees the other.
    duties.extend((moved && next.is_replaceable()).then_some(Duty::Supersede));
    if next.repeated.is_some() && old.is_some_and(|old| old.repeated.is_none()) {
        duties.push(Duty::Repeat);
    }
    let held_anew = next.held.is_some() && old.is_none_or(|old| old.held != next.held);
    if held_anew || (next.paused && !old.is_some_and(|old| old.paused)) {
        duties.push(Duty::Recheck);
    }
    duties
}

fn over_at_birth(x: &Execution) -> Option<Duty> {
    (x.outcome.is_some() && x.began.is_none()).then_some(Duty::Bury)
}

fn of_lane(x: &Execution) -> Option<Duty> {
    // An execution that never started was never in a lane or its queue.
    let never = x.outcome.is_some_and(|outcome| outcome.end == End::NeverStarted);
    match x.lane {
        Lane::Wants => Some(Duty::Ask),
        Lane::None if !never => Some(Duty::Drive),
        Lane::None | Lane::Holds => None,
    }
}
