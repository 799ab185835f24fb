//! The decisions of the deployments engine: (state, input, facts) → next state and effects.
//!
//! A deployment config is level-triggered, like a pipeline: [`decide`] applies an input to the state, and then evaluates the config
//! against the present facts (`advance`). The calls of deployers are the one exception: [`answer`] decides them without effects, so
//! that the API can write the next state at once; the evaluation that follows publishes what has changed.
//!
//! Deployments that Keelway carries out itself: [`plan`] has their stages, [`analysis`] what metrics say of each,
//! [`checkpoint`] the state stored between two stages,
//! [`rights`] the resources that each may use, and [`runner`] the tasks and builds that are started instead. [`notice`] has the
//! events of AWS about images, alarms, tasks and builds.

pub mod analysis;
pub mod checkpoint;
pub mod definition;
pub mod notice;
pub mod plan;
pub mod registry;
pub mod rights;
pub mod runner;
pub mod template;
pub mod together;
pub mod variables;

mod advance;
mod announce;
mod calls;
mod commands;
mod cut;
mod decide;
mod deployment;
mod drift;
mod facts;
mod life;
mod origin;
mod part;
mod resolve;
mod resources;
mod rollback;
mod state;
#[cfg(test)]
mod tests;

pub use crate::level::{MAX_OBEYED, Refused};
pub use announce::SOURCE;
pub use calls::{Answer, MAX_TARGETS, answer};
pub use commands::{missing, task_of, unanswered};
pub use decide::{decide, target};
pub use deployment::{
    Cancel, Claim, Content, Deployment, MAX_CAUSES, MAX_CHECKPOINT, MAX_TAIL, Progress, Report, Status, TargetProgress, TimeLimits,
    Why,
};
pub use drift::{LOOK_EVERY, Served, Sight, Watch};
pub use facts::{
    Applied, Back, Call, Command, Decision, Desired, Facts, Input, LEASE, LEASE_MOST, Latest, OFFER_AGAIN, Obeyed, Order, Parts,
    Past, QUIET, QUIET_MOST, Reply, Request, STOP, Snapshot, TAKE_UP, Transition, With,
};
pub use origin::{Delivery, Rollback, Task};
pub use part::{Part, WHOLE};
pub use resolve::{Generated, Images, Resolved, change_that_waits, generate, message, request_that_waits, resolve};
pub use resources::code;
pub use rollback::candidate;
pub use state::{Config, Pin, Settling, Suspension, Version};

/// A transition record of a config; it orders that deployers are started.
pub type Record = crate::record::Record<Order>;
