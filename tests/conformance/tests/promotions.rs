//! Promotions under a scheduler that a seed decides about.
//!
//! `KEELWAY_SEEDS` runs more seeds; `KEELWAY_PROMOTION_SEED=n` replays one with every request it made.

use keelway_conformance::promotions::simulate;
use keelway_conformance::sim::{number, seeds};

#[test]
fn every_seed_of_the_promotions_keeps_the_invariants() {
    let count = number("KEELWAY_SEEDS").unwrap_or(20_000);
    match seeds(count, |seed| simulate(seed, false)) {
        Ok(stats) => println!("{count} seeds: {:?}", stats.0),
        Err(violation) => {
            let replayed = simulate(violation.seed, true).err();
            let trace = replayed.map(|violation| violation.trace.join("\n")).unwrap_or_default();
            panic!("{trace}\n\nseed {}: {}", violation.seed, violation.rule);
        }
    }
}

#[test]
fn one_seed_of_the_promotions() {
    let Some(seed) = number("KEELWAY_PROMOTION_SEED") else { return };
    match simulate(seed, true) {
        Ok(stats) => println!("seed {seed} keeps every invariant: {:?}", stats.0),
        Err(violation) => panic!("{}\n\nseed {seed}: {}", violation.trace.join("\n"), violation.rule),
    }
}
