//! The table's twin: DynamoDB's behaviour as far as the engines rely on it, executed one request at a time.

mod limits;
mod paid;
mod query;
mod transaction;

pub use transaction::Begun;

use crate::quota::Throughput;
use crate::rng::Rng;
use crate::units::{self, INDEXES, Units};
use keelway_engine::item::{Attr, Item, Key, Name};
use keelway_engine::ports::{Condition, Consistency, Leftover, PortError, Write, Written};
use limits::refused;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use transaction::Pending;

/// One write as it happened.
#[derive(Debug, Clone)]
pub struct Change {
    /// What was written.
    pub key: Key,
    /// Before.
    pub old: Option<Arc<Item>>,
    /// After.
    pub new: Option<Arc<Item>>,
}

type Entry = (String, String, Key);

#[derive(Debug, Clone, Default, PartialEq)]
struct IndexTwin {
    entries: BTreeSet<Entry>,
    /// What the index has not seen yet: `true` = inserted.
    behind: VecDeque<(bool, Entry)>,
}

/// Items in key order, and two indexes of keys.
#[derive(Debug)]
pub struct Table {
    items: BTreeMap<Key, Arc<Item>>,
    indexes: [IndexTwin; 2],
    /// While set, indexes do not see new writes until [`Table::catch_up`].
    pub stale_indexes: bool,
    /// While set, an eventually consistent read sees each item as it is or as it was before its last write, as drawn from this.
    pub stale_reads: Option<Rng>,
    /// Items as they were before their last write, while there are such reads.
    before: BTreeMap<Key, Option<Arc<Item>>>,
    /// What it all cost.
    pub units: Units,
    /// Whether to count that; counting bytes takes a third of the time of a request.
    pub metered: bool,
    /// What may be read and written in a second; anything while absent. It is counted with the units, so it needs `metered`.
    pub throughput: Option<Throughput>,
    /// Every write since the journal was last taken.
    pub journal: Vec<Change>,
    /// While set, transactions are staged: their items become visible one by one, in an order drawn from this.
    pub staged: Option<Rng>,
    pending: BTreeMap<u64, Pending>,
    /// Transactions begun so far.
    begun: u64,
}

impl Default for Table {
    fn default() -> Self {
        Self {
            items: BTreeMap::new(),
            indexes: Default::default(),
            stale_indexes: false,
            stale_reads: None,
            before: BTreeMap::new(),
            units: Units::default(),
            metered: true,
            throughput: None,
            journal: vec![],
            staged: None,
            pending: BTreeMap::new(),
            begun: 0,
        }
    }
}

impl Table {
    /// A copy that goes its own way, with an empty journal.
    pub(crate) fn fork(&self) -> Self {
        Self {
            items: self.items.clone(),
            indexes: self.indexes.clone(),
            stale_reads: self.stale_reads.clone(),
            before: self.before.clone(),
            units: self.units.clone(),
            throughput: None,
            journal: vec![],
            staged: self.staged.clone(),
            pending: self.pending.clone(),
            ..*self
        }
    }
    /// Whether it holds the same as another one, and no transaction is on its way in either.
    pub(crate) fn holds_what(&self, other: &Self) -> bool {
        let same = |(one, other): (&Arc<Item>, &Arc<Item>)| Arc::ptr_eq(one, other) || one == other;
        self.pending.is_empty()
            && other.pending.is_empty()
            && self.items.len() == other.items.len()
            && self.items.values().zip(other.items.values()).all(same)
            && self.indexes == other.indexes
    }
    /// The item, without a request.
    pub fn peek(&self, key: &Key) -> Option<&Arc<Item>> {
        self.items.get(key)
    }
    /// All items in key order, without a request.
    pub fn items(&self) -> impl Iterator<Item = &Arc<Item>> {
        self.items.values()
    }
    /// All items of a partition, without a request.
    pub fn partition<'a>(&'a self, pk: &'a str) -> impl Iterator<Item = &'a Arc<Item>> {
        self.items.range(Key::new(pk, "")..).take_while(move |(key, _)| key.pk == pk).map(|(_, item)| item)
    }
    /// Lets the indexes see the next `changes` of what they are behind.
    pub fn catch_up(&mut self, changes: usize) {
        for index in &mut self.indexes {
            for (insert, entry) in index.behind.drain(..changes.min(index.behind.len())) {
                if insert {
                    index.entries.insert(entry)
                } else {
                    index.entries.remove(&entry)
                };
            }
        }
    }

    /// `GetItem`.
    pub fn get(&mut self, key: &Key) -> Result<Option<Item>, PortError> {
        limits::key("GetItem", key)?;
        if !self.admits_read(None, &key.pk) {
            return paid::throttled("GetItem");
        }
        Ok(self.read(key, Consistency::Strong))
    }

    fn read(&mut self, key: &Key, consistency: Consistency) -> Option<Item> {
        let eventual = consistency == Consistency::Eventual;
        let drawn = self.stale_reads.as_mut().filter(|_| eventual).is_some_and(|rng| rng.chance(50.0));
        let past = self.before.get(key).filter(|_| drawn);
        let found = past.map_or_else(|| self.items.get(key), Option::as_ref).map(|item| (**item).clone());
        if self.metered {
            let units = units::read(found.as_ref().map_or(0, Item::size));
            self.pay_read(None, &key.pk, if eventual { units / 2.0 } else { units });
        }
        found
    }

