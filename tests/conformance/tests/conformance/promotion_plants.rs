//! The simulation or a case finds each fault that is planted in promotions.

use keelway_conformance::plants;
use keelway_conformance::promotions::{Plant, PromotionsWorld, Rider, simulate};
use keelway_conformance::sim::number;
use keelway_world::case::run;
use keelway_world::promotions::cases;
use keelway_world::story::Mode;

/// A fault must be found in the first so many seeds, or by a case.
const SEEDS: u64 = 1000;

/// The first seed, and the first case, that a fault spoils.
fn found(plant: Plant) -> (Option<String>, Option<String>) {
    // A seed the engine itself fails on shows nothing.
    let violated = |seed| simulate(seed, Some(plant), false).err().filter(|_| simulate(seed, None, false).is_ok());
    let seed = (0..number("KEELWAY_SEEDS").unwrap_or(SEEDS)).find_map(violated);
    let spoiled = |case: &keelway_world::promotions::Case| {
        let mut world = PromotionsWorld::new(Mode::Clean, Rider::None, Some(plant));
        run(case, &mut world).err().map(|failure| failure.to_string())
    };
    let case = cases().unwrap_or_else(|e| panic!("{e}")).iter().find_map(spoiled);
    (seed.map(|violation| format!("seed {}: {}", violation.seed, violation.rule)), case)
}

#[test]
fn every_fault_planted_in_promotions_is_found() {
    plants::find(&Plant::ALL, found);
}
