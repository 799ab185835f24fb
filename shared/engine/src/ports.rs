//! The interfaces of the engines to the outside. Every method that uses a service makes one request, so that a test can stop after
//! each request, a benchmark can count requests, and retries do not multiply. Loops (unprocessed items, pages, chunks) are in
//! [`crate::table`].

use crate::item::{Attrs, Item, Key, Name};
use keelway_domain::time::{Span, Timestamp};
use std::future::Future;

/// The name of reading an item, in errors.
const DECODE: &str = "decode";

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PortError {
    /// Throttled, unavailable, timed out: the message should be retried later.
    #[error("{request} failed for now: {reason}")]
    Retry {
        /// The name of the request.
        request: &'static str,
        /// What the service said.
        reason: String,
    },
    /// Other writers keep changing the item: the message should be retried within seconds, since nothing is out of order.
    #[error("{request} met other writers: {reason}")]
    Contended {
        /// The name of the request.
        request: &'static str,
        /// The item and the writers, as far as they are known.
        reason: String,
    },
    /// The request can never succeed as it is: too large, malformed, not allowed.
    #[error("{request} was refused: {reason}")]
    Refused {
        /// The name of the request.
        request: &'static str,
        /// What the service said.
        reason: String,
    },
}

impl PortError {
    /// Whether the error concerns one item that this code cannot read, so that other items can still be read.
    pub fn is_of_an_item(&self) -> bool {
        matches!(self, Self::Retry { request: DECODE, .. } | Self::Refused { request: DECODE, .. })
    }
    /// Whether the same message may succeed later.
    pub fn passes(&self) -> bool {
        !matches!(self, Self::Refused { .. })
    }
}

/// The condition of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// Always: only for records whose key ends in the hash of their content.
    Always,
    /// The item does not exist: `attribute_not_exists(pk)`.
    Absent,
    /// The item's version is this one: `#v = :v`.
    Version(i64),
    /// Some attributes have these values, and others do not exist: for a writer that knows what it decided from, but not the
    /// version.
    Match {
        /// `#m = :m` for each. An item that is absent has none of them.
        equal: Attrs,
        /// `attribute_not_exists(#a)` for each.
        absent: Vec<Name>,
    },
}

/// One write, conditional or not.
#[derive(Debug, Clone, PartialEq)]
pub enum Write {
    /// The whole item.
    Put(Item, Condition),
    /// Only the named attributes; creates the item if it is absent and the condition allows it.
    Update {
        /// The key of the item.
        key: Key,
        /// When.
        condition: Condition,
        /// Attributes to set.
        set: Attrs,
        /// Attributes to remove.
        remove: Vec<Name>,
        /// Raises the version `v` by one, whatever it is: `SET v = v + :one`. The item must have one; neither `set` nor `remove`
        /// may name it then.
        raise: bool,
    },
    /// Adds to a number; an absent number counts as 0. The version does not change, so concurrent additions do not conflict. The
    /// condition must not hold for an absent item.
    Add {
        /// The key of the item.
        key: Key,
        /// When.
        condition: Condition,
        /// The name of the attribute.
        name: Name,
        /// The number to add.
        by: i64,
    },
    /// Deletes the item.
    Delete(Key, Condition),
    /// Changes nothing; in a transaction, makes the others depend on the condition.
    Check(Key, Condition),
}

impl Write {
    /// The key of the item.
    pub fn key(&self) -> &Key {
        match self {
            Write::Put(item, _) => &item.key,
            Write::Update { key, .. } | Write::Add { key, .. } | Write::Delete(key, _) | Write::Check(key, _) => key,
        }
    }
    /// The condition of the write.
    pub fn condition(&self) -> &Condition {
        match self {
            Write::Put(_, condition) | Write::Update { condition, .. } | Write::Add { condition, .. } => condition,
            Write::Delete(_, condition) | Write::Check(_, condition) => condition,
        }
    }
    /// The item after the write, regardless of the condition. An item without a version counts as version 0.
    pub fn result(&self, present: Option<&Item>) -> Option<Item> {
        match self {
            Write::Put(item, _) => Some(item.clone()),
            Write::Delete(..) => None,
            Write::Check(..) => present.cloned(),
            Write::Add { key, name, by, .. } => {
                let mut item = present.cloned().unwrap_or_else(|| Item::new(key.clone()));
                let sum = item.number(name).unwrap_or(0) + by;
                item.attrs.insert(name.clone(), sum.into());
                Some(item)
            }
            Write::Update { key, set, remove, raise, .. } => {
                let mut item = present.cloned().unwrap_or_else(|| Item::new(key.clone()));
                if *raise {
                    let next = item.version() + 1;
                    item.attrs.insert("v".into(), next.into());
                }
                item.attrs.extend(set.iter().map(|(name, value)| (name.clone(), value.clone())));
                item.attrs.retain(|name, _| !remove.contains(name));
                Some(item)
            }
        }
    }
}

/// The outcome of a conditional write.
#[derive(Debug, Clone, PartialEq)]
pub enum Written {
    /// It happened.
    Done,
    /// The condition did not hold; this is the item as it is (`None`: it does not exist).
    Conflict(Option<Item>),
}

/// The outcome of a transaction.
#[derive(Debug, Clone, PartialEq)]
pub enum Transacted {
    /// All of it happened.
    Done,
    /// None of it happened. In the order of the writes: `true` where that write's condition did not hold.
    Cancelled(Vec<bool>),
}

/// A secondary index; both hold keys only and lag behind. Nothing decides from them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Index {
    /// `gp1`, `gs1`: open task triggers and approvals.
    ByWork,
    /// `gp2`, `gs2`: contexts of a project by age, open executions.
    ByAge,
}