    /// `BatchGetItem`, up to 16 MB; when `busy`, half of the keys are left over.
    pub fn get_batch(&mut self, keys: &[Key], consistency: Consistency, busy: bool) -> Result<(Vec<Item>, Vec<Key>), PortError> {
        limits::keys("BatchGetItem", keys.iter(), 100)?;
        let most = if busy { keys.len() / 2 } else { keys.len() };
        let (mut now, mut bytes) = (0, 0);
        for key in &keys[..most] {
            bytes += self.items.get(key).map_or(0, |item| item.size());
            if bytes > limits::BATCH_BYTES {
                break;
            }
            now += 1;
        }
        let (taken, mut left) = (self.admitted(&keys[..now]), keys[now..].to_vec());
        if self.throughput.is_some() {
            left.extend(keys[..now].iter().filter(|key| !taken.contains(key)).cloned());
            if taken.is_empty() {
                return paid::throttled("BatchGetItem");
            }
        }
        // From the last: the order of the answer is nobody's business.
        let items = taken.into_iter().rev().filter_map(|key| self.read(key, consistency)).collect();
        Ok((items, left))
    }

    /// `BatchWriteItem`; when `busy`, half of it is left over. What a transaction is at is left over as well.
    pub fn put_batch(&mut self, puts: &[Item], deletes: &[Key], busy: bool) -> Result<Leftover, PortError> {
        const REQUEST: &str = "BatchWriteItem";
        limits::keys(REQUEST, puts.iter().map(|item| &item.key).chain(deletes), 25)?;
        puts.iter().try_for_each(|item| limits::item(REQUEST, item))?;
        let count = puts.len() + deletes.len();
        let now = if busy { count / 2 } else { count };
        let (put, kept) = puts.split_at(now.min(puts.len()));
        let (gone, stay) = deletes.split_at(now - put.len());
        let mut left = Leftover { puts: kept.to_vec(), deletes: stay.to_vec() };
        for item in put {
            match self.is_pending(&item.key) || !self.admits_write(&item.key, Some(item)) {
                true => left.puts.push(item.clone()),
                false => self.pay_and_put(item.key.clone(), Some(item.clone())),
            }
        }
        for key in gone {
            match self.is_pending(key) || !self.admits_write(key, None) {
                true => left.deletes.push(key.clone()),
                false => self.pay_and_put(key.clone(), None),
            }
        }
        if self.throughput.is_some() && left.puts.len() + left.deletes.len() == count {
            return paid::throttled(REQUEST);
        }
        Ok(left)
    }

    /// `PutItem`, `UpdateItem` or `DeleteItem`.
    pub fn write(&mut self, write: &Write) -> Result<Written, PortError> {
        if matches!(write, Write::Check(..)) {
            return refused("ConditionCheck", "only inside a transaction");
        }
        limits::write(write)?;
        if self.is_pending(write.key()) {
            // After the tries of the port on DynamoDB, which waits a little between them.
            return Err(PortError::Contended { request: "write", reason: "TransactionConflict".into() });
        }
        if !self.admits(write) {
            return paid::throttled("write");
        }
        if !self.holds(write) {
            let present = self.items.get(write.key()).map(|item| (**item).clone());
            if self.metered {
                self.pay_write(&write.key().pk, units::write(present.as_ref(), write.result(present.as_ref()).as_ref()));
            }
            return Ok(Written::Conflict(present));
        }
        let new = self.after(write)?;
        self.pay_and_put(write.key().clone(), new);
        Ok(Written::Done)
    }

    fn holds(&self, write: &Write) -> bool {
        let item = self.items.get(write.key());
        match write.condition() {
            Condition::Always => true,
            Condition::Absent => item.is_none(),
            Condition::Version(version) => item.is_some_and(|item| item.number("v") == Some(*version)),
            Condition::Match { equal, absent } => {
                let attr = |name: &Name| item.and_then(|item| item.attrs.get(name));
                equal.iter().all(|(name, value)| attr(name) == Some(value)) && absent.iter().all(|name| attr(name).is_none())
            }
        }
    }

    /// The item as the write leaves it, once its condition holds.
    fn after(&self, write: &Write) -> Result<Option<Item>, PortError> {
        const REQUEST: &str = "UpdateItem";
        let present = self.items.get(write.key()).map(|item| &**item);
        if let Write::Update { key, raise: true, .. } = write
            && present.is_none_or(|item| item.number("v").is_none())
        {
            return refused(REQUEST, format!("{key} has no version that could be raised"));
        }
        if let (Write::Add { name, .. }, Some(item)) = (write, present)
            && item.attrs.get(name).is_some_and(|value| !matches!(value, Attr::N(_)))
        {
            return refused(REQUEST, format!("{name} of {} is no number", item.key));
        }
        let new = write.result(present);
        if let (Write::Update { .. } | Write::Add { .. }, Some(item)) = (write, &new) {
            limits::item(REQUEST, item)?;
        }
        Ok(new)
    }

    /// Stores, and feeds the indexes.
    fn put(&mut self, key: Key, new: Option<Item>) {
        let new = new.map(Arc::new);
        let old = match &new {
            Some(item) => self.items.insert(key.clone(), item.clone()),
            None => self.items.remove(&key),
        };
        for (twin, index) in self.indexes.iter_mut().zip(INDEXES) {
            let entry = |item: &Arc<Item>| units::index_key(item, index).map(|(p, s)| (p.to_owned(), s.to_owned(), key.clone()));
            let (before, after) = (old.as_ref().and_then(entry), new.as_ref().and_then(entry));
            if before != after {
                twin.behind.extend(before.map(|entry| (false, entry)));
                twin.behind.extend(after.map(|entry| (true, entry)));
            }
        }
        if !self.stale_indexes {
            self.catch_up(usize::MAX);
        }
        if self.stale_reads.is_some() {
            self.before.insert(key.clone(), old.clone());
        }
        self.journal.push(Change { key, old, new });
    }
}
