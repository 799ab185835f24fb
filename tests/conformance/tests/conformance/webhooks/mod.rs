//! Webhooks: the cases, the simulation, the planted faults; and by topic, what only direct tests show.
//!
//! `KEELWAY_CASE=W-03` runs one case and, if it fails, prints every request.

mod bounds;
mod changes;
mod rule;
mod stand;

use crate::suite::suite;
use keelway_conformance::held;
use keelway_conformance::plants::Family;
use keelway_conformance::sim;
use keelway_conformance::webhooks::{Plant, simulate, simulate_without_sweeps};

suite! {
    cases: held::webhooks();
    faults: held::webhooks();
    seeds: 20_000, "KEELWAY_WEBHOOK_SEED", simulate;
    seeds without sweeps: 2_000, "KEELWAY_WEBHOOK_SWEEPLESS_SEED", simulate_without_sweeps;
    plants: "webhooks", 2000, simulate;
}
