//! The simulation or a case finds each fault that is planted in promotions.

use keelway_conformance::plants::Family;
use keelway_conformance::promotions::{Plant, PromotionsWorld, Rider, simulate};
use keelway_world::case::run;
use keelway_world::promotions::cases;
use keelway_world::story::Mode;

#[test]
fn every_fault_planted_in_promotions_is_found() {
    let cases = cases().unwrap_or_else(|e| panic!("{e}"));
    let spoiled = |plant, place: usize| {
        let mut world = PromotionsWorld::new(Mode::Clean, Rider::None, Some(plant));
        run(&cases[place], &mut world).err().map(|failure| failure.to_string())
    };
    let ids = cases.iter().map(|case| case.id.clone()).collect();
    Family { name: "promotions", plants: Plant::ALL, seeds: 1000, simulate: &simulate, cases: ids, spoiled: &spoiled }.find();
}
