//! Deployments: the cases, the simulation, the planted faults; and by topic, what only direct tests show.
//!
//! `KEELWAY_CASE=T07` runs one case and, if it fails, prints every request.

mod commands;
mod facts;
mod orders;
mod tasks;

use crate::suite::suite;
use keelway_conformance::chosen::all;
use keelway_conformance::contracts::Contracts;
use keelway_conformance::deployments::{DeploymentsWorld, Plant, Rider, rollback_against_apply, simulate, simulate_without_sweeps};
use keelway_conformance::plants::{Family, Finder};
use keelway_conformance::sim;
use keelway_world::deployments::Deploys;
use keelway_world::story::Mode;

fn with(rider: Rider) -> impl Fn(Mode) -> DeploymentsWorld {
    move |mode| DeploymentsWorld::new(mode, rider, None)
}

/// The cases, and beside them the race of a rollback against somebody who applies a definition.
fn finders() -> Vec<Finder<Plant>> {
    let mut finders = Finder::cases::<Deploys, _>(|plant| DeploymentsWorld::new(Mode::Clean, Rider::None, Some(plant)));
    finders.push(Finder::new("race", |plant| rollback_against_apply(Some(plant)).err()));
    finders
}

suite! {
    cases: Deploys, with(Rider::None);
    faults: Deploys, with(Rider::None);
    seeds: 20_000, "KEELWAY_DEPLOYMENT_SEED", simulate;
    seeds without sweeps: 4_000, "KEELWAY_UNSWEPT_SEED", simulate_without_sweeps;
    plants: "deployments", 8000, simulate, cases: finders();
}

#[test]
fn an_evaluation_after_each_step_changes_nothing() {
    Contracts::new(all::<Deploys>(), with(Rider::Evaluated)).hold();
}

/// Of each step's messages, and pushes that are no longer new among them.
#[test]
fn any_order_of_delivery_deploys_the_same() {
    Contracts::new(all::<Deploys>(), with(Rider::None)).hold_in_any_order(|seed| with(Rider::Shuffled(seed))(Mode::Clean));
}
