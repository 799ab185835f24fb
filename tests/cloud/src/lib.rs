//! The deployed stack, for tests and benches: one cloud per process with the template deployed into it, what can be seen of it from
//! outside (events on the bus, the functions' logs, the table), and a runner for tests that share it.
//!
//! Entry points: [`Cloud::start`] and [`Cloud::deploy`]; [`observer::Observer`] watches a stack; [`stand::CloudStand`] runs cases.

pub mod api;
pub mod browser;
pub mod cloud;
pub mod container;
mod driver;
pub mod endpoint;
pub mod events;
pub mod executor;
pub mod line;
pub mod observer;
pub mod patience;
pub mod problem;
pub mod processes;
pub mod promotions;
pub mod raw;
pub mod runner;
pub mod stack;
pub mod stand;
pub mod stretch;

pub use cloud::{Ability, Cloud};
pub use problem::{Outcome, Problem};
pub use stack::Stack;
