//! Sequences: the cases, the simulation, the planted faults; and by topic, what only direct tests show.
//!
//! `KEELWAY_CASE=KC-07` runs one case and, if it fails, prints every request.

mod at_once;
mod contention;
mod costs;
mod duplicates;
mod lanes_and_expiry;
mod leftovers;
mod listing;
mod loops;
mod regressions;
mod scale;
mod sizes;

use crate::suite::suite;
use keelway_conformance::chosen::all;
use keelway_conformance::contracts::Contracts;
use keelway_conformance::plants::Family;
use keelway_conformance::sequences::{Plant, simulate};
use keelway_conformance::sim;
use keelway_world::core::Method;
use keelway_world::sequences::{Keptn, SequencesWorld, cases};

suite! {
    cases: Keptn, SequencesWorld::new;
    // This engine makes no request to other people's servers.
    faults: Keptn, SequencesWorld::new, but: &[Method::Outside];
    seeds: 20_000, "KEELWAY_SEED", simulate;
    plants: "sequences", 12_000, simulate;
}

#[test]
fn a_seed_is_the_whole_story() {
    for seed in 0..100 {
        let run = || simulate(seed, None, true).map(|stats| stats.0).map_err(|violation| (violation.rule, violation.trace));
        assert_eq!(run(), run(), "seed {seed} ran differently the second time");
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
