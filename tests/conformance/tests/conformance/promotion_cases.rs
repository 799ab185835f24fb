//! Every case of promotions in the in-memory world, and what must hold of every case whatever goes wrong.
//!
//! `KEELWAY_CASE=P05` runs one case and, if it fails, prints every request.

use keelway_conformance::chosen::{all, is_one};
use keelway_conformance::contracts::Contracts;
use keelway_conformance::promotions::riders::{differ, ending, faults};
use keelway_conformance::promotions::{PromotionsWorld, Rider};
use keelway_world::case::run;
use keelway_world::core::Method;
use keelway_world::promotions::Promotes;
use keelway_world::story::Mode;

/// Orders in which each case's messages are delivered.
const ORDERS: u64 = 12;

fn with(rider: Rider) -> impl Fn(Mode) -> PromotionsWorld {
    move |mode| PromotionsWorld::new(mode, rider, None)
}

#[test]
fn a_fork_of_a_case_ends_like_the_case() {
    Contracts::new(all::<Promotes>(), with(Rider::None)).hold_in_forks();
}

#[test]
fn every_case_of_promotions_holds() {
    Contracts::new(all::<Promotes>(), with(Rider::None)).hold();
}

/// Facts among them.
#[test]
fn every_message_of_promotions_twice_is_once() {
    Contracts::new(all::<Promotes>(), with(Rider::None)).hold_with_everything_twice();
}

#[test]
fn an_evaluation_after_each_step_changes_nothing() {
    Contracts::new(all::<Promotes>(), with(Rider::Evaluated)).hold();
}

/// Each target's newest fact counts, whatever arrives first.
#[test]
fn any_order_of_delivery_promotes_the_same() {
    let mut failures = vec![];
    let cases = all::<Promotes>();
    for case in &cases {
        let end = |rider| {
            let mut world = PromotionsWorld::new(Mode::Clean, rider, None);
            run(case, &mut world).map_err(|failure| failure.to_string())?;
            world.mend();
            Ok::<_, String>(ending(&world))
        };
        let Ok(expected) = end(Rider::None) else { continue };
        for seed in 0..ORDERS {
            let what = match end(Rider::Shuffled(seed)) {
                Ok(ending) => differ(&expected, &ending),
                Err(what) => Some(what),
            };
            failures.extend(what.map(|what| format!("{}, order {seed}: {what}", case.id)));
        }
    }
    println!("{} cases in {ORDERS} orders each", cases.len());
    assert!(failures.is_empty(), "{}:\n{}", failures.len(), failures[..failures.len().min(10)].join("\n"));
}

#[test]
fn a_fault_after_any_request_ends_the_same() {
    let cases = all();
    let (failures, points) = faults(&cases);
    let total: u64 = points.values().sum();
    println!("{} scenarios x crash points: {total}; by method: {points:?}", cases.len());
    assert!(failures.is_empty(), "{} of {total}:\n{}", failures.len(), failures[..failures.len().min(20)].join("\n"));
    if !is_one() {
        let none: Vec<_> = Method::ALL.iter().filter(|method| !points.contains_key(method)).collect();
        assert!(none.is_empty(), "no case fails after {none:?}");
    }
}
