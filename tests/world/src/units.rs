//! What requests cost, counted from bytes as DynamoDB does on demand.

use keelway_engine::item::Item;
use keelway_engine::ports::Index;

/// Both indexes, in the order of their numbers.
pub const INDEXES: [Index; 2] = [Index::ByWork, Index::ByAge];

/// Consumed units and requests by method.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Units {
    /// Write request units: 1 KB each, indexes included, transactions twice. A failed condition costs what the write would have.
    pub write: f64,
    /// Read request units: 4 KB each, half for reads that are not consistent.
    pub read: f64,
}

fn steps(bytes: usize, of: usize) -> f64 {
    bytes.div_ceil(of).max(1) as f64
}

/// Units to read that many bytes consistently.
pub fn read(bytes: usize) -> f64 {
    steps(bytes, 4096)
}

/// The two key attributes of an index, if the item is in it.
pub fn index_key(item: &Item, index: Index) -> Option<(&str, &str)> {
    let (_, partition, sort) = index.names();
    Some((item.text(partition)?, item.text(sort)?))
}

/// Units to replace `old` by `new`, without indexes.
pub fn write(old: Option<&Item>, new: Option<&Item>) -> f64 {
    steps(old.map_or(0, Item::size).max(new.map_or(0, Item::size)), 1024)
}

/// Units the indexes take for it: an insert, a delete, or both when the key changes; nothing when keys stay (keys only).
pub fn indexes(old: Option<&Item>, new: Option<&Item>) -> f64 {
    let entry = |item: &Item, index: Index| {
        let (_, partition, sort) = index.names();
        let key = index_key(item, index)?;
        let size = 4 + item.key.pk.len() + item.key.sk.len() + partition.len() + key.0.len() + sort.len() + key.1.len();
        Some(steps(size, 1024))
    };
    let one = |index: Index| {
        let before = old.and_then(|item| Some((index_key(item, index)?, entry(item, index)?)));
        let after = new.and_then(|item| Some((index_key(item, index)?, entry(item, index)?)));
        match (before, after) {
            (None, None) => 0.0,
            (Some((_, units)), None) | (None, Some((_, units))) => units,
            (Some((k, _)), Some((l, _))) if k == l => 0.0,
            (Some((_, gone)), Some((_, come))) => gone + come,
        }
    };
    INDEXES.into_iter().map(one).sum()
}
