//! Webhooks in the simulation: subscriptions that come, change and go, and receivers that do what servers of other people do.

mod check;
mod plan;
mod planted;
mod scenario;
mod yard;

pub use planted::Plant;
pub use scenario::{Hooking, simulate, simulate_without_sweeps};
