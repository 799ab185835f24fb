//! Promotions: the cases, the simulation, the planted faults; and by topic, what only direct tests show.
//!
//! `KEELWAY_CASE=P05` runs one case and, if it fails, prints every request.

mod by_sequence;
mod evaluated;
mod facts;

use crate::suite::suite;
use keelway_conformance::chosen::all;
use keelway_conformance::contracts::Contracts;
use keelway_conformance::plants::{Family, Finder};
use keelway_conformance::promotions::{Plant, PromotionsWorld, Rider, ending, simulate, simulate_without_sweeps};
use keelway_conformance::sim;
use keelway_world::promotions::Promotes;
use keelway_world::story::Mode;

fn with(rider: Rider) -> impl Fn(Mode) -> PromotionsWorld {
    move |mode| PromotionsWorld::new(mode, rider, None)
}

fn mistaken(plant: Plant) -> PromotionsWorld {
    PromotionsWorld::new(Mode::Clean, Rider::None, Some(plant))
}

suite! {
    cases: Promotes, with(Rider::None);
    // How often something is tried is not the same.
    faults: Promotes, with(Rider::Disturbed), alike: ending;
    seeds: 20_000, "KEELWAY_PROMOTION_SEED", simulate;
    seeds without sweeps: 2_000, "KEELWAY_PROMOTION_SWEEPLESS_SEED", simulate_without_sweeps;
    plants: "promotions", 1000, simulate, cases: Finder::cases::<Promotes, _>(mistaken);
}

/// As every suite's own test, and here what takes time goes on in parts, from each of which a fault may be told.
#[test]
fn a_fork_of_a_disturbed_case_ends_like_the_case() {
    Contracts::new(all::<Promotes>(), with(Rider::Disturbed)).hold_in_forks();
}

#[test]
fn an_evaluation_after_each_step_changes_nothing() {
    Contracts::new(all::<Promotes>(), with(Rider::Evaluated)).hold();
}

/// Each target's newest fact counts, whatever arrives first.
#[test]
fn any_order_of_delivery_promotes_the_same() {
    let contracts = Contracts::new(all::<Promotes>(), with(Rider::None)).that_end_alike(ending);
    contracts.hold_in_any_order(|seed| with(Rider::Shuffled(seed))(Mode::Clean));
}
