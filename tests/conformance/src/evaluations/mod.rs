//! Evaluations in the simulation: services whose tasks are evaluated, sources and services on the bus that provide values as well
//! as others' do, and people who change files, choose sources and take evaluations out.

mod check;
mod plan;
mod planted;
mod scenario;

pub use planted::{Plant, world};
pub use scenario::{Evaluating, simulate, simulate_without_sweeps};
