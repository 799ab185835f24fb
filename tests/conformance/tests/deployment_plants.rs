//! The simulation or a case finds each fault that is planted in deployments.

use keelway_conformance::deployments::{DeploymentsWorld, Plant, Rider, rollback_against_apply, simulate};
use keelway_conformance::sim::number;
use keelway_world::case::run;
use keelway_world::deployments::cases;
use keelway_world::story::Mode;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A fault must be found in the first so many seeds, or by a case.
const SEEDS: u64 = 1000;

/// The first seed, and the first case or race, that a fault spoils.
fn found(plant: Plant) -> (Option<String>, Option<String>) {
    // A seed the engine itself fails on shows nothing.
    let violated = |seed| simulate(seed, Some(plant), false).err().filter(|_| simulate(seed, None, false).is_ok());
    let seed = (0..number("KEELWAY_SEEDS").unwrap_or(SEEDS)).find_map(violated);
    let spoiled = |case: &keelway_world::deployments::Case| {
        let mut world = DeploymentsWorld::new(Mode::Clean, Rider::None, Some(plant));
        run(case, &mut world).err().map(|failure| failure.to_string())
    };
    let case = cases().unwrap_or_else(|e| panic!("{e}")).iter().find_map(spoiled);
    let case = case.or_else(|| rollback_against_apply(Some(plant)).err());
    (seed.map(|violation| format!("seed {}: {}", violation.seed, violation.rule)), case)
}

#[test]
fn every_fault_planted_in_deployments_is_found() {
    let only = std::env::var("KEELWAY_PLANT").ok();
    let plants: Vec<Plant> =
        Plant::ALL.into_iter().filter(|plant| only.as_ref().is_none_or(|name| *name == format!("{plant:?}"))).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut all = vec![];
        while let Some(plant) = plants.get(next.fetch_add(1, Ordering::Relaxed)) {
            all.push((*plant, found(*plant)));
        }
        all
    };
    let mut all = std::thread::scope(|scope| {
        let other = scope.spawn(work);
        let mut all = work();
        all.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        all
    });
    all.sort_by_key(|(plant, _)| *plant);
    let short = |what: &Option<String>| what.as_deref().unwrap_or("-").chars().take(140).collect::<String>().replace('\n', " ");
    for (plant, (seed, case)) in &all {
        println!("{plant:?}: {} | {}", short(seed), short(case));
    }
    let missed: Vec<Plant> = all.iter().filter(|(_, found)| *found == (None, None)).map(|(plant, _)| *plant).collect();
    assert!(missed.is_empty(), "not found: {missed:?}");
}
