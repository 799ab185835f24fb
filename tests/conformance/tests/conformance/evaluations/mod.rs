//! Evaluations: the cases, the simulation, and the planted faults.
//!
//! `KEELWAY_CASE=EV-03` runs one case and, if it fails, prints every request.

use crate::suite::suite;
use keelway_conformance::evaluations::{Plant, simulate, simulate_without_sweeps};
use keelway_conformance::held::{evaluations, evaluations_that_end_alike, finders_of_evaluations};
use keelway_conformance::plants::Family;
use keelway_conformance::sim;

suite! {
    cases: evaluations();
    faults: evaluations_that_end_alike();
    seeds: 20_000, "KEELWAY_EVALUATION_SEED", simulate;
    seeds without sweeps: 2_000, "KEELWAY_EVALUATION_SWEEPLESS_SEED", simulate_without_sweeps;
    plants: "evaluations", 2000, simulate, cases: finders_of_evaluations();
}
