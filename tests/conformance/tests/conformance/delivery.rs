//! A delivery through sequences, deployments and promotions: the simulation, and the mistakes that the engines may make between
//! them.

use crate::suite::suite;
use keelway_conformance::delivery::{Plant, simulate};
use keelway_conformance::plants::Family;
use keelway_conformance::sim;

suite! {
    seeds: 120, "KEELWAY_DELIVERY_SEED", simulate;
    plants: "delivery", 600, simulate;
}
