//! The promotions engine's decisions: (state, input, facts) → next state and what it owes.
//!
//! A pipeline is level-triggered: [`decide`] applies an input to the state, and then evaluates the whole pipeline against what is
//! known now ([`advance`]). So it does not matter which observation came first, or whether one was lost: the next evaluation
//! decides the same.

pub mod definition;
pub mod observe;
pub mod registry;
pub mod report;

mod advance;
mod announce;
mod attempts;
mod commands;
mod decide;
mod facts;
mod gates;
mod leave;
mod state;
#[cfg(test)]
mod tests;

pub use crate::level::{MAX_OBEYED, Refused};
pub use announce::SOURCE;
pub use attempts::MERGED_LATE;
pub use decide::decide;
pub use facts::{
    At, Attempt, BACKOFF, BACKOFF_MOST, CLOSING, Closed, Command, DAILY, DELETED_PATIENCE, Decision, Facts, HEARTBEAT, Input,
    LEASE, Obeyed, Order, Outcome, PATIENCE, PICK_UP, Past, Retry, SOON, Seen, Transition, With,
};
pub use gates::{Gate, closed};
pub use state::{
    CLOSED, Closing, Environment, MAX_ABANDONED, MAX_CLOSING, MISSING, Made, NOT_TAKEN_BACK, Phase, Pipeline, Promotion,
    REQUEST_OPEN, Run,
};

/// A transition record of a pipeline; it orders attempts and their closing.
pub type Record = crate::record::Record<Order>;
