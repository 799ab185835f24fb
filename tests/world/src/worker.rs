//! A worker's view of the world: the ports, with a mistake or none.
//!
//! All workers have this one type, and so each engine is compiled once for all tests of a crate, whatever mistakes are planted.

use crate::bend::{Bend, By, Left};
use crate::plain::Plain;
use crate::queue::Received;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::item::{Item, Key};
use keelway_engine::ports::{
    Bus, BusEntry, Clock, Condition, Consistency, Leftover, Page, PortError, Query, Queue, Store, Transacted, Write, Written,
};
use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

/// The ports of one worker.
#[derive(Clone)]
pub struct Worker {
    plain: Plain,
    bend: Option<Arc<dyn Bend>>,
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.plain.fmt(f)
    }
}

impl From<Plain> for Worker {
    fn from(plain: Plain) -> Self {
        Self { plain, bend: None }
    }
}

/// What is not a request of an engine: nothing is bent there.
impl Deref for Worker {
    type Target = Plain;

    fn deref(&self) -> &Plain {
        &self.plain
    }
}

/// Of each request, whether it failed: those that are not made have not.
fn in_place(made: &[bool], answers: Vec<Option<String>>) -> Vec<Option<String>> {
    let mut answers = answers.into_iter();
    made.iter().map(|made| if *made { answers.next().flatten() } else { None }).collect()
}

/// An item under the key that was asked for.
fn seen(bend: &dyn Bend, asked: &Key, mut item: Item, by: By) -> Option<Item> {
    if item.key != *asked {
        item.key = asked.clone();
    }
    bend.read(item, by)
}

impl Worker {
    /// The same ports with this mistake.
    pub fn bent(&self, bend: Arc<dyn Bend>) -> Self {
        Self { plain: self.plain.clone(), bend: Some(bend) }
    }

    /// Work begins: a message, or (`None`) something else.
    pub fn begin(&self, received: Option<&Received>) {
        if let Some(bend) = &self.bend {
            bend.begin(received);
        }
    }

    /// The parts of a transaction, one after the other.
    async fn split(&self, writes: &[Write]) -> Result<Transacted, PortError> {
        for (place, write) in writes.iter().enumerate() {
            let written = self.plain.write(write).await?;
            if place == 0 && written != Written::Done {
                return Ok(Transacted::Cancelled(vec![false; writes.len()]));
            }
        }
        Ok(Transacted::Done)
    }

    /// A transaction of those writes that are made.
    async fn commit(&self, bend: &dyn Bend, all: &[Write]) -> Result<Transacted, PortError> {
        let bent: Vec<Option<Write>> = all.iter().map(|write| bend.write(write.clone())).collect();
        let made: Vec<bool> = bent.iter().map(Option::is_some).collect();
        let writes: Vec<Write> = bent.into_iter().flatten().collect();
        let answer = match () {
            () if writes.is_empty() => Transacted::Done,
            () if bend.splits(&writes) => self.split(&writes).await?,
            () => self.plain.transact(&writes).await?,
        };
        Ok(match answer {
            Transacted::Done => {
                bend.done(&writes);
                Transacted::Done
            }
            Transacted::Cancelled(failed) => {
                let mut failed = failed.into_iter();
                Transacted::Cancelled(made.iter().map(|made| *made && failed.next().unwrap_or_default()).collect())
            }
        })
    }
}

