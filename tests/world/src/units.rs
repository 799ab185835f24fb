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

/// What a change writes in the indexes, by index and partition: an insert, a delete, or both when the key changes; nothing when
/// keys stay (keys only).
pub fn entries<'a>(old: Option<&'a Item>, new: Option<&'a Item>) -> impl Iterator<Item = (Index, &'a str, f64)> {
    fn entry(item: &Item, index: Index) -> Option<(&str, &str, f64)> {
        let (_, partition, sort) = index.names();
        let key = index_key(item, index)?;
        let size = 4 + item.key.pk.len() + item.key.sk.len() + partition.len() + key.0.len() + sort.len() + key.1.len();
        Some((key.0, key.1, steps(size, 1024)))
    }
    INDEXES.into_iter().flat_map(move |index| {
        let before = old.and_then(|item| entry(item, index));
        let after = new.and_then(|item| entry(item, index));
        let stays = before.zip(after).is_some_and(|(one, other)| (one.0, one.1) == (other.0, other.1));
        let changed = [before, after].into_iter().flatten().filter(move |_| !stays);
        changed.map(move |(partition, _, units)| (index, partition, units))
    })
}

/// Units that the indexes take for it.
pub fn indexes(old: Option<&Item>, new: Option<&Item>) -> f64 {
    entries(old, new).map(|(_, _, units)| units).sum()
}
