//! Deployments: the cases, the simulation, the planted faults; and by topic, what only direct tests show.
//!
//! `KEELWAY_CASE=T07` runs one case and, if it fails, prints every request.

mod commands;
mod facts;
mod orders;
mod tasks;

use crate::suite::suite;
use keelway_conformance::deployments::{Plant, Rider, simulate, simulate_without_sweeps};
use keelway_conformance::held::{self, finders_of_deployments};
use keelway_conformance::plants::Family;
use keelway_conformance::sim;

suite! {
    cases: held::deployments(Rider::None);
    faults: held::deployments(Rider::None);
    seeds: 20_000, "KEELWAY_DEPLOYMENT_SEED", simulate;
    seeds without sweeps: 4_000, "KEELWAY_UNSWEPT_SEED", simulate_without_sweeps;
    plants: "deployments", 8000, simulate, cases: finders_of_deployments();
}

#[test]
fn an_evaluation_after_each_step_changes_nothing() {
    held::deployments(Rider::Evaluated).hold();
}

/// Of each step's messages, and pushes that are no longer new among them.
#[test]
fn any_order_of_delivery_deploys_the_same() {
    held::deployments(Rider::None).hold_in_any_order();
}
