//! Requests beyond a quota are answered as AWS answers them.

use keelway_domain::time::{Span, Timestamp};
use keelway_engine::item::{Item, Key};
use keelway_engine::ports::{Bus, BusEntry, Clock, Condition, PortError, Queue, Store, Write, Written};
use keelway_world::World;
use keelway_world::exec::block_on;
use keelway_world::quota::{Bucket, Quotas};

const BEGIN: Timestamp = Timestamp(1_795_000_000_000);

/// A world in which a second has ten entries for the bus, one schedule, and ten units for each partition key.
fn limited() -> World {
    let world = World::new(BEGIN);
    let quotas =
        Quotas { put_events: 10.0, created: 1.0, key_writes: 10.0, key_reads: 10.0, ..Quotas::of("eu-central-1").unwrap() };
    world.core().limit(&quotas);
    world
}

fn events(n: usize) -> Vec<BusEntry> {
    let entry = |n| BusEntry { source: "s".into(), detail_type: "t".into(), detail: format!("{{\"id\":\"{n}\"}}") };
    (0..n).map(entry).collect()
}

fn is_throttled<R>(result: &Result<R, PortError>, code: &str) -> bool {
    matches!(result, Err(PortError::Retry { reason, .. }) if reason.contains(code))
}

fn put(partition: &str) -> Write {
    let item = Item::new(Key::new(partition, "!")).with("text", "x".repeat(5_000));
    Write::Put(item, Condition::Always)
}

#[test]
fn the_bus_takes_some_entries_and_then_none() {
    let world = limited();
    let worker = world.worker(1);
    assert_eq!(block_on(worker.publish(&events(6))).unwrap(), vec![None; 6]);
    let some = block_on(worker.publish(&events(6))).unwrap();
    let (taken, refused) = some.split_at(4);
    assert!(taken.iter().all(Option::is_none) && refused.iter().all(|code| code.as_deref() == Some("ThrottlingException")));
    let before = world.core().request_count();
    assert!(is_throttled(&block_on(worker.publish(&events(1))), "ThrottlingException"));
    assert_eq!(world.core().request_count() - before, 3, "the client tries three times");
    world.pass(Span::seconds(1));
    assert!(block_on(worker.publish(&events(1))).is_ok());
}

#[test]
fn a_partition_that_is_out_of_units_refuses_what_others_take() {
    let world = limited();
    let worker = world.worker(1);
    // Five units each: the second one takes the last of them.
    for _ in 0..2 {
        assert_eq!(block_on(worker.write(&put("hot"))), Ok(Written::Done));
    }
    let code = "ProvisionedThroughputExceededException";
    assert!(is_throttled(&block_on(worker.write(&put("hot"))), code));
    assert!(is_throttled(&block_on(worker.transact(&[put("hot"), put("cold")])), code));
    assert_eq!(block_on(worker.write(&put("cold"))), Ok(Written::Done));
    let items = ["hot", "warm"].map(|partition| Item::new(Key::new(partition, "?")));
    let left = block_on(worker.put_batch(&items, &[])).unwrap();
    assert_eq!(left.puts, items[..1], "the rest of a batch is left over");
    world.pass(Span::seconds(1));
    assert_eq!(block_on(worker.write(&put("hot"))), Ok(Written::Done));
}

#[test]
fn a_schedule_beyond_the_quota_is_refused_and_a_delay_is_not() {
    let world = limited();
    let worker = world.worker(1);
    let at = |minutes: i64| worker.now() + Span::minutes(minutes);
    assert!(block_on(worker.send_at("e", "one", "{}", at(60))).is_ok());
    assert!(is_throttled(&block_on(worker.send_at("e", "two", "{}", at(60))), "ThrottlingException"));
    assert!(block_on(worker.send_at("e", "three", "{}", at(5))).is_ok());
}

#[test]
fn a_second_has_so_many_tokens_and_no_more_are_saved() {
    let mut bucket = Bucket::new(100.0, Timestamp(0));
    assert_eq!((bucket.take(Timestamp(0), 150), bucket.refused), (100, 50));
    assert_eq!(bucket.next(), Timestamp(10));
    assert_eq!(bucket.take(Timestamp(10), 5), 1);
    assert_eq!(bucket.take(Timestamp(100_000), 150), 100);
    assert!((bucket.seconds() - 2.01).abs() < 1e-9);
}

#[test]
fn a_request_that_took_more_than_there_was_is_paid_by_those_after_it() {
    let mut bucket = Bucket::new(10.0, Timestamp(0));
    assert!(bucket.admits(Timestamp(0)));
    bucket.spend(30.0);
    assert!(!bucket.admits(Timestamp(1_999)) && bucket.admits(Timestamp(2_001)));
}
