//! The protocol under a scheduler that a seed decides about.
//!
//! `KEELWAY_SEEDS=200000 cargo test -p keelway-conformance simulation::` runs more seeds;
//! `KEELWAY_SEED=n` replays one with every request it made.

use keelway_conformance::sequences::simulate;
use keelway_conformance::sim::{self, number};

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

/// `KEELWAY_SURVEY=2000`: goes on after violations and counts them by rule; `KEELWAY_FROM` is the first seed.
#[test]
fn survey() {
    let Some(count) = number("KEELWAY_SURVEY") else { return };
    let mut rules: std::collections::BTreeMap<String, (u64, Vec<u64>)> = std::collections::BTreeMap::new();
    let first = number("KEELWAY_FROM").unwrap_or(0);
    for seed in first..first + count {
        if let Err(violation) = simulate(seed, None, false) {
            let words = violation.rule.split_whitespace().filter(|word| word.chars().all(|c| c.is_ascii_lowercase()));
            let entry = rules.entry(words.take(12).collect::<Vec<_>>().join(" ")).or_default();
            entry.0 += 1;
            if entry.1.len() < 5 {
                entry.1.push(seed);
            }
        }
    }
    println!("{count} seeds: {rules:#?}");
}
