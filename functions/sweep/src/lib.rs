//! The sweep over all engines. [`sweep`] calls each engine as long as there is time; the program connects the parts.

mod handler;
mod knocks;
mod queues;

pub use handler::{Engines, Limits, sweep};
pub use knocks::Doors;
