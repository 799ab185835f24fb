//! A second engine passes the harness of the first one.
//!
//! `KEELWAY_SEEDS` runs more seeds of the counters; `KEELWAY_COUNTER_SEED=n` replays one with every request it made.

use keelway_conformance::contracts::Contracts;
use keelway_conformance::counter::cases::{Case, CountersWorld};
use keelway_conformance::counter::simulate;
use keelway_conformance::counter::versions::side_by_side;
use keelway_conformance::sim::{self, Stats, Violation, number, seeds};
use keelway_world::case::cases;

#[test]
fn a_fork_of_a_case_ends_like_the_case() {
    Contracts::new(all(), CountersWorld::new).hold_in_forks();
}

#[test]
fn every_seed_of_the_counters_keeps_the_invariants() {
    sim::hold(20_000, "KEELWAY_COUNTER_SEED", simulate);
}

#[test]
fn one_seed_of_the_counters() {
    sim::one("KEELWAY_COUNTER_SEED", simulate);
}

fn all() -> Vec<Case> {
    cases().unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn every_case_of_the_counters_holds() {
    Contracts::new(all(), CountersWorld::new).hold();
}

#[test]
fn every_message_to_a_counter_twice_is_once() {
    Contracts::new(all(), CountersWorld::new).hold_with_everything_twice();
}

#[test]
fn a_crash_after_any_request_of_a_counter_changes_nothing() {
    Contracts::new(all(), CountersWorld::new).hold_with_a_fault_after_each_request();
}

#[test]
fn a_later_version_that_adds_to_the_format_works_beside_the_earlier_one() {
    versions(side_by_side::<1>);
}

#[test]
fn what_a_later_version_wrote_in_a_newer_format_waits_for_it() {
    versions(side_by_side::<2>);
}

fn versions(simulate: impl Fn(u64, bool) -> Result<Stats, Violation> + Sync) {
    let count = number("KEELWAY_SEEDS").unwrap_or(5_000);
    let stats = seeds(count, |seed| simulate(seed, false)).unwrap_or_else(|violation| {
        let trace = simulate(violation.seed, true).err().map(|violation| violation.trace.join("\n")).unwrap_or_default();
        panic!("{trace}\n\nseed {}: {}", violation.seed, violation.rule);
    });
    println!("{count} seeds: {:?}", stats.0);
    assert!(stats.0.get("waited for the later version").is_some_and(|n| *n > 0), "nothing had to wait");
}
