//! A second engine passes the harness of the first one.

use crate::suite::suite;
use keelway_conformance::counter::simulate;
use keelway_conformance::counter::versions::{with_a_newer_format, with_an_added_member};
use keelway_conformance::held::counters;
use keelway_conformance::sim::{self, Stats, Violation, number, seeds};
use keelway_world::core::Method;

/// Counters have no mistakes planted.
fn simulated(seed: u64, _: Option<()>, trace: bool) -> Result<Stats, Violation> {
    simulate(seed, trace)
}

suite! {
    cases: counters();
    faults: counters(), but: &[Method::GetBatch, Method::Query, Method::Transact, Method::Outside];
    seeds: 20_000, "KEELWAY_COUNTER_SEED", simulated;
}

#[test]
fn a_later_version_that_adds_to_the_format_works_beside_the_earlier_one() {
    versions(with_an_added_member);
}

#[test]
fn what_a_later_version_wrote_in_a_newer_format_waits_for_it() {
    versions(with_a_newer_format);
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
