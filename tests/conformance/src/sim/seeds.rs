//! Many seeds, for tests of any scenario.

use super::stats::{Stats, Violation};
use std::collections::BTreeMap;

/// A number from the environment.
pub fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// So many seeds: `KEELWAY_SEEDS`, or else `default`, and no more than `KEELWAY_MOST_SEEDS`.
fn wanted(default: u64) -> u64 {
    number("KEELWAY_SEEDS").unwrap_or(default).min(number("KEELWAY_MOST_SEEDS").unwrap_or(u64::MAX))
}

/// For a test: `KEELWAY_SEEDS` seeds, or `default`, must keep every invariant. The first one that does not is told with all its
/// requests.
///
/// # Panics
/// With that seed, and how to replay it.
pub fn hold(default: u64, replay: &str, simulate: impl Fn(u64, bool) -> Result<Stats, Violation> + Sync) {
    let count = wanted(default);
    let begin = std::time::Instant::now();
    match seeds(count, |seed| simulate(seed, false)) {
        Ok(stats) => println!("{count} seeds in {:.1?}: {:?}", begin.elapsed(), stats.0),
        Err(Violation { seed, rule, .. }) => {
            let trace = simulate(seed, true).err().map(|violation| violation.trace.join("\n")).unwrap_or_default();
            panic!(
                "{trace}\n\nseed {seed}: {rule}\nreplay: {replay}={seed} cargo test -p keelway-conformance-tests one_seed -- --nocapture"
            );
        }
    }
}

/// For a test: replays the seed that the variable `replay` names, if any, with all its requests.
///
/// # Panics
/// With the invariant that it violates.
pub fn one(replay: &str, simulate: impl Fn(u64, bool) -> Result<Stats, Violation>) {
    let Some(seed) = number(replay) else { return };
    match simulate(seed, true) {
        Ok(stats) => println!("seed {seed} keeps every invariant: {:?}", stats.0),
        Err(violation) => panic!("{}\n\nseed {seed}: {}", violation.trace.join("\n"), violation.rule),
    }
}

/// Runs the seeds below `count` on two threads; the smallest violated one, or what happened.
///
/// # Errors
/// The violation.
pub fn seeds(count: u64, simulate: impl Fn(u64) -> Result<Stats, Violation> + Sync) -> Result<Stats, Violation> {
    let run = |first: u64| {
        let mut stats = Stats::default();
        for seed in (first..count).step_by(2) {
            stats.merge(&simulate(seed)?);
        }
        Ok::<_, Violation>(stats)
    };
    let (even, odd) = std::thread::scope(|scope| {
        let odd = scope.spawn(|| run(1));
        (run(0), odd.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    match (even, odd) {
        (Ok(mut stats), Ok(other)) => {
            stats.merge(&other);
            Ok(stats)
        }
        (Err(a), Err(b)) => Err(if a.seed < b.seed { a } else { b }),
        (Err(violation), _) | (_, Err(violation)) => Err(violation),
    }
}

/// For a test: `KEELWAY_SURVEY=2000` goes on after violations and counts them by rule; `KEELWAY_FROM` is the first seed.
pub fn survey(simulate: impl Fn(u64) -> Result<Stats, Violation>) {
    let Some(count) = number("KEELWAY_SURVEY") else { return };
    let mut rules: BTreeMap<String, (u64, Vec<u64>, String)> = BTreeMap::new();
    let first = number("KEELWAY_FROM").unwrap_or(0);
    for seed in first..first + count {
        if let Err(violation) = simulate(seed) {
            let words = violation.rule.split_whitespace().filter(|word| word.chars().all(|c| c.is_ascii_lowercase()));
            let entry = rules.entry(words.take(12).collect::<Vec<_>>().join(" ")).or_default();
            entry.0 += 1;
            if entry.1.len() < 5 {
                entry.1.push(seed);
            }
            // One of them in full.
            if entry.2.is_empty() {
                entry.2 = violation.rule;
            }
        }
    }
    println!("{count} seeds: {rules:#?}");
}
