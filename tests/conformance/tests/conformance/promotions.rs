//! Promotions under a scheduler that a seed decides about.
//!
//! `KEELWAY_SEEDS` runs more seeds; `KEELWAY_PROMOTION_SEED=n` replays one with every request it made.

use keelway_conformance::promotions::{simulate, simulate_without_sweeps};
use keelway_conformance::sim;

#[test]
fn every_seed_of_the_promotions_keeps_the_invariants() {
    sim::hold(20_000, "KEELWAY_PROMOTION_SEED", |seed, trace| simulate(seed, None, trace));
}

#[test]
fn one_seed_of_the_promotions() {
    sim::one("KEELWAY_PROMOTION_SEED", |seed, trace| simulate(seed, None, trace));
}

/// Nothing waits for the sweep unless a message was lost.
#[test]
fn every_seed_of_the_promotions_comes_to_rest_without_sweeps() {
    sim::hold(2_000, "KEELWAY_PROMOTION_SWEEPLESS_SEED", |seed, trace| simulate_without_sweeps(seed, None, trace));
}

#[test]
fn one_seed_of_the_promotions_without_sweeps() {
    sim::one("KEELWAY_PROMOTION_SWEEPLESS_SEED", |seed, trace| simulate_without_sweeps(seed, None, trace));
}
