//! The simulation finds each check of the border that is taken out.

use keelway_conformance::border::{Plant, simulate};
use keelway_conformance::plants::Family;

#[test]
fn every_check_of_the_border_that_is_taken_out_is_missed() {
    Family { name: "border", plants: Plant::ALL, seeds: 500, simulate: &simulate, cases: vec![], spoiled: &|_, _| None }.find();
}
