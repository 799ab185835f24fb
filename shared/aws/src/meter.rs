//! Counts the cost of handling a message: requests, DynamoDB units, events. It counts in production as in tests, so that
//! benchmarks, alarms and invoices use the same numbers.
//!
//! Write units are those that DynamoDB reports. For a failed condition DynamoDB reports none; it counts as the larger of the stored
//! item and the item to be written. Read units are computed from bytes: one for 4 KB, half of that for the indexes, which are not
//! read consistently. Attempts that the client repeats by itself count once.

use keelway_engine::item::Item;
use keelway_engine::ports::Consistency;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

tokio::task_local! {
    static CURRENT: Meter;
}

/// A running count.
#[derive(Debug, Clone, Default)]
pub struct Meter {
    usage: Arc<Mutex<Usage>>,
}

/// The counts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Usage {
    /// The number of requests of each kind, such as `dynamodb.GetItem`.
    pub requests: BTreeMap<&'static str, u64>,
    /// DynamoDB write request units, indexes included.
    pub write_units: f64,
    /// DynamoDB read request units.
    pub read_units: f64,
    /// The number of events that the bus accepted.
    pub events: u64,
    /// The messages that the queues accepted, by id, with the seconds until their delivery: the messages that this one has caused.
    pub sent: BTreeMap<String, i32>,
}

impl Usage {
    /// The number of requests of all kinds.
    pub fn total_requests(&self) -> u64 {
        self.requests.values().sum()
    }
}

impl Meter {
    /// Counts the requests that `work` makes in this task, also if it is dropped or panics.
    pub async fn around<F: Future>(&self, work: F) -> F::Output {
        CURRENT.scope(self.clone(), work).await
    }
    /// The count so far.
    pub fn usage(&self) -> Usage {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn add(change: impl FnOnce(&mut Usage)) {
    // Outside of a message, nothing is counted.
    let counted = CURRENT.try_with(|meter| change(&mut meter.usage.lock().unwrap_or_else(PoisonError::into_inner)));
    if counted.is_err() {
        tracing::trace!("a request outside of any message");
    }
}

/// Counts one request.
pub(crate) fn request(name: &'static str) {
    add(|usage| *usage.requests.entry(name).or_default() += 1);
}

/// Counts the units of a write, as reported.
pub(crate) fn wrote(units: impl IntoIterator<Item = f64>) {
    add(|usage| usage.write_units += units.into_iter().sum::<f64>());
}

/// The units of a write for which DynamoDB reports none: those of the larger of the stored item and the item to be written.
pub(crate) fn write_units(present: Option<&Item>, meant: Option<&Item>) -> f64 {
    let size = |item: Option<&Item>| item.map_or(0, Item::size);
    units(size(present).max(size(meant)), 1024)
}

/// Counts items read by key: each by itself, and one unit for each that does not exist; half where they may be old.
pub(crate) fn read_by_key<'a>(found: impl IntoIterator<Item = &'a Item>, missing: usize, consistency: Consistency) {
    let found: f64 = found.into_iter().map(|item| units(item.size(), 4096)).sum();
    let strong = found + units(0, 4096) * (missing as f64);
    add(|usage| usage.read_units += if consistency == Consistency::Strong { strong } else { strong / 2.0 });
}

/// Counts a page of a query: its items together.
pub(crate) fn read_page(items: &[Item], consistent: bool) {
    let together = units(items.iter().map(Item::size).sum(), 4096);
    add(|usage| usage.read_units += if consistent { together } else { together / 2.0 });
}

/// Counts events that the bus accepted.
pub(crate) fn published(events: usize) {
    add(|usage| usage.events += events as u64);
}

/// Counts a message that a queue accepted.
pub(crate) fn sent(id: Option<&str>, delay_seconds: i32) {
    add(|usage| usage.sent.extend(id.map(|id| (id.to_owned(), delay_seconds))));
}

fn units(bytes: usize, each: usize) -> f64 {
    bytes.div_ceil(each).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use keelway_engine::item::Key;

    #[tokio::test]
    async fn counts_inside_and_nowhere_else() {
        let meter = Meter::default();
        request("dynamodb.GetItem");
        meter
            .around(async {
                request("dynamodb.GetItem");
                wrote([2.0, 1.0]);
                published(2);
                sent(Some("m-1"), 3);
                let item = Item::new(Key::new("a", "b")).with("x", "y".repeat(5000));
                read_by_key([&item], 2, Consistency::Strong);
                read_page(&[item], false);
            })
            .await;
        let usage = meter.usage();
        assert_eq!(usage.requests, BTreeMap::from([("dynamodb.GetItem", 1)]));
        assert_eq!((usage.write_units, usage.read_units, usage.events), (3.0, 5.0, 2));
        assert_eq!(usage.sent, BTreeMap::from([("m-1".to_owned(), 3)]));
    }
}
