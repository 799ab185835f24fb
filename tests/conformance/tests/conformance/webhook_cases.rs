//! Every case of webhooks in the in-memory world, and what must hold of every case whatever goes wrong.
//!
//! `KEELWAY_CASE=W-03` runs one case and, if it fails, prints every request.

use keelway_conformance::chosen::{self, is_one, stories};
use keelway_conformance::contracts::Contracts;
use keelway_conformance::webhooks::{Case, Engine, HooksWorld};
use keelway_world::core::Method;
use keelway_world::story::{Mode, Story};

fn tell(case: &Case, mode: Mode) -> (Story<Engine>, Result<(), String>) {
    let mut world = HooksWorld::new(mode);
    let result = chosen::tell(case, mode, (&world.story.world.clone(), &mut world));
    (world.story, result)
}

#[test]
fn every_case_of_webhooks_holds() {
    Contracts::new(stories(), tell).hold();
}

#[test]
fn every_message_of_webhooks_twice_is_once() {
    Contracts::new(stories(), tell).hold_with_everything_twice();
}

/// Requests to receivers, of the API and of people among them.
#[test]
fn a_fault_after_any_request_of_webhooks_changes_nothing() {
    let points = Contracts::new(stories(), tell).hold_with_a_fault_after_each_request();
    if !is_one() {
        let none: Vec<_> = points.iter().filter(|(_, n)| **n == 0).map(|(method, _)| *method).collect();
        // Webhooks write one item after the other.
        assert_eq!(none, vec![Method::Transact], "no case fails after these");
    }
}
