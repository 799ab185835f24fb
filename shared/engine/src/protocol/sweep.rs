//! The sweep: every few minutes it checks all open work, so that a lost message delays the work by at most that long.
//!
//! Open subjects are in a sparse index, spread over a fixed number of partitions for each engine. So an installation with no open
//! work costs the same few queries however many projects it has. The sweep reads bounded pages, saves its position after each, and
//! only sends messages: the decisions are made when the subjects handle them.

use super::subject::{Engine, Loaded, Subject};
pub use super::tick::{OVERDUE, STUCK, Tick};
use crate::item::{Attr, Attrs, Item, Key, Name};
use crate::keys;
use crate::ports::{Clock, Condition, Cursor, Index, PortError, Query, Store, Write};
use crate::table;
use keelway_domain::time::{Span, Timestamp};
use std::collections::{HashMap, HashSet};

/// Open subjects read at once.
const PAGE: u32 = 100;

/// The result of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    /// Open subjects looked at.
    pub seen: usize,
    /// Messages sent.
    pub sent: usize,
    /// Open subjects that should have gone on [`STUCK`] ago.
    pub stuck: usize,
    /// Whether it has reached the end. The next sweep then starts from the beginning.
    pub finished: bool,
}

impl Swept {
    /// With another page.
    #[must_use]
    pub fn and(self, page: Self) -> Self {
        Self { seen: self.seen + page.seen, sent: self.sent + page.sent, stuck: self.stuck + page.stuck, finished: page.finished }
    }
}

/// Where the next page begins: a shard of the index, and the last entry seen in it.
#[derive(Debug, Clone, PartialEq, Default)]
struct Spot {
    shard: u32,
    after: Option<Cursor>,
}

/// Looks at one page of an engine's open subjects of a kind, from where the previous page ended, and sends a message to each that
/// needs one. A caller with time left calls again, with the same tick, until `finished`.
///
/// # Errors
/// A port fails. Completed work is kept; the next call continues.
pub async fn page<S: Subject>(engine: &impl Engine<S>, tick: &mut Tick) -> Result<Swept, PortError> {
    let store = engine.ports();
    let began = place(store, S::PART).await?;
    let mut at = began.clone();
    tick.now = store.now();
    loop {
        let query = Query::index(Index::ByAge, keys::open_work(S::PART, at.shard), PAGE).after(at.after.take());
        let page = store.query(&query).await?;
        at = match page.next {
            Some(next) => Spot { after: Some(next), ..at },
            None => Spot { shard: at.shard + 1, after: None },
        };
        let finished = at.shard >= keys::SHARDS;
        if finished {
            at = Spot::default();
        }
        if page.items.is_empty() && !finished {
            continue;
        }
        let keys: Vec<Key> = page.items.iter().map(|item| item.key.clone()).collect();
        let (sent, stuck) = look(engine, &keys, tick).await?;
        if at != began {
            remember(store, S::PART, &at).await?;
        }
        return Ok(Swept { seen: keys.len(), sent, stuck, finished });
    }
}

/// How many messages were sent, and how many subjects are stuck.
async fn look<S: Subject>(engine: &impl Engine<S>, keys: &[Key], tick: &mut Tick) -> Result<(usize, usize), PortError> {
    if keys.is_empty() {
        return Ok((0, 0));
    }
    let items = table::read(engine.ports(), keys).await?;
    let mut open: Vec<Loaded<S>> = Vec::new();
    let mut letters = vec![];
    // In the order of the index: oldest first.
    for item in keys.iter().filter_map(|key| items.get(key)) {
        match Loaded::<S>::read(item) {
            Ok(loaded) => {
                letters.extend(loaded.owes.map(|_| loaded.x.wake_up(tick.now)));
                open.extend(Some(loaded).filter(|loaded| !loaded.x.over()));
            }
            // A subject that this code cannot read does not delay the others.
            Err(error) => tracing::error!(item = %item.key, %error, "the sweep passes over an item"),
        }
    }
    prolong(engine, &open, tick.now).await?;
    letters.extend(engine.look(&open, tick).await?);
    table::send_all(engine.ports(), &letters).await?;
    Ok((letters.len(), stuck(&open, tick.now)))
}

/// How many of them should have gone on [`STUCK`] ago; the log names them.
fn stuck<S: Subject>(open: &[Loaded<S>], now: Timestamp) -> usize {
    let stuck = open.iter().filter(|loaded| loaded.x.wake().is_some_and(|wake| wake + STUCK < now));
    stuck.inspect(|loaded| tracing::warn!(item = %loaded.x.key(), "open work does not go on")).count()
}

/// Keeps the items that open subjects need from expiring when a subject is open for longer than the retention.
async fn prolong<S: Subject>(engine: &impl Engine<S>, open: &[Loaded<S>], now: Timestamp) -> Result<(), PortError> {
    let (store, retention) = (engine.ports(), engine.retention());
    let half = Span(retention.0 / 2);
    let old = open.iter().filter(|loaded| now - loaded.x.place().since >= half);
    let keys: HashSet<Key> = old.flat_map(|loaded| loaded.x.keeps()).collect();
    if keys.is_empty() {
        return Ok(());
    }
    let items: HashMap<Key, Item> = table::read(store, &keys.into_iter().collect::<Vec<_>>()).await?;
    let expires_soon = |item: &&Item| item.number("ttl").is_some_and(|ttl| ttl < (now + half).0 / 1000);
    for item in items.values().filter(expires_soon) {
        let ttl = Name::Borrowed("ttl");
        // Only if the item is still as it was read: an item that has expired in the meantime must not be recreated empty.
        let equal = item.attrs.get(&ttl).map(|value| (ttl.clone(), value.clone())).into_iter().collect();
        let condition = Condition::Match { equal, absent: vec![] };
        let set = Attrs::from([(ttl, Attr::N((now + retention).0 / 1000))]);
        let write = Write::Update { key: item.key.clone(), condition, set, remove: vec![], raise: false };
        drop(store.write(&write).await?);
    }
    Ok(())
}

async fn place(store: &impl Store, part: &str) -> Result<Spot, PortError> {
    let item = store.get(&keys::sweep(part)).await?;
    let text = |name: &str| item.as_ref().and_then(|item| item.text(name)).map(str::to_owned);
    let after = text("apk").zip(text("ask")).map(|(pk, sk)| Cursor { key: Key::new(pk, sk), index_sort: text("ags") });
    let shard = item.as_ref().and_then(|item| item.number("n")).and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
    Ok(Spot { shard: shard.min(keys::SHARDS - 1), after })
}

/// Two concurrent sweeps check some subjects twice, which is harmless.
async fn remember(store: &impl Store, part: &str, place: &Spot) -> Result<(), PortError> {
    let after = place.after.as_ref();
    let item = Item::new(keys::sweep(part))
        .with("n", i64::from(place.shard))
        .with_some("apk", after.map(|cursor| cursor.key.pk.as_str()))
        .with_some("ask", after.map(|cursor| cursor.key.sk.as_str()))
        .with_some("ags", after.and_then(|cursor| cursor.index_sort.as_deref()));
    store.write(&Write::Put(item, Condition::Always)).await.map(drop)
}
