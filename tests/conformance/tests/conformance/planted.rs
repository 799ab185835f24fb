//! The simulation finds what it is meant to find: each planted fault within a bounded number of seeds.

use keelway_conformance::planted::Plant;
use keelway_conformance::sequences::simulate;
use keelway_conformance::sim::number;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A fault must be found in the first so many seeds.
const SEEDS: u64 = 12_000;

#[test]
fn every_planted_fault_is_found() {
    let only = std::env::var("KEELWAY_PLANT").ok();
    let plants: Vec<Plant> =
        Plant::ALL.into_iter().filter(|plant| only.as_ref().is_none_or(|name| *name == format!("{plant:?}"))).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut found = vec![];
        while let Some(plant) = plants.get(next.fetch_add(1, Ordering::Relaxed)) {
            // A seed the engine itself fails on shows nothing.
            let violated = |seed| simulate(seed, Some(*plant), false).err().filter(|_| simulate(seed, None, false).is_ok());
            let first = (0..number("KEELWAY_SEEDS").unwrap_or(SEEDS)).find_map(violated);
            found.push((*plant, first.map(|violation| (violation.seed, violation.rule))));
        }
        found
    };
    let mut found = std::thread::scope(|scope| {
        let other = scope.spawn(work);
        let mut found = work();
        found.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        found
    });
    found.sort_by_key(|(plant, _)| *plant);
    for (plant, first) in &found {
        match first {
            Some((seed, rule)) => println!("{plant:?}: seed {seed}: {}", rule.chars().take(160).collect::<String>()),
            None => println!("{plant:?}: NOT FOUND in {SEEDS} seeds"),
        }
    }
    let missed: Vec<Plant> = found.iter().filter(|(_, first)| first.is_none()).map(|(plant, _)| *plant).collect();
    assert!(missed.is_empty(), "not found in {SEEDS} seeds: {missed:?}");
}
