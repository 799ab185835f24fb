//! Across the engines: what waits, and one delivery with everything that it caused.

mod delivery;
mod deployments;
mod others;
mod pipelines;
mod sequences;
mod wait;

use crate::fence::route::{Route, route};
use keelway_engine::ports::Ports;
use keelway_engine::secrets::Secrets;

/// The routes.
pub fn routes<P: Ports + Secrets + 'static>() -> Vec<Route<P>> {
    vec![route!(wait::list), route!(delivery::one)]
}
