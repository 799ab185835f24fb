//! Changes of subscriptions while deliveries are under way: a worker that has handled events before learns of them in time. And
//! what its events cost.

use super::stand::{Stand, TYPE, address, subscription};
use keelway_domain::time::{Span, Timestamp};
use keelway_world::exec::{block_on, step};
use keelway_world::queue::{Parcel, Received};
use keelway_world::rng::Rng;
use keelway_world::story::play;
use keelway_world::webhooks::Reply;
use std::task::Poll;

/// The wake-up by which an attempt was made.
fn attempt(handled: &[Received]) -> Received {
    let wakes = |received: &&Received| matches!(&received.parcel, Parcel::Own(text) if text.contains("\"wake\""));
    Received { again: true, ..handled.iter().find(wakes).expect("a wake-up").clone() }
}

#[test]
fn two_changes_in_one_millisecond_both_count() {
    let stand = Stand::new();
    stand.apply("nothing");
    stand.event("before");
    stand.apply(TYPE);
    stand.event("after");
    assert!(!stand.is_delivered("before") && stand.is_delivered("after"));
}

#[test]
fn whatever_a_worker_reads_while_a_subscription_is_applied_the_next_event_is_taken() {
    for seed in 0..20 {
        let stand = Stand::new();
        stand.apply("nothing");
        stand.event("before");
        stand.world.core().table.staged = Some(Rng::new(seed));
        stand.world.pass(Span(1));
        let (of, wanted) = (address(), subscription(TYPE));
        let mut task = Box::pin(stand.people.apply(&of, &wanted, ""));
        for n in 0.. {
            if step(&mut task).is_ready() {
                break;
            }
            stand.event(&format!("meanwhile {n}"));
        }
        stand.event("after");
        assert!(stand.is_delivered("after"), "in order {seed}");
    }
}

#[test]
fn a_resume_that_stopped_half_way_counts_when_it_is_asked_for_again() {
    for steps in 1.. {
        let stand = Stand::new();
        stand.apply(TYPE);
        stand.receivers.answer("hook", &[Reply::Status(410)]);
        stand.event("refused");
        stand.event("while it is disabled");
        stand.receivers.answer("hook", &[Reply::Status(200)]);
        let over = {
            let of = address();
            let mut resume = Box::pin(stand.people.resume(&of));
            (0..steps).any(|_| matches!(step(&mut resume), Poll::Ready(_)))
        };
        block_on(stand.people.resume(&address())).unwrap();
        stand.event("after");
        assert!(stand.is_delivered("after"), "after {steps} steps");
        if over {
            return;
        }
    }
}

#[test]
fn what_was_found_before_a_person_resumed_it_disables_a_subscription_no_more() {
    let stand = Stand::new();
    stand.apply(TYPE);
    stand.receivers.answer("hook", &[Reply::Status(410)]);
    let found = attempt(&stand.event("refused"));
    assert!(stand.subscription().off.is_some());
    block_on(stand.people.resume(&address())).unwrap();
    block_on(play(&stand.warm, &found)).unwrap();
    assert_eq!(stand.subscription().off, None);
}

#[test]
fn a_failure_that_is_noted_late_is_not_older_than_a_success() {
    let stand = Stand::new();
    stand.apply(TYPE);
    stand.receivers.answer("hook", &[Reply::Status(500)]);
    let failed = attempt(&stand.event("failed"));
    stand.world.pass(Span::seconds(1));
    stand.receivers.answer("hook", &[Reply::Status(200)]);
    stand.event("delivered");
    let reached: Timestamp = stand.world.now();
    assert_eq!(stand.subscription().failing, None);
    stand.world.pass(Span::seconds(1));
    block_on(play(&stand.warm, &failed)).unwrap();
    assert!(stand.subscription().failing.is_none_or(|since| since > reached));
}

/// What handling an event takes: requests to AWS, write units and read units.
fn costs(stand: &Stand, event: &str) -> (u64, f64, f64) {
    let used = || {
        let core = stand.world.core();
        (core.request_count(), core.table.units.write, core.table.units.read)
    };
    let before = used();
    stand.event(event);
    let after = used();
    (after.0 - before.0, after.1 - before.1, after.2 - before.2)
}

/// The numbers of docs/costs.md; this fails when one grows.
#[test]
fn an_event_costs_one_read_and_its_delivery_five_write_units() {
    let stand = Stand::new();
    stand.event("first");
    assert_eq!(costs(&stand, "nobody takes it"), (1, 0.0, 1.0), "without a subscription");
    stand.apply("nothing");
    stand.event("reads the subscriptions");
    assert_eq!(costs(&stand, "another nobody takes"), (1, 0.0, 1.0), "with one that takes others");
    stand.apply(TYPE);
    stand.event("reads them again");
    assert_eq!(costs(&stand, "delivered"), (10, 5.0, 6.0), "with one that takes it, and is reached at once");
    assert!(stand.is_delivered("delivered"));
}
