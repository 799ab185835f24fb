//! The simulation finds what it is meant to find: each planted fault within a bounded number of seeds.

use keelway_conformance::plants::Family;
use keelway_conformance::sequences::{Plant, simulate};

#[test]
fn every_planted_fault_is_found() {
    Family { name: "sequences", plants: Plant::ALL, seeds: 12_000, simulate: &simulate, cases: vec![], spoiled: &|_, _| None }
        .find();
}
