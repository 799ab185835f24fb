//! Every case of sequences in the in-memory world, and the contracts over every case.
//!
//! `KEELWAY_CASE=KC-07` runs one case and, if it fails, prints every request.

use keelway_conformance::chosen::{all, is_one};
use keelway_conformance::contracts::Contracts;
use keelway_world::core::Method;
use keelway_world::sequences::{Keptn, SequencesWorld, cases};

#[test]
fn a_fork_of_a_case_ends_like_the_case() {
    Contracts::new(all::<Keptn>(), SequencesWorld::new).hold_in_forks();
}

#[test]
fn every_case_holds() {
    Contracts::new(all::<Keptn>(), SequencesWorld::new).hold();
}

#[test]
fn everything_twice_is_everything_once() {
    Contracts::new(all::<Keptn>(), SequencesWorld::new).hold_with_everything_twice();
}

#[test]
fn a_crash_after_any_request_changes_nothing() {
    let points = Contracts::new(all::<Keptn>(), SequencesWorld::new).hold_with_a_fault_after_each_request();
    if !is_one() {
        // This engine makes no request to other people's servers.
        let used = points.iter().filter(|(method, _)| **method != Method::Outside);
        let none: Vec<_> = used.filter(|(_, n)| **n == 0).map(|(method, _)| method).collect();
        assert!(none.is_empty(), "no scenario crashes after {none:?}");
    }
}

/// How many cases the list has.
const LISTED: u16 = 118;

#[test]
fn the_index_names_each_listed_case_once_and_every_case_there_is() {
    let index =
        keelway_world::case::read(&keelway_world::case::folder("sequences").join("INDEX.md")).unwrap_or_else(|e| panic!("{e}"));
    // The first cell of a row; it may name several ids.
    let first = |line: &str| line.strip_prefix('|').and_then(|row| row.split('|').next()).map(str::to_owned);
    let ids: Vec<String> = index
        .lines()
        .filter_map(first)
        .flat_map(|cell| cell.split(',').map(|id| id.trim().to_owned()).collect::<Vec<_>>())
        .collect();
    let times = |id: &str| ids.iter().filter(|known| *known == id).count();
    let wrong: Vec<String> = (1..=LISTED).map(|n| format!("KC-{n:02}")).filter(|id| times(id) != 1).collect();
    assert!(wrong.is_empty(), "not in the index exactly once: {wrong:?}");
    let cases = cases().unwrap_or_else(|e| panic!("{e}"));
    let wrong: Vec<&str> = cases.iter().map(|case| case.id.as_str()).filter(|id| times(id) != 1).collect();
    assert!(wrong.is_empty(), "cases that are not in the index exactly once: {wrong:?}");
}
