//! Promotions: the cases, the simulation, the planted faults; and by topic, what only direct tests show.
//!
//! `KEELWAY_CASE=P05` runs one case and, if it fails, prints every request.

mod by_sequence;
mod evaluated;
mod facts;

use crate::suite::suite;
use keelway_conformance::held::{self, finders_of_promotions};
use keelway_conformance::plants::Family;
use keelway_conformance::promotions::{Plant, Rider, simulate, simulate_without_sweeps};
use keelway_conformance::sim;

suite! {
    cases: held::promotions(Rider::None);
    faults: held::promotions_that_end_alike(Rider::Disturbed);
    seeds: 20_000, "KEELWAY_PROMOTION_SEED", simulate;
    seeds without sweeps: 2_000, "KEELWAY_PROMOTION_SWEEPLESS_SEED", simulate_without_sweeps;
    plants: "promotions", 1000, simulate, cases: finders_of_promotions();
}

/// As every suite's own test, and here what takes time goes on in parts, from each of which a fault may be told.
#[test]
fn a_fork_of_a_disturbed_case_ends_like_the_case() {
    held::promotions(Rider::Disturbed).hold_in_forks();
}

#[test]
fn an_evaluation_after_each_step_changes_nothing() {
    held::promotions(Rider::Evaluated).hold();
}

/// Each target's newest fact counts, whatever arrives first.
#[test]
fn any_order_of_delivery_promotes_the_same() {
    held::promotions_that_end_alike(Rider::None).hold_in_any_order();
}
