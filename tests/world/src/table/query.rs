//! Pages of a partition, of the table and of its indexes.

use super::limits::PAGE_BYTES;
use super::{Entry, Table, limits, paid};
use crate::units::{self, INDEXES};
use keelway_engine::item::{Item, Key};
use keelway_engine::ports::{Cursor, Index, Page, PortError, Query};
use std::ops::Bound;

/// Items of one page: it ends with the last item asked for, or with the one that makes it 1 MB or more.
#[derive(Default)]
struct Filling {
    items: Vec<Item>,
    bytes: usize,
    /// It ended before the partition did, as far as DynamoDB can tell.
    full: bool,
}

impl Filling {
    /// Takes items as long as there is room.
    fn take(&mut self, items: impl Iterator<Item = Item>, limit: u32) {
        for item in items {
            self.bytes += item.size();
            self.items.push(item);
            self.full = self.items.len() >= limit as usize || self.bytes >= PAGE_BYTES;
            if self.full {
                return;
            }
        }
    }
}

impl Table {
    /// `Query`.
    pub fn query(&mut self, query: &Query) -> Result<Page, PortError> {
        // Bounds that nothing can lie between are refused by DynamoDB; the port on DynamoDB does not ask, and finds nothing.
        if query.to.as_ref().is_some_and(|to| to.is_empty() || *to < query.from) {
            return Ok(Page::default());
        }
        limits::query(query)?;
        if !self.admits_read(query.index, &query.partition) {
            return paid::throttled("Query");
        }
        match query.index {
            None => Ok(self.query_table(query)),
            Some(index) => Ok(self.query_index(query, index)),
        }
    }

    fn query_table(&mut self, query: &Query) -> Page {
        let key = |sk: &str| Key::new(query.partition.as_str(), sk);
        let after = query.after.as_ref().map(|cursor| cursor.key.clone());
        let (mut low, mut high) = (
            Bound::Included(key(&query.from)),
            match &query.to {
                Some(to) => Bound::Included(key(to)),
                None => Bound::Excluded(Key::new(format!("{}\0", query.partition), "")),
            },
        );
        let end = if query.descending { &mut high } else { &mut low };
        *end = after.map_or(end.clone(), Bound::Excluded);
        let mut page = Filling::default();
        let found = self.items.range((low, high)).map(|(_, item)| (**item).clone());
        if query.descending {
            page.take(found.rev(), query.limit)
        } else {
            page.take(found, query.limit)
        }
        self.pay_read(None, &query.partition, units::read(page.bytes));
        let next = page.items.last().filter(|_| page.full).map(|item| Cursor { key: item.key.clone(), index_sort: None });
        Page { items: page.items, next }
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
        let mut page = Filling::default();
        page.take(rows.iter().map(|row| item(row)), query.limit);
        let units = units::read(page.bytes) / 2.0;
        let cursor = |item: &Item| Cursor { key: item.key.clone(), index_sort: item.text(sort).map(str::to_owned) };
        let next = page.items.last().filter(|_| page.full).map(cursor);
        self.pay_read(Some(index), &query.partition, units);
        Page { items: page.items, next }
    }
}
