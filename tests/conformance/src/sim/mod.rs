//! The seeded simulation: workers handle messages of several executions on two lanes, one request at a time, in an order the seed
//! decides, while everything goes wrong that may. After every request the invariants are checked, and more of them at rest.

mod actors;
mod check;
mod plan;
mod rest;
mod run;

pub use plan::Plan;
pub use run::{Stats, Violation, simulate};
