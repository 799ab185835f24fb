//! The conformance suite's own machinery: cases over the in-memory world, the seeded simulation, planted faults.

mod bent;
pub mod border;
pub mod chosen;
pub mod contracts;
pub mod counter;
mod definitions;
pub mod delivery;
pub mod deployments;
mod engines;
pub mod evaluations;
pub mod plants;
pub mod promotions;
pub mod sequences;
pub mod sim;
pub mod stand;
pub mod webhooks;
