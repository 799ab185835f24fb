//! Deployments under a scheduler that a seed decides about.
//!
//! `KEELWAY_SEEDS` runs more seeds; `KEELWAY_DEPLOYMENT_SEED=n` replays one with every request it made.

use keelway_conformance::deployments::simulate;
use keelway_conformance::sim;

#[test]
fn every_seed_of_the_deployments_keeps_the_invariants() {
    sim::hold(20_000, "KEELWAY_DEPLOYMENT_SEED", |seed, trace| simulate(seed, None, trace));
}

#[test]
fn one_seed_of_the_deployments() {
    sim::one("KEELWAY_DEPLOYMENT_SEED", |seed, trace| simulate(seed, None, trace));
}
