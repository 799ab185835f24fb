//! Transactions whose items become visible one by one: what others see of them, and what they are told.

use keelway_domain::time::Timestamp;
use keelway_engine::item::{Attrs, Item, Key};
use keelway_engine::ports::{Condition, Leftover, PortError, Store, Transacted, Write, Written};
use keelway_world::World;
use keelway_world::core::{Fault, Method};
use keelway_world::exec::{Task, block_on, step};
use keelway_world::rng::Rng;
use keelway_world::worker::Worker;
use std::task::Poll;

fn key(sk: &str) -> Key {
    Key::new("p", sk)
}

fn item(sk: &str, version: i64) -> Item {
    Item::new(key(sk)).with("v", version)
}

fn bump(sk: &str, version: i64) -> Write {
    let set = Attrs::from([("v".into(), (version + 1).into())]);
    Write::Update { key: key(sk), condition: Condition::Version(version), set, remove: vec![], raise: false }
}

/// `a` and `b` at version 1, `c` that others only check.
fn world(seed: u64) -> World {
    let world = World::new(Timestamp(1));
    for sk in ["a", "b", "c"] {
        block_on(world.worker(0).write(&Write::Put(item(sk, 1), Condition::Absent))).unwrap();
    }
    world.core().table.staged = Some(Rng::new(seed));
    world
}

/// Both to version 2, while `c` is at version 1.
fn both() -> Vec<Write> {
    vec![bump("a", 1), bump("b", 1), Write::Check(key("c"), Condition::Version(1))]
}

fn transaction(worker: Worker) -> Task<Result<Transacted, PortError>> {
    Box::pin(async move { worker.transact(&both()).await })
}

/// One that was decided; none of its items is visible yet.
fn begun(world: &World) -> Task<Result<Transacted, PortError>> {
    let mut task = transaction(world.worker(1));
    while world.core().pending_transactions() == 0 {
        assert!(step(&mut task).is_pending());
    }
    task
}

fn versions(worker: &Worker) -> (i64, i64) {
    let version = |sk: &str| block_on(worker.get(&key(sk))).unwrap().unwrap().version();
    (version("a"), version("b"))
}

#[test]
fn another_worker_sees_one_item_before_the_other() {
    let mut halves = [0, 0];
    for seed in 0..20 {
        let world = world(seed);
        let mut task = begun(&world);
        let mut seen = vec![versions(&world.worker(2))];
        let done = loop {
            let polled = step(&mut task);
            seen.push(versions(&world.worker(2)));
            if let Poll::Ready(done) = polled {
                break done;
            }
        };
        assert_eq!(done, Ok(Transacted::Done));
        assert_eq!((seen[0], seen.last()), ((1, 1), Some(&(2, 2))), "seed {seed}");
        halves[0] += usize::from(seen.contains(&(2, 1)));
        halves[1] += usize::from(seen.contains(&(1, 2)));
        assert_eq!(world.core().pending_transactions(), 0);
    }
    assert_eq!(halves[0] + halves[1], 20, "one of the two is always first");
    assert!(halves.iter().all(|times| *times > 0), "each of them at times: {halves:?}");
}

#[test]
fn its_caller_hears_of_it_when_all_of_it_is_visible() {
    let world = world(1);
    let mut task = begun(&world);
    while step(&mut task).is_pending() {
        assert_eq!(world.core().pending_transactions(), 1);
    }
    assert_eq!(versions(&world.worker(2)), (2, 2));
}

#[test]
fn writers_that_meet_it_are_told_and_change_nothing() {
    let world = world(1);
    let mut task = begun(&world);
    let other = world.worker(2);
    // What is only checked must not change either before all is decided everywhere.
    for sk in ["a", "b", "c"] {
        let Err(PortError::Contended { reason, .. }) = block_on(other.write(&bump(sk, 1))) else { panic!("{sk}: no conflict") };
        assert_eq!(reason, "TransactionConflict");
        let delete = Write::Delete(key(sk), Condition::Always);
        assert!(matches!(block_on(other.write(&delete)), Err(PortError::Contended { .. })));
        let writes = [Write::Put(item("d", 1), Condition::Absent), bump(sk, 1)];
        assert_eq!(block_on(other.transact(&writes)), Ok(Transacted::Cancelled(vec![false, true])));
    }
    let left = block_on(other.put_batch(&[item("a", 9), item("d", 1)], &[key("b"), key("e")]));
    assert_eq!(left, Ok(Leftover { puts: vec![item("a", 9)], deletes: vec![key("b")] }));
    assert_eq!(versions(&other), (1, 1));
    while step(&mut task).is_pending() {}
    assert_eq!(versions(&other), (2, 2));
    assert_eq!(block_on(other.write(&bump("a", 2))), Ok(Written::Done));
    assert_eq!(block_on(other.write(&bump("c", 1))), Ok(Written::Done));
}

