//! The sequences engine's decisions: (state, input, facts) → next state and what it owes.
//!
//! [`decide`] is the one entry point. It is total: every input in every phase has an answer, and the answers are kept as a
//! reviewed table beside the tests. What must be done in the world is derived from the state by [`owed`] and [`fresh`], so a
//! crash after the commit loses nothing: whoever sees the state next derives the same effects.

mod advance;
mod approval;
mod birth;
mod decide;
mod effects;
mod follow;
mod react;
mod record;
mod state;
#[cfg(test)]
mod tests;

pub use birth::{Birth, born, first_payload, never_started};
pub use decide::{Decision, Facts, Input, Policy, Transition, deadline, decide};
pub use effects::{Effect, fresh, owed};
pub use follow::{domain_event_starts, same_lane};
pub use react::events_needed;
pub use record::{Answers, Draft, FollowUp, Record};
pub use state::{
    Class, End, EventRef, Execution, Flags, Lane, MAX_EXECUTORS, MAX_REACTIONS, Outcome, Phase, Reaction, ReactionKind, View,
    content, identity,
};
