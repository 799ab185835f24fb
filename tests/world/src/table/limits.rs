//! What DynamoDB refuses before it looks at any item: sizes, keys, malformed requests.

use crate::units::INDEXES;
use keelway_engine::item::{Attr, Item, Key, MAX_ITEM_BYTES, MAX_PARTITION_BYTES, MAX_SORT_BYTES, Name};
use keelway_engine::ports::{Condition, Cursor, Index, PortError, Query, Write};
use std::collections::BTreeSet;

/// A page of a query ends with the item that makes it as large as this, in bytes.
pub(super) const PAGE_BYTES: usize = 1 << 20;
/// The most that one `BatchGetItem` answers, in bytes. A `BatchWriteItem` cannot get there: 25 items of 400 KB are 10 MB.
pub(super) const BATCH_BYTES: usize = 16 << 20;
/// The most that the items of a transaction come to, in bytes.
pub(super) const TRANSACTION_BYTES: usize = 4 << 20;

pub(super) fn refused<T>(request: &'static str, reason: impl Into<String>) -> Result<T, PortError> {
    Err(PortError::Refused { request, reason: reason.into() })
}

/// Different keys, as many as the request may have.
pub(super) fn keys<'a>(request: &'static str, keys: impl Iterator<Item = &'a Key> + Clone, most: usize) -> Result<(), PortError> {
    let count = keys.clone().count();
    if count == 0 || count > most {
        return refused(request, format!("{count} keys: 1 to {most} are allowed"));
    }
    keys.clone().try_for_each(|one| key(request, one))?;
    if keys.collect::<BTreeSet<_>>().len() < count {
        return refused(request, "the same key twice");
    }
    Ok(())
}

/// A primary key.
pub(super) fn key(request: &'static str, key: &Key) -> Result<(), PortError> {
    length(request, "partition key", &key.pk, MAX_PARTITION_BYTES)?;
    length(request, "sort key", &key.sk, MAX_SORT_BYTES)
}

/// A whole item: its size, its key and the keys it has in the indexes, which are strings like the primary key.
pub(super) fn item(request: &'static str, item: &Item) -> Result<(), PortError> {
    key(request, &item.key)?;
    for (_, partition, sort) in INDEXES.map(Index::names) {
        for (name, most) in [(partition, MAX_PARTITION_BYTES), (sort, MAX_SORT_BYTES)] {
            match item.attrs.get(name) {
                None => {}
                Some(Attr::S(text)) => length(request, name, text, most)?,
                Some(_) => return refused(request, format!("index key {name} of {} is not a string", item.key)),
            }
        }
    }
    match item.size() {
        size if size > MAX_ITEM_BYTES => {
            refused(request, format!("item {} has {size} bytes: {MAX_ITEM_BYTES} are allowed", item.key))
        }
        _ => Ok(()),
    }
}

/// A write, whatever the item is.
pub(super) fn write(write: &Write) -> Result<(), PortError> {
    const UPDATE: &str = "UpdateItem";
    match write {
        Write::Put(new, _) => item("PutItem", new),
        Write::Delete(of, _) => key("DeleteItem", of),
        Write::Check(of, Condition::Always) => refused("ConditionCheck", format!("a check of {of} without a condition")),
        Write::Check(of, _) => key("ConditionCheck", of),
        Write::Add { key: of, name, .. } if name == "pk" || name == "sk" => {
            refused(UPDATE, format!("the primary key of {of} cannot be updated"))
        }
        Write::Add { key: of, .. } => key(UPDATE, of),
        Write::Update { key: of, set, remove, raise, .. } => {
            key(UPDATE, of)?;
            let version: Option<Name> = raise.then(|| "v".into());
            let named: Vec<&Name> = set.keys().chain(remove).chain(&version).collect();
            if named.iter().collect::<BTreeSet<_>>().len() < named.len() {
                return refused(UPDATE, format!("an attribute is named twice: {named:?}"));
            }
            if named.iter().any(|name| *name == "pk" || *name == "sk") {
                return refused(UPDATE, "the primary key cannot be updated");
            }
            match set.iter().map(|(name, value)| name.len() + value.size()).sum::<usize>() {
                bytes if bytes > MAX_ITEM_BYTES => refused(UPDATE, format!("{bytes} bytes to set: {MAX_ITEM_BYTES} are allowed")),
                _ => Ok(()),
            }
        }
    }
}

/// What a query names: its partition, its bounds, and the place it goes on from, which must lie between the bounds.
pub(super) fn query(query: &Query) -> Result<(), PortError> {
    const REQUEST: &str = "Query";
    if query.limit == 0 {
        return refused(REQUEST, "a limit of 0");
    }
    length(REQUEST, "partition", &query.partition, MAX_PARTITION_BYTES)?;
    for bound in [Some(&query.from).filter(|from| !from.is_empty()), query.to.as_ref()].into_iter().flatten() {
        length(REQUEST, "bound", bound, MAX_SORT_BYTES)?;
    }
    match &query.after {
        Some(after) => start(query, after),
        None => Ok(()),
    }
}

fn start(query: &Query, after: &Cursor) -> Result<(), PortError> {
    const REQUEST: &str = "Query";
    key(REQUEST, &after.key)?;
    let sort = match (query.index, &after.index_sort) {
        (None, _) if after.key.pk != query.partition => {
            return refused(REQUEST, format!("the starting key {} is of another partition than {}", after.key, query.partition));
        }
        (None, _) => &after.key.sk,
        (Some(_), Some(sort)) => sort,
        (Some(_), None) => return refused(REQUEST, "the starting key has no sort key of the index"),
    };
    length(REQUEST, "starting key", sort, MAX_SORT_BYTES)?;
    if *sort < query.from || query.to.as_ref().is_some_and(|to| sort > to) {
        return refused(REQUEST, format!("the starting key {sort:?} is outside of what is asked for"));
    }
    Ok(())
}

fn length(request: &'static str, what: &str, text: &str, most: usize) -> Result<(), PortError> {
    match text.len() {
        bytes if bytes == 0 || bytes > most => refused(request, format!("{what}: {bytes} bytes, 1 to {most} are allowed")),
        _ => Ok(()),
    }
}
