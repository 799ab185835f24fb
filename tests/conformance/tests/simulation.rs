//! The protocol under a scheduler that a seed decides about.
//!
//! `KEELWAY_SEEDS=200000 cargo test -p keelway-conformance --test simulation` runs more seeds;
//! `KEELWAY_SEED=n` replays one with every request it made.

use keelway_conformance::sequences::simulate;
use keelway_conformance::sim::{Violation, number, seeds};

fn report(violation: &Violation) -> String {
    let replayed = simulate(violation.seed, None, true).err();
    let trace = replayed.map(|violation| violation.trace.join("\n")).unwrap_or_default();
    format!(
        "{trace}\n\nseed {}: {}\nreplay: KEELWAY_SEED={} cargo test -p keelway-conformance --test simulation one_seed -- --nocapture",
        violation.seed, violation.rule, violation.seed
    )
}

#[test]
fn every_seed_keeps_the_invariants() {
    let count = number("KEELWAY_SEEDS").unwrap_or(20_000);
    let begin = std::time::Instant::now();
    match seeds(count, |seed| simulate(seed, None, false)) {
        Ok(stats) => println!("{count} seeds in {:.1?}: {:?}", begin.elapsed(), stats.0),
        Err(violation) => panic!("{}", report(&violation)),
    }
}

#[test]
fn one_seed() {
    let Some(seed) = number("KEELWAY_SEED") else { return };
    match simulate(seed, None, true) {
        Ok(stats) => println!("seed {seed} keeps every invariant: {:?}", stats.0),
        Err(violation) => panic!("{}\n\nseed {seed}: {}", violation.trace.join("\n"), violation.rule),
    }
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
