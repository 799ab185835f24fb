//! A delivery through sequences, deployments and promotions, under a scheduler that a seed decides about.
//!
//! `KEELWAY_SEEDS` runs more seeds; `KEELWAY_DELIVERY_SEED=n` replays one with every request it made.

use keelway_conformance::delivery::simulate;
use keelway_conformance::sim;

#[test]
fn every_seed_of_the_delivery_keeps_the_invariants() {
    sim::hold(120, "KEELWAY_DELIVERY_SEED", |seed, trace| simulate(seed, None, trace));
}

#[test]
fn one_seed_of_the_delivery() {
    sim::one("KEELWAY_DELIVERY_SEED", |seed, trace| simulate(seed, None, trace));
}

#[test]
fn survey() {
    sim::survey(|seed| simulate(seed, None, false));
}
