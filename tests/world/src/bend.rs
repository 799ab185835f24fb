//! What a mistaken engine would read, write, publish and send. The engines themselves have no hook for any of this: the mistake
//! lies between an engine and its ports, in the [`Worker`](crate::worker::Worker). What implements [`Bend`] says only what it
//! changes; every other request is made as it is.

use crate::queue::Received;
use keelway_domain::time::Timestamp;
use keelway_engine::item::{Item, Key};
use keelway_engine::ports::{BusEntry, Page, Query, Write};

/// The request that an item was read by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// One key.
    Key,
    /// A batch of keys.
    Batch,
    /// A query.
    Query,
}

/// What a request may leave undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// Keys of a batch were not read.
    Keys,
    /// Writes of a batch were not made.
    Writes,
    /// Entries of a publication failed.
    Entries,
}

/// What is noted of an engine's requests, and what its mistake changes in them.
pub trait Bend: Send + Sync {
    /// Whether there is a mistake. If not, requests are only noted.
    fn is_mistaken(&self) -> bool;

    /// Work begins: a message, or (`None`) something else.
    fn begin(&self, _received: Option<&Received>) {}
    /// The answer to a read by key has come, whether or not there is such an item.
    fn answered(&self, _key: &Key) {}
    /// The answer to a query has come.
    fn queried(&self, _query: &Query) {}
    /// A single write, or one of a transaction, is about to be made.
    fn attempted(&self, _write: &Write) {}
    /// These were made.
    fn done(&self, _writes: &[Write]) {}
    /// A request that changes or tells something is over, well or not.
    fn acted(&self) {}

    /// The key that is read instead; `None`: the one that was asked for.
    fn instead(&self, _key: &Key) -> Option<Key> {
        None
    }
    /// An item as it is seen; `None`: it is not seen.
    fn read(&self, item: Item, _by: By) -> Option<Item> {
        Some(item)
    }
    /// A page as it is seen.
    fn page(&self, _query: &Query, mut page: Page) -> Page {
        page.items = page.items.into_iter().filter_map(|item| self.read(item, By::Query)).collect();
        page
    }
    /// What is written: alone, in a batch (without its condition), or in a transaction; `None`: it is not, and counts as written.
    fn write(&self, write: Write) -> Option<Write> {
        Some(write)
    }
    /// What was held back, and is written after a query.
    fn late(&self) -> Option<Item> {
        None
    }
    /// What is published before these items are written.
    fn early(&self, _puts: &[Item]) -> Vec<BusEntry> {
        vec![]
    }
    /// Whether each write of a transaction is made by itself.
    fn splits(&self, _writes: &[Write]) -> bool {
        false
    }
    /// Whether what a request has left undone is taken for done.
    fn ignores(&self, _left: Left) -> bool {
        false
    }
    /// What is published; `None`: nothing, and it counts as published.
    fn publish(&self, entry: BusEntry) -> Option<BusEntry> {
        Some(entry)
    }
    /// What is sent; `None`: nothing, and it counts as sent.
    fn send(&self, body: &str) -> Option<String> {
        Some(body.to_owned())
    }
    /// Whether a wake-up is scheduled. If not, it counts as scheduled.
    fn send_at(&self, _body: &str, _at: Timestamp) -> bool {
        true
    }
}
