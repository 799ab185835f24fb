//! Sequences: the cases, the simulation, the planted faults; and by topic, what only direct tests show.
//!
//! `KEELWAY_CASE=KC-07` runs one case and, if it fails, prints every request.

mod at_once;
mod contention;
mod costs;
mod duplicates;
mod kept;
mod lanes_and_expiry;
mod leftovers;
mod listing;
mod loops;
mod regressions;
mod scale;
mod sizes;
mod unlisted;

use crate::suite::suite;
use keelway_conformance::held;
use keelway_conformance::plants::Family;
use keelway_conformance::sequences::{Plant, side_by_side, simulate, simulate_without_sweeps};
use keelway_conformance::sim;
use keelway_world::core::Method;
use keelway_world::sequences::cases;

suite! {
    cases: held::sequences();
    // This engine makes no request to other people's servers.
    faults: held::sequences(), but: &[Method::Outside];
    seeds: 20_000, "KEELWAY_SEED", simulate;
    seeds without sweeps: 2_000, "KEELWAY_SEQUENCE_SWEEPLESS_SEED", simulate_without_sweeps;
    plants: "sequences", 12_000, simulate;
}

#[test]
fn a_seed_is_the_whole_story() {
    for seed in 0..100 {
        let run = || simulate(seed, None, true).map(|stats| stats.0).map_err(|violation| (violation.rule, violation.trace));
        assert_eq!(run(), run(), "seed {seed} ran differently the second time");
    }
}

#[test]
fn two_versions_work_side_by_side() {
    sim::hold(4_000, "KEELWAY_VERSIONS_SEED", side_by_side);
    let waited =
        |seed| side_by_side(seed, false).map_or(0, |stats| stats.0.get("waited for the later version").copied().unwrap_or(0));
    assert!((0..20).map(waited).sum::<u64>() > 0, "the earlier version never met what it cannot read");
}

#[test]
fn one_seed_of_two_versions() {
    sim::one("KEELWAY_VERSIONS_SEED", side_by_side);
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
