//! Evaluations in the simulation: services whose tasks are evaluated, sources and services on the bus that provide values as well
//! as others' do, and people who change files, choose sources and take evaluations out.

mod acts;
mod check;
mod ending;
pub mod plan;
mod planted;
mod scenario;

pub use ending::ending;
pub use planted::{Plant, world};
pub use scenario::Evaluating;

use crate::sim::{self, Stats, Violation};
use keelway_world::rng::Rng;
use plan::Plan;

/// Runs one seed.
///
/// # Errors
/// The first invariant that is violated.
pub fn simulate(seed: u64, plant: Option<Plant>, trace: bool) -> Result<Stats, Violation> {
    let scenario = |rng: &mut Rng| {
        let (plan, troubles) = Plan::of(rng);
        (Evaluating::new(plan, plant), troubles)
    };
    sim::simulate(seed, scenario, trace)
}

/// Runs one seed without a sweep: everything comes to rest all the same, because no message is lost.
///
/// # Errors
/// The first invariant that is violated.
pub fn simulate_without_sweeps(seed: u64, plant: Option<Plant>, trace: bool) -> Result<Stats, Violation> {
    let scenario = |rng: &mut Rng| {
        let (plan, troubles) = Plan::of(rng);
        (Evaluating::new(plan, plant), troubles.without_sweeps())
    };
    sim::simulate(seed, scenario, trace)
}
