//! Every case of sequences in the in-memory world, and the contracts over every case.
//!
//! `KEELWAY_CASE=KC-07` runs one case and, if it fails, prints every request.

use keelway_conformance::chosen::{self, is_one, stories};
use keelway_conformance::contracts::Contracts;
use keelway_engine::sequences::Sequences;
use keelway_world::core::Method;
use keelway_world::sequences::{Case, SequencesWorld};
use keelway_world::story::{Mode, Story};
use keelway_world::worker::Worker;

fn tell(case: &Case, mode: Mode) -> (Story<Sequences<Worker>>, Result<(), String>) {
    let mut world = SequencesWorld::new(mode);
    let result = chosen::tell(case, mode, (&world.story.world.clone(), &mut world));
    (world.story, result)
}

#[test]
fn every_case_holds() {
    Contracts::new(stories(), tell).hold();
}

#[test]
fn everything_twice_is_everything_once() {
    Contracts::new(stories(), tell).hold_with_everything_twice();
}

#[test]
fn a_crash_after_any_request_changes_nothing() {
    let points = Contracts::new(stories(), tell).hold_with_a_fault_after_each_request();
    if !is_one() {
        // This engine makes no request to other people's servers.
        let used = points.iter().filter(|(method, _)| **method != Method::Outside);
        let none: Vec<_> = used.filter(|(_, n)| **n == 0).map(|(method, _)| method).collect();
        assert!(none.is_empty(), "no scenario crashes after {none:?}");
    }
}
