//! The simulation finds each fault that is planted in webhooks.

use keelway_conformance::plants::Family;
use keelway_conformance::webhooks::{Plant, simulate};

#[test]
fn every_fault_planted_in_webhooks_is_found() {
    Family { name: "webhooks", plants: Plant::ALL, seeds: 2000, simulate: &simulate, cases: vec![], spoiled: &|_, _| None }.find();
}
