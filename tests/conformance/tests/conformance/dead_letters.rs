//! Dead letters: stored once, sent again with growing pauses, taken out when they are handled; the oldest due first, however many
//! there are.

use keelway_domain::time::{Span, Timestamp};
use keelway_engine::item::Item;
use keelway_engine::keys;
use keelway_engine::ports::{Query, Store};
use keelway_engine::protocol::dead_letter::{self, DeadLetter, Redriven};
use keelway_engine::sequences::NAME;
use keelway_world::World;
use keelway_world::exec::block_on;

fn letter(n: usize) -> DeadLetter {
    DeadLetter {
        engine: NAME.into(),
        queue: "sequences-dead-letters".into(),
        message_id: format!("m-{n}"),
        sent: Timestamp(1_795_000_000_000),
        body: r#"{"detail-type":"x","source":"y","detail":{}}"#.into(),
        receives: 10,
        reason: None,
    }
}

fn count(world: &World, partition: &str) -> usize {
    block_on(world.worker(0).query(&Query::table(partition, 1000))).unwrap().items.len()
}

/// Sends everything again that is due after a while; the bodies.
fn redrive(world: &World, pass: Span) -> Vec<Redriven> {
    world.pass(pass);
    while block_on(dead_letter::redrive(&world.worker(0))).unwrap() > 0 {}
    let mut core = world.core();
    let sent = std::mem::take(&mut core.queue.messages);
    sent.values().map(|message| Redriven::parse(&message.parcel.text()).unwrap()).collect()
}

fn store(world: &World, n: usize) {
    block_on(dead_letter::store(&world.worker(0), &letter(n))).unwrap();
}

#[test]
fn a_letter_is_sent_again_until_it_is_handled() {
    let world = World::new(Timestamp(1_795_000_100_000));
    store(&world, 1);
    store(&world, 1);
    assert_eq!(count(&world, keys::DEAD_LETTERS), 1);
    let minutes = |n| redrive(&world, Span::minutes(n)).len();
    assert_eq!([minutes(0), minutes(5), minutes(6), minutes(11), minutes(20)], [1, 0, 1, 0, 1]);
    let again = redrive(&world, Span::minutes(90)).remove(0);
    assert_eq!((again.sent, again.body.as_str()), (letter(1).sent, letter(1).body.as_str()));
    // It fails again: no letter about a letter.
    let failed = DeadLetter { message_id: "m-2".into(), body: again.to_body(), ..letter(1) };
    block_on(dead_letter::store(&world.worker(0), &failed)).unwrap();
    assert_eq!(count(&world, keys::DEAD_LETTERS), 1);
    for _ in 0..10 {
        redrive(&world, Span::minutes(24 * 60));
    }
    assert_eq!(
        (count(&world, keys::DEAD_LETTERS), count(&world, keys::DUE_LETTERS)),
        (1, 0),
        "after five times it waits for a person"
    );
    block_on(dead_letter::handled(&world.worker(0), &again)).unwrap();
    assert_eq!(count(&world, keys::DEAD_LETTERS), 0);
}

#[test]
fn a_letter_that_was_handled_is_not_sent_again() {
    let world = World::new(Timestamp(1_795_000_100_000));
    store(&world, 1);
    let again = redrive(&world, Span(0)).remove(0);
    block_on(dead_letter::handled(&world.worker(0), &again)).unwrap();
    assert_eq!((count(&world, keys::DEAD_LETTERS), count(&world, keys::DUE_LETTERS)), (0, 0));
    assert_eq!(redrive(&world, Span::minutes(60 * 24)), []);
}

#[test]
fn letters_that_nobody_can_handle_are_in_nobodys_way() {
    let world = World::new(Timestamp(1_795_000_100_000));
    for n in 0..200 {
        store(&world, n);
    }
    for _ in 0..6 {
        redrive(&world, Span::minutes(24 * 60));
    }
    assert_eq!((count(&world, keys::DEAD_LETTERS), count(&world, keys::DUE_LETTERS)), (200, 0));
    store(&world, 1000);
    assert_eq!(redrive(&world, Span(0)).len(), 1);
}

/// Two sweeps at once may each put the same letter off.
#[test]
fn a_letter_that_is_due_twice_is_sent_once() {
    let world = World::new(Timestamp(1_795_000_100_000));
    store(&world, 1);
    let key = keys::dead_letter(letter(1).sent, "m-1");
    let twice = Item::new(keys::due_letter(letter(1).sent + Span::minutes(1), &key.sk)).with("n", 0i64);
    block_on(world.worker(0).put_batch(&[twice], &[])).unwrap();
    assert_eq!(count(&world, keys::DUE_LETTERS), 2);
    assert_eq!(redrive(&world, Span(0)).len(), 1);
    assert_eq!(count(&world, keys::DUE_LETTERS), 1);
}
