//! The decisions of the promotions engine: (state, input, facts) → next state and effects.
//!
//! A pipeline is level-triggered: [`decide`] applies an input to the state, and then evaluates the whole pipeline against the
//! present facts ([`advance`]). So neither the order of observations nor the loss of one matters: the next evaluation decides the
//! same.

pub mod definition;
pub mod observe;
pub mod pull_request;
pub mod registry;
pub mod report;

mod advance;
mod announce;
mod attempts;
mod commands;
mod decide;
mod evaluation;
mod facts;
mod gates;
mod leave;
mod state;
#[cfg(test)]
mod tests;

pub use crate::level::{MAX_OBEYED, Refused};
pub use announce::{NEEDED, SOURCE, needed};
pub use attempts::MERGED_LATE;
pub use decide::decide;
pub use evaluation::{ANSWER_WITHIN, EVALUATING, EVALUATION_FAILED, Evaluate, Evaluation};
pub use facts::{
    At, Attempt, AttemptResult, BACKOFF, BACKOFF_MOST, CLOSING, Closed, Command, DAILY, DELETED_PATIENCE, Decision, Facts, Failure,
    HEARTBEAT, Input, LEASE, Obeyed, Order, PATIENCE, PICK_UP, Past, Retry, SOON, Seen, Transition, With,
};
pub use gates::{Gate, closed};
pub use state::{
    CLOSED, Closing, Environment, MAX_ABANDONED, MAX_CLOSING, MISSING, Made, NOT_TAKEN_BACK, Phase, Pipeline, Promotion,
    REQUEST_OPEN, Run,
};

/// A transition record of a pipeline. It orders attempts and their closing.
pub type Record = crate::record::Record<Order>;
