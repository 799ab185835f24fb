//! Deliveries of webhooks under a scheduler that a seed decides about.
//!
//! `KEELWAY_SEEDS` runs more seeds; `KEELWAY_WEBHOOK_SEED=n` replays one with every request it made.

use keelway_conformance::sim;
use keelway_conformance::webhooks::simulate;

#[test]
fn every_seed_of_the_webhooks_keeps_the_invariants() {
    sim::hold(20_000, "KEELWAY_WEBHOOK_SEED", |seed, trace| simulate(seed, None, trace));
}

#[test]
fn one_seed_of_the_webhooks() {
    sim::one("KEELWAY_WEBHOOK_SEED", |seed, trace| simulate(seed, None, trace));
}
