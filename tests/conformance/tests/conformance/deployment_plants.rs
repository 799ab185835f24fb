//! The simulation or a case finds each fault that is planted in deployments.

use keelway_conformance::deployments::{DeploymentsWorld, Plant, Rider, rollback_against_apply, simulate};
use keelway_conformance::plants::Family;
use keelway_world::case::run;
use keelway_world::deployments::cases;
use keelway_world::story::Mode;

/// The race of a rollback against whoever applies a definition, beside the cases.
const RACE: &str = "race";

#[test]
fn every_fault_planted_in_deployments_is_found() {
    let cases = cases().unwrap_or_else(|e| panic!("{e}"));
    let spoiled = |plant, place: usize| {
        let Some(case) = cases.get(place) else { return rollback_against_apply(Some(plant)).err() };
        let mut world = DeploymentsWorld::new(Mode::Clean, Rider::None, Some(plant));
        run(case, &mut world).err().map(|failure| failure.to_string())
    };
    let ids = cases.iter().map(|case| case.id.clone()).chain([RACE.to_owned()]).collect();
    Family { name: "deployments", plants: Plant::ALL, seeds: 8000, simulate: &simulate, cases: ids, spoiled: &spoiled }.find();
}
