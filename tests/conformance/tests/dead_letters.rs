//! Dead letters: stored once, sent again by the sweep with growing pauses, taken out when they are handled.

use keelway_domain::time::{Span, Timestamp};
use keelway_engine::ports::{Limits, Query, Store};
use keelway_engine::sequences::Engine;
use keelway_engine::sequences::dead_letter::{self, DeadLetter, Redriven};
use keelway_world::World;
use keelway_world::exec::block_on;

fn letter() -> DeadLetter {
    DeadLetter {
        queue: "sequences".into(),
        message_id: "m-1".into(),
        sent: Timestamp(1_795_000_000_000),
        body: r#"{"detail-type":"x","source":"y","detail":{}}"#.into(),
        receives: 10,
        reason: None,
    }
}

fn stored(world: &World) -> Vec<(String, i64)> {
    let page = block_on(world.worker(0).query(&Query::table("L", 10))).unwrap();
    page.items.into_iter().map(|item| (item.key.sk.clone(), item.number("rd").unwrap_or(0))).collect()
}

#[test]
fn a_letter_is_sent_again_until_it_is_handled() {
    let world = World::new(Timestamp(1_795_000_100_000));
    let engine = Engine::new(world.worker(0), Limits::default());
    for _ in 0..2 {
        block_on(dead_letter::store(&world.worker(0), &letter())).unwrap();
    }
    let sweep = |pass: Span| {
        world.pass(pass);
        block_on(engine.sweep(100)).unwrap().sent
    };
    assert_eq!(stored(&world).len(), 1);
    assert_eq!([sweep(Span(0)), sweep(Span::minutes(5)), sweep(Span::minutes(6)), sweep(Span::minutes(11))], [1, 0, 1, 0]);
    let (key, times) = stored(&world).remove(0);
    assert_eq!(times, 2);
    // It fails again: no letter about a letter.
    let again = Redriven { letter: key.clone(), sent: letter().sent, body: letter().body };
    let failed = DeadLetter { message_id: "m-2".into(), body: serde_json::to_string(&again).unwrap(), ..letter() };
    assert_eq!(Redriven::parse(&failed.body), Some(again));
    block_on(dead_letter::store(&world.worker(0), &failed)).unwrap();
    assert_eq!(stored(&world).len(), 1);
    for _ in 0..10 {
        world.pass(Span::minutes(24 * 60));
        block_on(engine.sweep(100)).unwrap();
    }
    assert_eq!(stored(&world), [(key.clone(), 5)], "after five times it waits for a person");
    block_on(dead_letter::handled(&world.worker(0), &key)).unwrap();
    assert_eq!(stored(&world), []);
}
