//! What a committed state owes the world. Derived, never stored: whoever loads the state derives the same.

use super::record::Record;
use super::state::{End, Execution, Lane};
use crate::time::Timestamp;

/// One thing owed. All of them may be done any number of times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Publish the events of the record the state names, in order.
    Publish,
    /// Tell the record's n-th follow-up to start.
    Follow(usize),
    /// Have the execution woken at this time.
    Wake(Timestamp),
    /// Enter the lane's queue with the present request, then drive the lane.
    Ask,
    /// Drive the lane: it may be free.
    Drive,
    /// Look at the context's flags again: the pause may have been lifted between our read and our write.
    Recheck,
}

/// Everything the state owes, after which nothing is left undone: for duplicates, redeliveries and the sweep.
pub fn owed(x: &Execution, record: Option<&Record>) -> Vec<Effect> {
    let mut effects = Vec::new();
    if let Some(record) = record {
        if !record.events.is_empty() {
            effects.push(Effect::Publish);
        }
        effects.extend((0..record.follow_ups.len()).map(Effect::Follow));
    }
    if x.outcome.is_none()
        && let Some(wake) = x.wake
    {
        effects.push(Effect::Wake(wake));
    }
    effects.extend(of_lane(x));
    if x.paused {
        effects.push(Effect::Recheck);
    }
    effects
}

fn of_lane(x: &Execution) -> Option<Effect> {
    match x.lane {
        Lane::Wants => Some(Effect::Ask),
        Lane::None => Some(Effect::Drive),
        Lane::Holds => None,
    }
}

/// What one's own fresh commit owes: the difference it made. `born_here(n)`: the n-th follow-up was created and queued by the
/// same commit, so driving the lane reaches it.
pub fn fresh(old: Option<&Execution>, next: &Execution, record: Option<&Record>, born_here: impl Fn(usize) -> bool) -> Vec<Effect> {
    let mut effects = Vec::new();
    if let Some(record) = record {
        if !record.events.is_empty() {
            effects.push(Effect::Publish);
        }
        effects.extend((0..record.follow_ups.len()).filter(|n| !born_here(*n)).map(Effect::Follow));
    }
    if let Some(wake) = next.wake.filter(|wake| next.outcome.is_none() && old.and_then(|old| old.wake) != Some(*wake)) {
        effects.push(Effect::Wake(wake));
    }
    let moved = old.is_none_or(|old| old.lane != next.lane || old.ask != next.ask) || next.outcome.is_some();
    // An execution that never started has never had to do with a lane.
    let never = old.is_none() && next.outcome.is_some_and(|outcome| outcome.end == End::NeverStarted);
    effects.extend(of_lane(next).filter(|_| moved && !never));
    if next.paused && !old.is_some_and(|old| old.paused) {
        effects.push(Effect::Recheck);
    }
    effects
}
