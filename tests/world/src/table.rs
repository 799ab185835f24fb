//! The table's twin: DynamoDB's behaviour as far as the engines rely on it, executed one request at a time.

use crate::units::{self, INDEXES, Units};
use keelway_engine::item::{Item, Key, MAX_ITEM_BYTES, Name};
use keelway_engine::ports::{Condition, Cursor, Index, Leftover, Page, PortError, Query, Transacted, Write, Written};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

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

#[derive(Debug, Default)]
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
    /// What it all cost.
    pub units: Units,
    /// Whether to count that; counting bytes takes a third of the time of a request.
    pub metered: bool,
    /// Every write since the journal was last taken.
    pub journal: Vec<Change>,
}

impl Default for Table {
    fn default() -> Self {
        Self {
            items: BTreeMap::new(),
            indexes: Default::default(),
            stale_indexes: false,
            units: Units::default(),
            metered: true,
            journal: vec![],
        }
    }
}

fn refused<T>(request: &'static str, reason: impl Into<String>) -> Result<T, PortError> {
    Err(PortError::Refused { request, reason: reason.into() })
}

/// The most DynamoDB returns in one page, in bytes.
const PAGE_BYTES: usize = 1024 * 1024;

impl Table {
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
        let found = self.items.get(key).map(|item| (**item).clone());
        if self.metered {
            self.units.read += units::read(found.as_ref().map_or(0, Item::size));
        }
        Ok(found)
    }

    /// `BatchGetItem`; when `busy`, half of the keys are left over.
    pub fn get_batch(&mut self, keys: &[Key], busy: bool) -> Result<(Vec<Item>, Vec<Key>), PortError> {
        const REQUEST: &str = "BatchGetItem";
        if keys.is_empty() || keys.len() > 100 {
            return refused(REQUEST, format!("{} keys: 1 to 100 are allowed", keys.len()));
        }
        if keys.iter().collect::<BTreeSet<_>>().len() < keys.len() {
            return refused(REQUEST, "the same key twice");
        }
        let now = if busy { keys.len() / 2 } else { keys.len() };
        let mut items = Vec::with_capacity(now);
        // From the last: the order of the answer is nobody's business.
        for key in keys[..now].iter().rev() {
            items.extend(self.get(key)?);
        }
        Ok((items, keys[now..].to_vec()))
    }

    /// `Query`.
    pub fn query(&mut self, query: &Query) -> Result<Page, PortError> {
        if query.limit == 0 || query.partition.is_empty() {
            return refused("Query", "a limit and a partition are required");
        }
        match query.index {
            None => Ok(self.query_table(query)),
            Some(index) => Ok(self.query_index(query, index)),
        }
    }

    fn query_table(&mut self, query: &Query) -> Page {
        let inside = |key: &Key| key.pk == query.partition && query.to.as_ref().is_none_or(|to| key.sk <= *to);
        let low = Key::new(query.partition.as_str(), query.from.as_str());
        let after = query.after.as_ref().map(|cursor| cursor.key.clone());
        let mut page = Page::default();
        let mut bytes = 0;
        let mut take = |item: &Arc<Item>| {
            bytes += item.size();
            page.items.push((**item).clone());
            page.items.len() < query.limit as usize && bytes < PAGE_BYTES
        };
        let full = if query.descending {
            let high = match (&after, &query.to) {
                (Some(key), _) => Bound::Excluded(key.clone()),
                (None, Some(to)) => Bound::Included(Key::new(query.partition.as_str(), to.as_str())),
                (None, None) => Bound::Excluded(Key::new(format!("{}\0", query.partition), "")),
            };
            let empty = matches!(&high, Bound::Excluded(key) | Bound::Included(key) if *key < low);
            !empty && !self.items.range((Bound::Included(low), high)).rev().filter(|(key, _)| inside(key)).all(|(_, i)| take(i))
        } else {
            let low = match after {
                Some(key) if key >= low => Bound::Excluded(key),
                _ => Bound::Included(low),
            };
            !self.items.range((low, Bound::Unbounded)).take_while(|(key, _)| inside(key)).all(|(_, item)| take(item))
        };
        self.units.read += units::read(bytes);
        page.next = page.items.last().filter(|_| full).map(|item| Cursor { key: item.key.clone(), index_sort: None });
        page
    }

    fn query_index(&mut self, query: &Query, index: Index) -> Page {
        let (_, partition, sort) = index.names();
        let twin = &self.indexes[INDEXES.iter().position(|i| *i == index).unwrap_or(0)];
        let first = (query.partition.clone(), query.from.clone(), Key::new("", ""));
        let mut rows: Vec<&Entry> = (twin.entries.range(first..))
            .take_while(|(p, s, _)| *p == query.partition && query.to.as_ref().is_none_or(|to| s <= to))
            .collect();
        if query.descending {
            rows.reverse();
        }
        if let Some(after) = &query.after {
            let last = (after.index_sort.clone().unwrap_or_default(), after.key.clone());
            let place = |(_, s, k): &&Entry| (s.clone(), k.clone());
            rows.retain(|row| if query.descending { place(row) < last } else { place(row) > last });
        }
        let item = |(p, s, key): &Entry| {
            let mut item = Item::new(key.clone());
            item.attrs.insert(partition.into(), p.as_str().into());
            item.attrs.insert(sort.into(), s.as_str().into());
            item
        };
        let items: Vec<Item> = rows.iter().take(query.limit as usize).map(|row| item(row)).collect();
        self.units.read += units::read(items.iter().map(Item::size).sum()) / 2.0;
        let last = rows.get(query.limit as usize - 1);
        let next = last.map(|(_, s, key)| Cursor { key: key.clone(), index_sort: Some(s.clone()) });
        Page { items, next }
    }

    /// `BatchWriteItem`; when `busy`, half of it is left over.
    pub fn put_batch(&mut self, puts: &[Item], deletes: &[Key], busy: bool) -> Result<Leftover, PortError> {
        const REQUEST: &str = "BatchWriteItem";
        let count = puts.len() + deletes.len();
        if count == 0 || count > 25 {
            return refused(REQUEST, format!("{count} writes: 1 to 25 are allowed"));
        }
        if puts.iter().map(|item| &item.key).chain(deletes).collect::<BTreeSet<_>>().len() < count {
            return refused(REQUEST, "the same key twice");
        }
        for item in puts {
            fits(REQUEST, item)?;
        }
        let now = if busy { count / 2 } else { count };
        let (put, kept) = puts.split_at(now.min(puts.len()));
        let (gone, stay) = deletes.split_at(now - put.len());
        for item in put {
            self.units.write += self.put(item.key.clone(), Some(item.clone()));
        }
        for key in gone {
            self.units.write += self.put(key.clone(), None);
        }
        Ok(Leftover { puts: kept.to_vec(), deletes: stay.to_vec() })
    }

    /// `PutItem`, `UpdateItem` or `DeleteItem`.
    pub fn write(&mut self, write: &Write) -> Result<Written, PortError> {
        if matches!(write, Write::Check(..)) {
            return refused("ConditionCheck", "only inside a transaction");
        }
        well_formed(write)?;
        if !self.holds(write) {
            self.units.write += 1.0;
            return Ok(Written::Conflict(self.items.get(write.key()).map(|item| (**item).clone())));
        }
        let new = self.after(write)?;
        self.units.write += self.put(write.key().clone(), new);
        Ok(Written::Done)
    }

    /// `TransactWriteItems`; when `busy`, another transaction is in the way.
    pub fn transact(&mut self, writes: &[Write], busy: bool) -> Result<Transacted, PortError> {
        const REQUEST: &str = "TransactWriteItems";
        if writes.is_empty() || writes.len() > 100 {
            return refused(REQUEST, format!("{} writes: 1 to 100 are allowed", writes.len()));
        }
        if writes.iter().map(Write::key).collect::<BTreeSet<_>>().len() < writes.len() {
            return refused(REQUEST, "the same key twice");
        }
        writes.iter().try_for_each(well_formed)?;
        let failed: Vec<bool> = writes.iter().map(|write| !self.holds(write)).collect();
        let after = |(write, failed): (&Write, &bool)| if *failed { Ok(None) } else { self.after(write) };
        let after = writes.iter().zip(&failed).map(after).collect::<Result<Vec<_>, _>>()?;
        if busy || failed.contains(&true) {
            self.units.write += 2.0 * writes.len() as f64;
            return Ok(Transacted::Cancelled(failed));
        }
        for (write, new) in writes.iter().zip(after) {
            let old = self.items.get(write.key()).cloned();
            let size = units::write(old.as_deref(), new.as_ref());
            self.units.write += size;
            self.units.write += match write {
                Write::Check(..) => size,
                _ => self.put(write.key().clone(), new),
            };
        }
        Ok(Transacted::Done)
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

    /// The item as the write would leave it, once its condition holds.
    fn after(&self, write: &Write) -> Result<Option<Item>, PortError> {
        let old = self.items.get(write.key()).map(|item| (**item).clone());
        let Write::Update { key, set, remove, raise, .. } = write else {
            return Ok(match write {
                Write::Put(item, _) => Some(item.clone()),
                Write::Check(..) => old,
                _ => None,
            });
        };
        let mut item = old.unwrap_or_else(|| Item::new(key.clone()));
        if *raise {
            let Some(version) = item.number("v") else {
                return refused("UpdateItem", format!("{key} has no version that could be raised"));
            };
            item.attrs.insert("v".into(), (version + 1).into());
        }
        item.attrs.extend(set.iter().map(|(name, value)| (name.clone(), value.clone())));
        item.attrs.retain(|name, _| !remove.contains(name));
        fits("UpdateItem", &item)?;
        Ok(Some(item))
    }

    /// Stores, feeds the indexes, and says what it costs.
    fn put(&mut self, key: Key, new: Option<Item>) -> f64 {
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
        let (before, after) = (old.as_deref(), new.as_deref());
        let cost = if self.metered { units::write(before, after) + units::indexes(before, after) } else { 0.0 };
        self.journal.push(Change { key, old, new });
        cost
    }
}

