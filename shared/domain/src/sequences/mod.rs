//! The decisions of the sequences engine: (state, input, facts) → next state and effects.
//!
//! [`decide`] is the entry point. It is total: every input in every phase has a decision, and the tests keep a reviewed table of
//! all decisions. The effects are derived from the state and its record ([`owed`] and [`fresh`] derive those that only this engine
//! has), so a crash after the commit loses nothing: the handler of the redelivery derives the same effects.

mod advance;
mod approval;
mod bare;
mod birth;
mod deadline;
mod decide;
mod duties;
mod facts;
mod flags;
mod follow;
mod freeze;
mod get_action;
mod react;
mod remediation;
mod show;
mod state;
#[cfg(test)]
mod tests;
mod window;

pub use approval::{SEPARATE, check_decision, is_separate, own};
pub use bare::{Bare, First};
pub use birth::{Birth, Done, born, first_payload, never_started};
pub use deadline::deadline;
pub use decide::{UNANSWERED, decide};
pub use duties::{Duty, fresh, owed};
pub use facts::{Decision, Facts, Input, Policy, Transition};
pub use flags::Flags;
pub use follow::{FollowUp, domain_event_starts, same_lane, unreached};
pub use freeze::{Entrance, Held, Override, Passage};
pub use get_action::GET_ACTION;
pub use react::{Standing, events_needed, mismatch, standing};
pub use remediation::{Action, ProblemType, Remediation};
pub use state::{
    Class, Deployed, End, EventRef, Execution, Gathered, Lane, MAX_EXECUTORS, MAX_REACTIONS, Outcome, Phase, RECORDS, Reaction,
    ReactionKind, TaskTimes, View, content, identity,
};
pub use window::Window;

/// A transition record of an execution. It starts follow-ups.
pub type Record = crate::record::Record<FollowUp>;
