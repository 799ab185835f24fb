//! Two versions side by side on one table and one queue, as while a release is rolled out. The earlier one knows executions of
//! format 1 only: it writes records as plain text, and leaves what has format 2 to the later one.

use super::planted::Rollout;
use super::{Plan, Shipyards};
use crate::sim::{self, Stats, Troubles, Violation};
use keelway_domain::event::CloudEvent;
use keelway_domain::sequences::Execution;
use keelway_engine::item::{Attr, Item, Key, Name};
use keelway_engine::ports::Write;
use keelway_engine::protocol::record;
use keelway_world::rng::Rng;
use std::sync::Arc;

/// So large that each record needs more than one write unit.
const NOTES: usize = 1200;

/// Runs one seed; each message may meet either version.
///
/// # Errors
/// The first invariant that is violated.
pub fn side_by_side(seed: u64, trace: bool) -> Result<Stats, Violation> {
    let scenario = |rng: &mut Rng| {
        let (plan, troubles) = Plan::of(rng);
        let rollout = Some(Arc::new(Rollout::new(rng)));
        let troubles = Troubles { dead: 0.0, ..troubles };
        // The earlier version handles no answer where it arrives: everything goes over the queue.
        let plan = Plan { http: false, ..plan };
        (Shipyards { rollout, ..Shipyards::new(plan, None) }, troubles)
    };
    sim::simulate(seed, scenario, trace)
}

/// A client's trigger with a payload that each of its records repeats.
pub(super) fn large(mut event: CloudEvent) -> CloudEvent {
    event.data.insert("notes".into(), "note ".repeat(NOTES / 5).into());
    event
}

/// An item as the earlier version sees it.
pub(super) fn read(item: Item, is_execution: bool) -> Item {
    match item.number("f") {
        // It refuses any format that it does not know.
        Some(2) if is_execution => item.with("f", i64::MAX),
        _ => item,
    }
}

/// What the earlier version writes.
pub(super) fn written(write: Write, is_execution: fn(&Key) -> bool) -> Write {
    let f = Name::Borrowed("f");
    match write {
        Write::Put(item, condition) if is_execution(&item.key) => Write::Put(item.with("f", 1i64), condition),
        Write::Put(item, condition) => Write::Put(plain(item), condition),
        Write::Update { key, condition, mut set, remove, raise } if is_execution(&key) => {
            if let Some(format) = set.get_mut(&f) {
                *format = Attr::N(1);
            }
            Write::Update { key, condition, set, remove, raise }
        }
        other => other,
    }
}

/// A record as plain text.
fn plain(item: Item) -> Item {
    let packed = record::decode::<Execution>(Some(&item)).filter(|_| item.text("j").is_none());
    match packed {
        Some(record) => item.with("j", record.to_bytes()),
        None => item,
    }
}
