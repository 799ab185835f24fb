//! The simulation finds each decision between two engines that goes wrong.

use keelway_conformance::delivery::{Plant, simulate};
use keelway_conformance::plants::Family;

#[test]
fn every_mistake_between_the_engines_is_found() {
    Family { name: "delivery", plants: Plant::ALL, seeds: 600, simulate: &simulate, cases: vec![], spoiled: &|_, _| None }.find();
}
