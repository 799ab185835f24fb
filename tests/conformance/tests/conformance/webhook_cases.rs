//! Every case of webhooks in the in-memory world, and what must hold of every case whatever goes wrong.
//!
//! `KEELWAY_CASE=W-03` runs one case and, if it fails, prints every request.

use keelway_conformance::chosen::{all, is_one};
use keelway_conformance::contracts::Contracts;
use keelway_conformance::webhooks::{Hooks, HooksWorld};
use keelway_world::core::Method;

#[test]
fn a_fork_of_a_case_ends_like_the_case() {
    Contracts::new(all::<Hooks>(), HooksWorld::new).hold_in_forks();
}

#[test]
fn every_case_of_webhooks_holds() {
    Contracts::new(all::<Hooks>(), HooksWorld::new).hold();
}

#[test]
fn every_message_of_webhooks_twice_is_once() {
    Contracts::new(all::<Hooks>(), HooksWorld::new).hold_with_everything_twice();
}

/// Requests to receivers, of the API and of people among them.
#[test]
fn a_fault_after_any_request_of_webhooks_changes_nothing() {
    let points = Contracts::new(all::<Hooks>(), HooksWorld::new).hold_with_a_fault_after_each_request();
    if !is_one() {
        let none: Vec<_> = points.iter().filter(|(_, n)| **n == 0).map(|(method, _)| *method).collect();
        assert_eq!(none, Vec::<Method>::new(), "no case fails after these");
    }
}
