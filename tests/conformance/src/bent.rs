//! Ports with a mistake: what a mistaken engine would read, write, publish and send, made by a wrapper between the engine and its
//! ports. The engines themselves have no hook for any of this. What implements [`Bend`] says only what it changes; every other
//! request is made as it is.

use keelway_domain::time::{Span, Timestamp};
use keelway_engine::item::{Attrs, Item, Key};
use keelway_engine::ports::{
    Bus, BusEntry, Clock, Condition, Leftover, Page, PortError, Query, Queue, Store, Transacted, Write, Written,
};
use keelway_world::queue::Received;
use keelway_world::worker::Worker;
use serde_json::Value;
use std::borrow::Cow;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

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
    /// The ports.
    fn inner(&self) -> &Worker;
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

/// Ports with this mistake, or none.
#[derive(Debug, Clone)]
pub struct Bent<B>(pub B);

impl<B> Deref for Bent<B> {
    type Target = B;

    fn deref(&self) -> &B {
        &self.0
    }
}

/// JSON that an item has as text; null if it has none.
pub fn json(text: Option<&str>) -> Value {
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// An item whose JSON in an attribute is changed, if it has any.
pub fn changed(item: Item, name: &'static str, change: impl FnOnce(&mut Value)) -> Item {
    let mut value = json(item.text(name));
    if value.is_null() {
        return item;
    }
    change(&mut value);
    item.with(name, value.to_string())
}

/// What piles up in an item.
pub type Pile = Arc<Mutex<Vec<u64>>>;

/// A commit leaves something in an item that nobody takes away.
pub fn pile_up(pile: &Pile, set: &mut Attrs) {
    let mut pile = pile.lock().unwrap_or_else(PoisonError::into_inner);
    let next = pile.len() as u64;
    pile.extend(next..next + 15);
    set.insert("pile".into(), format!("{pile:?}").into());
}

/// An item without an attribute.
pub fn without(mut item: Item, name: &str) -> Item {
    item.attrs.remove(name);
    item
}

/// A write that is made whatever is there.
pub fn unconditional(mut write: Write) -> Write {
    match &mut write {
        Write::Put(_, condition) | Write::Update { condition, .. } | Write::Add { condition, .. } => *condition = Condition::Always,
        Write::Delete(_, condition) | Write::Check(_, condition) => *condition = Condition::Always,
    }
    write
}

/// Of each request, whether it failed: those that are not made have not.
fn in_place(made: &[bool], answers: Vec<Option<String>>) -> Vec<Option<String>> {
    let mut answers = answers.into_iter();
    made.iter().map(|made| if *made { answers.next().flatten() } else { None }).collect()
}

impl<B: Bend> Bent<B> {
    /// Work begins: a message, or (`None`) something else.
    pub fn begin(&self, received: Option<&Received>) {
        self.0.begin(received);
    }

    /// An item under the key that was asked for.
    fn seen(&self, asked: &Key, mut item: Item, by: By) -> Option<Item> {
        if item.key != *asked {
            item.key = asked.clone();
        }
        self.0.read(item, by)
    }

    /// The parts of a transaction, one after the other.
    async fn split(&self, writes: &[Write]) -> Result<Transacted, PortError> {
        for (place, write) in writes.iter().enumerate() {
            let written = self.0.inner().write(write).await?;
            if place == 0 && written != Written::Done {
                return Ok(Transacted::Cancelled(vec![false; writes.len()]));
            }
        }
        Ok(Transacted::Done)
    }

    /// A transaction of those writes that are made.
    async fn commit(&self, all: &[Write]) -> Result<Transacted, PortError> {
        let bent: Vec<Option<Write>> = all.iter().map(|write| self.0.write(write.clone())).collect();
        let made: Vec<bool> = bent.iter().map(Option::is_some).collect();
        let writes: Vec<Write> = bent.into_iter().flatten().collect();
        let answer = match () {
            () if writes.is_empty() => Transacted::Done,
            () if self.0.splits(&writes) => self.split(&writes).await?,
            () => self.0.inner().transact(&writes).await?,
        };
        Ok(match answer {
            Transacted::Done => {
                self.0.done(&writes);
                Transacted::Done
            }
            Transacted::Cancelled(failed) => {
                let mut failed = failed.into_iter();
                Transacted::Cancelled(made.iter().map(|made| *made && failed.next().unwrap_or_default()).collect())
            }
        })
    }
}

impl<B: Bend> Store for Bent<B> {
    async fn get(&self, key: &Key) -> Result<Option<Item>, PortError> {
        let instead = self.0.instead(key);
        let item = self.0.inner().get(instead.as_ref().unwrap_or(key)).await?;
        self.0.answered(key);
        Ok(item.and_then(|item| self.seen(key, item, By::Key)))
    }
    async fn get_batch(&self, keys: &[Key]) -> Result<(Vec<Item>, Vec<Key>), PortError> {
        let moved: Vec<(Key, &Key)> = keys.iter().filter_map(|key| Some((self.0.instead(key)?, key))).collect();
        let real = |key: &Key| moved.iter().find(|(_, asked)| *asked == key).map_or(key, |(real, _)| real).clone();
        let asked = |key: &Key| moved.iter().find(|(real, _)| real == key).map_or(key, |(_, asked)| asked).clone();
        let (items, left) = match moved.is_empty() {
            true => self.0.inner().get_batch(keys).await?,
            false => self.0.inner().get_batch(&keys.iter().map(real).collect::<Vec<_>>()).await?,
        };
        let left: Vec<Key> = left.iter().map(asked).collect();
        keys.iter().filter(|key| !left.contains(key)).for_each(|key| self.0.answered(key));
        let items = items.into_iter().filter_map(|item| self.seen(&asked(&item.key), item, By::Batch)).collect();
        Ok((items, if self.0.ignores(Left::Keys) { vec![] } else { left }))
    }
    async fn query(&self, query: &Query) -> Result<Page, PortError> {
        let page = self.0.inner().query(query).await?;
        self.0.queried(query);
        if let Some(item) = self.0.late() {
            self.0.inner().write(&Write::Put(item, Condition::Always)).await?;
        }
        Ok(self.0.page(query, page))
    }
    async fn put_batch(&self, puts: &[Item], deletes: &[Key]) -> Result<Leftover, PortError> {
        if !self.0.is_mistaken() {
            let left = self.0.inner().put_batch(puts, deletes).await;
            self.0.acted();
            return left;
        }
        for entry in self.0.early(puts) {
            self.0.inner().publish(std::slice::from_ref(&entry)).await?;
        }
        let (mut kept, mut gone) = (vec![], vec![]);
        let puts = puts.iter().map(|item| Write::Put(item.clone(), Condition::Always));
        let deletes = deletes.iter().map(|key| Write::Delete(key.clone(), Condition::Always));
        for write in puts.chain(deletes).filter_map(|write| self.0.write(write)) {
            match write {
                Write::Put(item, _) => kept.push(item),
                other => gone.push(other.key().clone()),
            }
        }
        if kept.is_empty() && gone.is_empty() {
            return Ok(Leftover::default());
        }
        let left = self.0.inner().put_batch(&kept, &gone).await;
        self.0.acted();
        if self.0.ignores(Left::Writes) { left.map(|_| Leftover::default()) } else { left }
    }
    async fn write(&self, write: &Write) -> Result<Written, PortError> {
        self.0.attempted(write);
        let write = if self.0.is_mistaken() { self.0.write(write.clone()).map(Cow::Owned) } else { Some(Cow::Borrowed(write)) };
        let Some(write) = write else { return Ok(Written::Done) };
        let written = self.0.inner().write(&write).await;
        self.0.acted();
        if written == Ok(Written::Done) {
            self.0.done(std::slice::from_ref(&*write));
        }
        written
    }
    async fn transact(&self, writes: &[Write]) -> Result<Transacted, PortError> {
        writes.iter().for_each(|write| self.0.attempted(write));
        let done = if self.0.is_mistaken() { self.commit(writes).await } else { self.0.inner().transact(writes).await };
        self.0.acted();
        done
    }
}

impl<B: Bend> Bus for Bent<B> {
    async fn publish(&self, entries: &[BusEntry]) -> Result<Vec<Option<String>>, PortError> {
        if !self.0.is_mistaken() {
            let answers = self.0.inner().publish(entries).await;
            self.0.acted();
            return answers;
        }
        let bent: Vec<Option<BusEntry>> = entries.iter().map(|entry| self.0.publish(entry.clone())).collect();
        let made: Vec<bool> = bent.iter().map(Option::is_some).collect();
        let told: Vec<BusEntry> = bent.into_iter().flatten().collect();
        let answers = if told.is_empty() { Ok(vec![]) } else { self.0.inner().publish(&told).await };
        self.0.acted();
        let ignored = self.0.ignores(Left::Entries);
        answers.map(|answers| if ignored { vec![None; made.len()] } else { in_place(&made, answers) })
    }
}

impl<B: Bend> Queue for Bent<B> {
    async fn send(&self, engine: &str, bodies: &[String]) -> Result<Vec<Option<String>>, PortError> {
        if !self.0.is_mistaken() {
            return self.0.inner().send(engine, bodies).await;
        }
        let bent: Vec<Option<String>> = bodies.iter().map(|body| self.0.send(body)).collect();
        let made: Vec<bool> = bent.iter().map(Option::is_some).collect();
        let sent: Vec<String> = bent.into_iter().flatten().collect();
        let answers = if sent.is_empty() { vec![] } else { self.0.inner().send(engine, &sent).await? };
        Ok(in_place(&made, answers))
    }
    async fn send_at(&self, engine: &str, name: &str, body: &str, at: Timestamp) -> Result<(), PortError> {
        if self.0.send_at(body, at) { self.0.inner().send_at(engine, name, body, at).await } else { Ok(()) }
    }
}

impl<B: Bend> Clock for Bent<B> {
    fn now(&self) -> Timestamp {
        self.0.inner().now()
    }
    async fn pause(&self, length: Span) {
        self.0.inner().pause(length).await;
    }
}
