//! The store contract, run against the in-memory twin.

use keelway_domain::time::Timestamp;
use keelway_world::World;
use keelway_world::contract::{self, PROPERTIES, TWIN_ONLY};
use keelway_world::core::{Fault, Method};
use keelway_world::exec::block_on;
use keelway_world::rng::Rng;

fn holds(world: &World) {
    for (i, property) in PROPERTIES.iter().enumerate() {
        if let Err(e) = block_on(contract::check(&world.worker(0), i, "t#")) {
            panic!("{property}: {e}");
        }
    }
    for (i, (property, _)) in TWIN_ONLY.iter().enumerate() {
        if let Err(e) = block_on(contract::check_twin(&world.worker(0), i, "t#")) {
            panic!("{property}: {e}");
        }
    }
}

#[test]
fn the_twin_keeps_the_contract() {
    holds(&World::new(Timestamp(1)));
}

#[test]
fn the_twin_keeps_the_contract_while_batches_leave_something_over() {
    let world = World::new(Timestamp(1));
    let mut n = 0;
    world.core().faults = Some(Box::new(move |_, method| {
        n += 1;
        let batch = matches!(method, Method::GetBatch | Method::PutBatch);
        if batch && n % 3 != 0 { Fault::Partial } else { Fault::None }
    }));
    holds(&world);
}

#[test]
fn the_twin_keeps_the_contract_while_transactions_are_staged() {
    let world = World::new(Timestamp(1));
    world.core().table.staged = Some(Rng::new(1));
    holds(&world);
    assert_eq!(world.core().pending_transactions(), 0);
}

#[test]
fn the_twin_counts_write_units() {
    for staged in [None, Some(Rng::new(1))] {
        let world = World::new(Timestamp(1));
        world.core().table.staged = staged;
        block_on(contract::write_units(&world.worker(0), "t#")).unwrap();
    }
}

#[test]
fn a_stale_index_shows_what_it_has_seen() {
    use keelway_engine::item::{Item, Key};
    use keelway_engine::ports::{Condition, Index, Query, Store, Write};
    let world = World::new(Timestamp(1));
    let worker = world.worker(0);
    world.core().table.stale_indexes = true;
    let item = Item::new(Key::new("p", "s")).with("gp1", "w").with("gs1", "1");
    block_on(worker.write(&Write::Put(item, Condition::Absent))).unwrap();
    let entries = || block_on(worker.query(&Query::index(Index::ByWork, "w", 5))).unwrap().items.len();
    assert_eq!(entries(), 0);
    world.core().table.catch_up(1);
    assert_eq!(entries(), 1);
}