/// What is refused whatever the item is.
fn well_formed(write: &Write) -> Result<(), PortError> {
    match write {
        Write::Put(item, _) => fits("PutItem", item),
        Write::Update { set, remove, raise, .. } => {
            const REQUEST: &str = "UpdateItem";
            let version: Option<Name> = raise.then(|| "v".into());
            let named: Vec<&Name> = set.keys().chain(remove).chain(&version).collect();
            if named.iter().collect::<BTreeSet<_>>().len() < named.len() {
                return refused(REQUEST, format!("an attribute is named twice: {named:?}"));
            }
            if named.iter().any(|name| *name == "pk" || *name == "sk") {
                return refused(REQUEST, "the primary key cannot be updated");
            }
            Ok(())
        }
        Write::Check(key, Condition::Always) => refused("ConditionCheck", format!("a check of {key} without a condition")),
        Write::Delete(..) | Write::Check(..) => Ok(()),
    }
}

fn fits(request: &'static str, item: &Item) -> Result<(), PortError> {
    if item.size() > MAX_ITEM_BYTES {
        return refused(request, format!("item {} has {} bytes: {MAX_ITEM_BYTES} are allowed", item.key, item.size()));
    }
    match units::key_fault(item) {
        Some(reason) => refused(request, reason),
        None => Ok(()),
    }
}