impl Store for Worker {
    async fn get(&self, key: &Key) -> Result<Option<Item>, PortError> {
        let Some(bend) = &self.bend else { return self.plain.get(key).await };
        let instead = bend.instead(key);
        let item = self.plain.get(instead.as_ref().unwrap_or(key)).await?;
        bend.answered(key);
        Ok(item.and_then(|item| seen(&**bend, key, item, By::Key)))
    }
    async fn get_batch(&self, keys: &[Key], consistency: Consistency) -> Result<(Vec<Item>, Vec<Key>), PortError> {
        let Some(bend) = &self.bend else { return self.plain.get_batch(keys, consistency).await };
        let moved: Vec<(Key, &Key)> = keys.iter().filter_map(|key| Some((bend.instead(key)?, key))).collect();
        let real = |key: &Key| moved.iter().find(|(_, asked)| *asked == key).map_or(key, |(real, _)| real).clone();
        let asked = |key: &Key| moved.iter().find(|(real, _)| real == key).map_or(key, |(_, asked)| asked).clone();
        let (items, left) = match moved.is_empty() {
            true => self.plain.get_batch(keys, consistency).await?,
            false => self.plain.get_batch(&keys.iter().map(real).collect::<Vec<_>>(), consistency).await?,
        };
        let left: Vec<Key> = left.iter().map(asked).collect();
        keys.iter().filter(|key| !left.contains(key)).for_each(|key| bend.answered(key));
        let items = items.into_iter().filter_map(|item| seen(&**bend, &asked(&item.key), item, By::Batch)).collect();
        Ok((items, if bend.ignores(Left::Keys) { vec![] } else { left }))
    }
    async fn query(&self, query: &Query) -> Result<Page, PortError> {
        let Some(bend) = &self.bend else { return self.plain.query(query).await };
        let page = self.plain.query(query).await?;
        bend.queried(query);
        if let Some(item) = bend.late() {
            self.plain.write(&Write::Put(item, Condition::Always)).await?;
        }
        Ok(bend.page(query, page))
    }
    async fn put_batch(&self, puts: &[Item], deletes: &[Key]) -> Result<Leftover, PortError> {
        let Some(bend) = &self.bend else { return self.plain.put_batch(puts, deletes).await };
        if !bend.is_mistaken() {
            let left = self.plain.put_batch(puts, deletes).await;
            bend.acted();
            return left;
        }
        for entry in bend.early(puts) {
            self.plain.publish(std::slice::from_ref(&entry)).await?;
        }
        let (mut kept, mut gone) = (vec![], vec![]);
        let puts = puts.iter().map(|item| Write::Put(item.clone(), Condition::Always));
        let deletes = deletes.iter().map(|key| Write::Delete(key.clone(), Condition::Always));
        for write in puts.chain(deletes).filter_map(|write| bend.write(write)) {
            match write {
                Write::Put(item, _) => kept.push(item),
                other => gone.push(other.key().clone()),
            }
        }
        if kept.is_empty() && gone.is_empty() {
            return Ok(Leftover::default());
        }
        let left = self.plain.put_batch(&kept, &gone).await;
        bend.acted();
        if bend.ignores(Left::Writes) { left.map(|_| Leftover::default()) } else { left }
    }
    async fn write(&self, write: &Write) -> Result<Written, PortError> {
        let Some(bend) = &self.bend else { return self.plain.write(write).await };
        bend.attempted(write);
        let write = if bend.is_mistaken() { bend.write(write.clone()).map(Cow::Owned) } else { Some(Cow::Borrowed(write)) };
        let Some(write) = write else { return Ok(Written::Done) };
        let written = self.plain.write(&write).await;
        bend.acted();
        if written == Ok(Written::Done) {
            bend.done(std::slice::from_ref(&*write));
        }
        written
    }
    async fn transact(&self, writes: &[Write]) -> Result<Transacted, PortError> {
        let Some(bend) = &self.bend else { return self.plain.transact(writes).await };
        writes.iter().for_each(|write| bend.attempted(write));
        let done = if bend.is_mistaken() { self.commit(&**bend, writes).await } else { self.plain.transact(writes).await };
        bend.acted();
        done
    }
}

impl Bus for Worker {
    async fn publish(&self, entries: &[BusEntry]) -> Result<Vec<Option<String>>, PortError> {
        let Some(bend) = &self.bend else { return self.plain.publish(entries).await };
        if !bend.is_mistaken() {
            let answers = self.plain.publish(entries).await;
            bend.acted();
            return answers;
        }
        let bent: Vec<Option<BusEntry>> = entries.iter().map(|entry| bend.publish(entry.clone())).collect();
        let made: Vec<bool> = bent.iter().map(Option::is_some).collect();
        let told: Vec<BusEntry> = bent.into_iter().flatten().collect();
        let answers = if told.is_empty() { Ok(vec![]) } else { self.plain.publish(&told).await };
        bend.acted();
        let ignored = bend.ignores(Left::Entries);
        answers.map(|answers| if ignored { vec![None; made.len()] } else { in_place(&made, answers) })
    }
}

impl Queue for Worker {
    async fn send(&self, engine: &str, bodies: &[String]) -> Result<Vec<Option<String>>, PortError> {
        let Some(bend) = &self.bend else { return self.plain.send(engine, bodies).await };
        if !bend.is_mistaken() {
            return self.plain.send(engine, bodies).await;
        }
        let bent: Vec<Option<String>> = bodies.iter().map(|body| bend.send(body)).collect();
        let made: Vec<bool> = bent.iter().map(Option::is_some).collect();
        let sent: Vec<String> = bent.into_iter().flatten().collect();
        let answers = if sent.is_empty() { vec![] } else { self.plain.send(engine, &sent).await? };
        Ok(in_place(&made, answers))
    }
    async fn send_at(&self, engine: &str, name: &str, body: &str, at: Timestamp) -> Result<(), PortError> {
        let Some(bend) = &self.bend else { return self.plain.send_at(engine, name, body, at).await };
        if bend.send_at(body, at) { self.plain.send_at(engine, name, body, at).await } else { Ok(()) }
    }
}

impl Clock for Worker {
    fn now(&self) -> Timestamp {
        self.plain.now()
    }
    async fn pause(&self, length: Span) {
        self.plain.pause(length).await;
    }
}