#[test]
fn an_item_that_is_visible_is_free_while_others_are_pending() {
    let world = world(1);
    let mut task = begun(&world);
    while versions(&world.worker(2)) == (1, 1) {
        assert!(step(&mut task).is_pending());
    }
    let (free, held) = if versions(&world.worker(2)).0 == 2 { ("a", "b") } else { ("b", "a") };
    assert_eq!(world.core().pending_transactions(), 1);
    assert_eq!(block_on(world.worker(2).write(&bump(free, 2))), Ok(Written::Done));
    assert!(matches!(block_on(world.worker(2).write(&bump(held, 1))), Err(PortError::Contended { .. })));
}

#[test]
fn what_was_decided_happens_without_its_caller() {
    // Steps the caller makes after the decision before it is gone: 0 to all but the last.
    for steps in 0..3 {
        let world = world(steps);
        let mut task = begun(&world);
        for _ in 0..steps {
            assert!(step(&mut task).is_pending());
        }
        drop(task);
        let mut rng = Rng::new(7);
        let mut more = 0;
        while world.core().advance_transaction(&mut rng) {
            more += 1;
        }
        // The step of the decision made nothing visible, each one after it one item.
        assert_eq!(more, 3 - steps);
        assert_eq!((versions(&world.worker(2)), world.core().pending_transactions()), ((2, 2), 0));
    }
}

#[test]
fn a_caller_that_lost_the_answer_may_find_it_half_done() {
    let world = world(1);
    world.core().faults = Some(Box::new(|_, method| if method == Method::Transact { Fault::AnswerLost } else { Fault::None }));
    assert!(matches!(block_on(transaction(world.worker(1))), Err(PortError::Retry { .. })));
    assert_eq!((versions(&world.worker(1)), world.core().pending_transactions()), ((1, 1), 1));
    world.core().finish_transactions();
    assert_eq!((versions(&world.worker(1)), world.core().pending_transactions()), ((2, 2), 0));
}

#[test]
fn several_go_on_in_any_order() {
    let world = world(1);
    let lone = |sk: &'static str| {
        let worker = world.worker(1);
        let writes = vec![Write::Put(item(sk, 1), Condition::Absent), Write::Put(item(&format!("{sk}2"), 1), Condition::Absent)];
        let mut task: Task<_> = Box::pin(async move { worker.transact(&writes).await });
        let before = world.core().pending_transactions();
        while world.core().pending_transactions() == before {
            assert!(step(&mut task).is_pending());
        }
    };
    lone("x");
    lone("y");
    let mut rng = Rng::new(3);
    let there = |sk: &str| world.core().table.peek(&key(sk)).is_some();
    let mut mixed = false;
    while world.core().advance_transaction(&mut rng) {
        let seen = ["x", "x2", "y", "y2"].map(there);
        mixed |= (seen[0] != seen[1]) && (seen[2] != seen[3]);
    }
    assert!(mixed, "never both half-way");
    assert_eq!((["x", "x2", "y", "y2"].map(there), world.core().pending_transactions()), ([true; 4], 0));
}

#[test]
fn one_whose_condition_fails_leaves_nothing_pending() {
    let world = world(1);
    block_on(world.worker(2).write(&bump("c", 1))).unwrap();
    assert_eq!(block_on(transaction(world.worker(1))), Ok(Transacted::Cancelled(vec![false, false, true])));
    assert_eq!((versions(&world.worker(2)), world.core().pending_transactions()), ((1, 1), 0));
}

#[test]
fn a_transaction_in_the_way_is_a_conflict_at_one_of_the_items() {
    let world = World::new(Timestamp(1));
    world.core().faults = Some(Box::new(|_, method| if method == Method::Transact { Fault::Partial } else { Fault::None }));
    let writes = [Write::Put(item("a", 1), Condition::Absent), Write::Put(item("b", 1), Condition::Absent)];
    let places: Vec<_> = (0..4).map(|_| block_on(world.worker(1).transact(&writes)).unwrap()).collect();
    assert_eq!(places[..2], [Transacted::Cancelled(vec![true, false]), Transacted::Cancelled(vec![false, true])]);
    assert_eq!(world.core().table.items().count(), 0);
}
