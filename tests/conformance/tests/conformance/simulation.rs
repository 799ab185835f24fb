//! The protocol under a scheduler that a seed decides about.
//!
//! `KEELWAY_SEEDS=200000 cargo test -p keelway-conformance simulation::` runs more seeds;
//! `KEELWAY_SEED=n` replays one with every request it made.

use keelway_conformance::sequences::simulate;
use keelway_conformance::sim;

#[test]
fn every_seed_keeps_the_invariants() {
    sim::hold(20_000, "KEELWAY_SEED", |seed, trace| simulate(seed, None, trace));
}

#[test]
fn one_seed() {
    sim::one("KEELWAY_SEED", |seed, trace| simulate(seed, None, trace));
}

#[test]
fn a_seed_is_the_whole_story() {
    for seed in 0..100 {
        let run = || simulate(seed, None, true).map(|stats| stats.0).map_err(|violation| (violation.rule, violation.trace));
        assert_eq!(run(), run(), "seed {seed} ran differently the second time");
    }
}

#[test]
fn survey() {
    sim::survey(|seed| simulate(seed, None, false));
}
