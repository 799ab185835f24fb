//! Deployments under a scheduler that a seed decides about.
//!
//! `KEELWAY_SEEDS` runs more seeds; `KEELWAY_DEPLOYMENT_SEED=n` replays one with every request it made.

use keelway_conformance::deployments::{simulate, simulate_without_sweeps};
use keelway_conformance::sim;

#[test]
fn every_seed_of_the_deployments_keeps_the_invariants() {
    sim::hold(20_000, "KEELWAY_DEPLOYMENT_SEED", |seed, trace| simulate(seed, None, trace));
}

#[test]
fn one_seed_of_the_deployments() {
    sim::one("KEELWAY_DEPLOYMENT_SEED", |seed, trace| simulate(seed, None, trace));
}

/// Nothing waits for the sweep unless a message was lost.
#[test]
fn without_sweeps_every_seed_of_the_deployments_comes_to_rest() {
    sim::hold(4_000, "KEELWAY_UNSWEPT_SEED", |seed, trace| simulate_without_sweeps(seed, None, trace));
}

#[test]
fn one_seed_of_the_deployments_without_sweeps() {
    sim::one("KEELWAY_UNSWEPT_SEED", |seed, trace| simulate_without_sweeps(seed, None, trace));
}
