//! Every case of sequences in the in-memory world, and the contracts over every case.
//!
//! `KEELWAY_CASE=KC-07` runs one case and, if it fails, prints every request.

use keelway_conformance::contracts::Contracts;
use keelway_engine::sequences::Sequences;
use keelway_world::case::{Only, run};
use keelway_world::core::Method;
use keelway_world::sequences::{Case, SequencesWorld, cases};
use keelway_world::story::{Mode, Story};
use keelway_world::worker::Worker;

fn all() -> Vec<(String, Case)> {
    let wanted = std::env::var("KEELWAY_CASE").ok();
    let mut cases = cases().unwrap_or_else(|e| panic!("{e}"));
    cases.retain(|case| case.only != Some(Only::Cloud) && wanted.as_ref().is_none_or(|id| *id == case.id));
    cases.into_iter().map(|case| (case.id.clone(), case)).collect()
}

fn tell(case: &Case, mode: Mode) -> (Story<Sequences<Worker>>, Result<(), String>) {
    let mut world = SequencesWorld::new(mode);
    if std::env::var("KEELWAY_CASE").is_ok() && mode == Mode::Clean {
        world.story.world.core().trace = Some(vec![]);
    }
    let result = run(case, &mut world).map_err(|failure| format!("{failure}\n  ({})", case.title));
    (world.story, result)
}

#[test]
fn every_case_holds() {
    Contracts::new(all(), tell).hold();
}

#[test]
fn everything_twice_is_everything_once() {
    Contracts::new(all(), tell).hold_with_everything_twice();
}

#[test]
fn a_crash_after_any_request_changes_nothing() {
    let points = Contracts::new(all(), tell).hold_with_a_fault_after_each_request();
    if std::env::var("KEELWAY_CASE").is_err() {
        // This engine makes no request to other people's servers.
        let used = points.iter().filter(|(method, _)| **method != Method::Outside);
        let none: Vec<_> = used.filter(|(_, n)| **n == 0).map(|(method, _)| method).collect();
        assert!(none.is_empty(), "no scenario crashes after {none:?}");
    }
}
