//! The simulation finds each fault that is planted in webhooks.

use keelway_conformance::plants;
use keelway_conformance::sim::number;
use keelway_conformance::webhooks::{Plant, simulate};

/// A fault must be found in the first so many seeds.
const SEEDS: u64 = 2000;

/// The first seed that a fault spoils.
fn found(plant: Plant) -> (Option<String>, Option<String>) {
    // A seed the engine itself fails on shows nothing.
    let violated = |seed| simulate(seed, Some(plant), false).err().filter(|_| simulate(seed, None, false).is_ok());
    let seed = (0..number("KEELWAY_SEEDS").unwrap_or(SEEDS)).find_map(violated);
    (seed.map(|violation| format!("seed {}: {}", violation.seed, violation.rule)), None)
}

#[test]
fn every_fault_planted_in_webhooks_is_found() {
    plants::find(&Plant::ALL, found);
}