impl Index {
    /// The index's name and its two key attributes.
    pub fn names(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Index::ByWork => ("by-work", "gp1", "gs1"),
            Index::ByAge => ("by-age", "gp2", "gs2"),
        }
    }
}

/// A query inside one partition, of the table (strongly consistent) or of an index (never).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// `None`: the table itself.
    pub index: Option<Index>,
    /// The partition.
    pub partition: String,
    /// Sort keys from here on, inclusive; empty = from the beginning.
    pub from: String,
    /// Sort keys up to here, inclusive; `None` = to the end.
    pub to: Option<String>,
    /// Largest sort key first.
    pub descending: bool,
    /// At most this many items, at least 1.
    pub limit: u32,
    /// Continue after this item, the last of the previous page.
    pub after: Option<Cursor>,
}

impl Query {
    /// All of a partition of the table, ascending.
    pub fn table(partition: impl Into<String>, limit: u32) -> Self {
        let partition = partition.into();
        Self { index: None, partition, from: String::new(), to: None, descending: false, limit, after: None }
    }
    /// All of a partition of an index, ascending.
    pub fn index(index: Index, partition: impl Into<String>, limit: u32) -> Self {
        Self { index: Some(index), ..Self::table(partition, limit) }
    }
    /// Only sort keys that begin with `prefix`.
    pub fn prefix(mut self, prefix: &str) -> Self {
        self.from = prefix.to_owned();
        self.to = Some(format!("{prefix}\u{10ffff}"));
        self
    }
    /// Largest sort key first.
    pub fn newest_first(mut self) -> Self {
        self.descending = true;
        self
    }
    /// Continues where a page ended.
    pub fn after(mut self, cursor: Option<Cursor>) -> Self {
        self.after = cursor;
        self
    }
}

/// Where a page ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    /// The last item's key.
    pub key: Key,
    /// Its sort key in the index, when an index was queried.
    pub index_sort: Option<String>,
}

/// One page of a query. From an index: items with their key and the index's two attributes only.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Page {
    /// In the requested order.
    pub items: Vec<Item>,
    /// Set when there may be more.
    pub next: Option<Cursor>,
}

/// What an unconditional batch left undone (the service was busy); empty = all done.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Leftover {
    /// Items not put.
    pub puts: Vec<Item>,
    /// Keys not deleted.
    pub deletes: Vec<Key>,
}

/// How new what a read returns is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consistency {
    /// Every write that was answered before the read.
    Strong,
    /// An item may be as it was before its last writes, each by itself. It costs half, and is good for what a condition protects.
    Eventual,
}

/// The table. Reads of one item and queries of the table are strongly consistent.
pub trait Store: Send + Sync {
    /// `GetItem`.
    fn get(&self, key: &Key) -> impl Future<Output = Result<Option<Item>, PortError>> + Send;
    /// `BatchGetItem`, at most 100 different keys: what exists, in no particular order, and the keys left unread.
    fn get_batch(
        &self,
        keys: &[Key],
        consistency: Consistency,
    ) -> impl Future<Output = Result<(Vec<Item>, Vec<Key>), PortError>> + Send;
    /// `Query`.
    fn query(&self, query: &Query) -> impl Future<Output = Result<Page, PortError>> + Send;
    /// `BatchWriteItem`, at most 25 puts and deletes of different keys, without conditions.
    fn put_batch(&self, puts: &[Item], deletes: &[Key]) -> impl Future<Output = Result<Leftover, PortError>> + Send;
    /// `PutItem`, `UpdateItem` or `DeleteItem`.
    fn write(&self, write: &Write) -> impl Future<Output = Result<Written, PortError>> + Send;
    /// `TransactWriteItems`, at most 100 writes of different items.
    fn transact(&self, writes: &[Write]) -> impl Future<Output = Result<Transacted, PortError>> + Send;
}

/// One event for the bus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BusEntry {
    /// The event's `source`.
    pub source: String,
    /// The event's `type`.
    pub detail_type: String,
    /// The whole CloudEvent.
    pub detail: String,
}

impl BusEntry {
    /// Bytes as EventBridge counts an entry.
    pub fn size(&self) -> usize {
        self.source.len() + self.detail_type.len() + self.detail.len()
    }
}

/// The event bus.
pub trait Bus: Send + Sync {
    /// `PutEvents`, at most 10 entries and 256 KB together. For each entry, `None` or why it failed.
    fn publish(&self, entries: &[BusEntry]) -> impl Future<Output = Result<Vec<Option<String>>, PortError>> + Send;
}

/// The engines' queues, and the timers that end in them. An engine's queue is known by the engine's name.
pub trait Queue: Send + Sync {
    /// `SendMessageBatch` (`SendMessage` for one), at most 10 bodies. For each, `None` or why it failed.
    fn send(&self, engine: &str, bodies: &[String]) -> impl Future<Output = Result<Vec<Option<String>>, PortError>> + Send;
    /// Delivers the body to the queue at `at` or somewhat earlier, without fail: within 15 minutes by the queue's delay, later by a
    /// one-time schedule called `name` (at most 64 characters; an existing one of that name is the same one). The receiver checks
    /// the time.
    fn send_at(&self, engine: &str, name: &str, body: &str, at: Timestamp) -> impl Future<Output = Result<(), PortError>> + Send;
}

/// The time.
pub trait Clock: Send + Sync {
    /// The present time.
    fn now(&self) -> Timestamp;
    /// Lets this much time go by, so that other writers come through. Nothing may depend on how long it really is.
    fn pause(&self, length: Span) -> impl Future<Output = ()> + Send;
}

/// All ports in one value.
pub trait Ports: Store + Bus + Queue + Clock {}
impl<T: Store + Bus + Queue + Clock> Ports for T {}
