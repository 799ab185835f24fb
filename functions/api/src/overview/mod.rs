//! Across the engines: what waits, and one delivery with everything that it caused.

mod delivery;
mod deployments;
mod others;
mod pipelines;
mod sequences;
mod wait;

use crate::fence::route::{Route, route};

/// The routes.
pub fn routes() -> Vec<Route> {
    vec![route!(wait::list), route!(delivery::one)]
}
