//! The effects that a committed state owes in addition to the events, messages and wake-ups that every engine owes. They are
//! derived from the state and never stored: every handler that loads the state derives the same.

use super::state::{End, Execution, Lane};
use crate::cause::Cause;
use crate::ids::ExecutionId;
use crate::names::Context;

/// An effect. It may be performed any number of times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Duty {
    /// Write the tombstone of an execution that ended before it began. All other tombstones are written before the end is
    /// committed.
    Bury,
    /// Remove the entry of this request from the lane's queue.
    Leave(u32),
    /// Enter the lane's queue with the present request, then drive the lane.
    Ask,
    /// Check whether this request still holds the lane, as it did before the execution entered the queue. If not, drive the lane.
    Look {
        /// The execution that holds the lane.
        holder: ExecutionId,
        /// The holder's context.
        context: Context,
        /// The number of the holder's request.
        ask: u32,
    },
    /// End the older executions of the sequence that wait for the lane, or this one if a newer one waits.
    Supersede,
    /// Drive the lane, which may be free.
    Drive,
    /// Tell a follow-up that it holds the lane, which the commit that created it has given it.
    Grant(ExecutionId),
    /// Publish the trigger of the open task once more.
    Repeat,
    /// Read the context's flags and the shipyard in force once more: between the read and the commit, a pause may have ended, a
    /// person may have let the execution through, or other windows may have been applied.
    Recheck,
}

/// All effects that `x` owes, for a message that may be a redelivery. Afterwards nothing is owed.
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

/// The effects of a new commit: the difference between the two states. `old`: the state before. `None`: the commit created the
/// execution.
pub fn fresh(old: Option<&Execution>, next: &Execution) -> Vec<Duty> {
    let mut duties: Vec<Duty> = over_at_birth(next).filter(|_| old.is_none()).into_iter().collect();
    if let Some(old) = old.filter(|old| old.lane == Lane::Wants && next.lane != Lane::Wants) {
        duties.push(Duty::Leave(old.ask));
    }
    let moved = old.is_none_or(|old| old.lane != next.lane || old.ask != next.ask || (old.held.is_some() && next.held.is_none()))
        || next.outcome.is_some();
    duties.extend(of_lane(next).filter(|_| moved));
    // Only after it has entered the queue: of two executions that enter at once, at least one sees the other.
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
    // An execution that never started was neither in the lane nor in its queue.
    let never = x.outcome.is_some_and(|outcome| outcome.end == End::NeverStarted);
    match x.lane {
        Lane::Wants => Some(Duty::Ask),
        Lane::None if !never => Some(Duty::Drive),
        Lane::None | Lane::Holds => None,
    }
}
