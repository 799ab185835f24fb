//! Planted faults: mistakes a protocol like this is built against, made by a wrapper between the engine and its ports. The simulation
//! has to find each of them. The engine itself has no hook for any of this.

use keelway_domain::time::{Span, Timestamp};
use keelway_engine::item::{Attr, Item, Key};
use keelway_engine::ports::{
    Bus, BusEntry, Clock, Condition, Leftover, Page, PortError, Query, Queue, Store, Transacted, Write, Written,
};
use keelway_engine::sequences::{Body, Message};
use keelway_world::worker::Worker;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

/// The mistakes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Plant {
    /// The lane is driven before the queue entry is written.
    LaneBeforeEntry,
    /// An end and its follow-up on the same lane are two writes.
    FollowUpSplit,
    /// A start on a free lane does not depend on the context's flags.
    CheckStripped,
    /// A granted execution starts without looking at its context.
    ContextNotRead,
    /// A duplicate is acknowledged and nothing settled.
    DuplicateSilent,
    /// Every request for the lane has the same number.
    AskNumberConstant,
    /// The head of the queue is the one read before the holder was seen to leave.
    HeadCached,
    /// Settling does not send the wake-up again.
    WakeNotResent,
    /// A wake-up that comes early is dropped.
    EarlyWakeDropped,
    /// A follow-up counts as caused after an abort that covers its cause.
    AbortNotInherited,
    /// Nobody looks again after a pause was obeyed.
    PauseNotRechecked,
    /// The execution is read without consistency.
    StaleExecution,
    /// Executions leave no tombstone.
    NoTombstone,
    /// A message is acknowledged after the commit, before what it owes is done.
    AcknowledgeAfterCommit,
    /// The lock is written without a condition.
    LockUnconditional,
    /// Event ids do not follow from content: a publication that is repeated has another time.
    TimeOfPublication,
}

impl Plant {
    /// All of them.
    pub const ALL: [Plant; 16] = [
        Plant::LaneBeforeEntry,
        Plant::FollowUpSplit,
        Plant::CheckStripped,
        Plant::ContextNotRead,
        Plant::DuplicateSilent,
        Plant::AskNumberConstant,
        Plant::HeadCached,
        Plant::WakeNotResent,
        Plant::EarlyWakeDropped,
        Plant::AbortNotInherited,
        Plant::PauseNotRechecked,
        Plant::StaleExecution,
        Plant::NoTombstone,
        Plant::AcknowledgeAfterCommit,
        Plant::LockUnconditional,
        Plant::TimeOfPublication,
    ];
}

/// What the wrapper knows of the message at hand.
#[derive(Default)]
struct State {
    message: Option<Message>,
    committed: bool,
    /// A queue entry held back.
    entry: Option<Item>,
    /// The lane as first seen in this message.
    lanes: HashMap<String, Page>,
    /// Executions as seen before, for reads without consistency; kept over messages.
    older: HashMap<Key, Item>,
    reads: u64,
}

/// Ports with a mistake, or none.
pub struct Planted {
    inner: Worker,
    plant: Option<Plant>,
    state: Mutex<State>,
}

fn is_execution(key: &Key) -> bool {
    key.pk.starts_with("C#") && key.sk.starts_with("X#")
}

fn is_entry(key: &Key) -> bool {
    key.pk.starts_with("K#") && key.sk.starts_with("Q#")
}

fn is_lock(key: &Key) -> bool {
    key.pk.starts_with("K#") && key.sk == "!"
}

/// The key of an entry, with the number of the request made constant.
fn first_ask(key: &Key) -> Key {
    let (stem, _) = key.sk.rsplit_once('#').unwrap_or((&key.sk, ""));
    Key::new(key.pk.as_str(), format!("{stem}#000000"))
}

impl Planted {
    /// Around these ports.
    pub fn new(inner: Worker, plant: Option<Plant>) -> Self {
        Self { inner, plant, state: Mutex::default() }
    }
    /// A message begins; `None`: something else does.
    pub fn begin(&self, body: Option<&Body>) {
        let message = match body {
            Some(Body::Own(message)) => Some(message.clone()),
            _ => None,
        };
        let mut state = self.state();
        let older = std::mem::take(&mut state.older);
        *state = State { message, older, reads: state.reads, ..State::default() };
    }
    /// Whether the message at hand has changed an execution.
    pub fn committed(&self) -> bool {
        self.state().committed
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
    fn has(&self, plant: Plant) -> bool {
        self.plant == Some(plant)
    }
    /// Settling, not following up on one's own commit.
    fn settles(&self) -> bool {
        !self.committed()
    }

    fn read(&self, item: Item) -> Item {
        match self.plant {
            Some(Plant::StaleExecution) if is_execution(&item.key) => {
                let mut state = self.state();
                state.reads += 1;
                let old = state.older.insert(item.key.clone(), item.clone());
                old.filter(|_| state.reads.is_multiple_of(5)).unwrap_or(item)
            }
            Some(Plant::AbortNotInherited)
                if is_execution(&item.key) && matches!(self.state().message, Some(Message::Follow { .. })) =>
            {
                let context = Key::new(item.key.pk.as_str(), "!");
                let epoch = self.inner.core().table.peek(&context).and_then(|item| item.number("ep")).unwrap_or(0);
                item.with("ep", epoch)
            }
            _ => item,
        }
    }

    fn bend(&self, write: &Write) -> Write {
        let mut write = write.clone();
        match (self.plant, &mut write) {
            (Some(Plant::AskNumberConstant), Write::Put(item, _)) if is_entry(&item.key) => item.key = first_ask(&item.key),
            (Some(Plant::AskNumberConstant), Write::Update { key, set, .. }) if is_execution(key) || is_lock(key) => {
                if let Some(number) = set.get_mut("q") {
                    *number = Attr::N(0);
                }
            }
            (Some(Plant::LockUnconditional), Write::Update { key, condition, .. }) if is_lock(key) => {
                *condition = Condition::Always
            }
            _ => {}
        }
        write
    }

    fn note_commit(&self, writes: &[Write]) {
        if writes.iter().any(|write| is_execution(write.key())) {
            self.state().committed = true;
        }
    }

    /// The parts of a transaction that a mistaken engine would make.
    async fn split(&self, writes: Vec<Write>) -> Result<Transacted, PortError> {
        let (first, rest) = writes.split_at(1);
        if self.inner.write(&first[0]).await? != Written::Done {
            return Ok(Transacted::Cancelled(vec![false; writes.len()]));
        }
        for write in rest {
            drop(self.inner.write(write).await?);
        }
        Ok(Transacted::Done)
    }
}

impl Store for Planted {
    async fn get(&self, key: &Key) -> Result<Option<Item>, PortError> {
        Ok(self.inner.get(key).await?.map(|item| self.read(item)))
    }

    async fn get_batch(&self, keys: &[Key]) -> Result<(Vec<Item>, Vec<Key>), PortError> {
        let (mut items, left) = self.inner.get_batch(keys).await?;
        if self.has(Plant::ContextNotRead) && matches!(self.state().message, Some(Message::Granted { .. })) {
            items.retain(|item| !(item.key.pk.starts_with("C#") && item.key.sk == "!"));
        }
        Ok((items.into_iter().map(|item| self.read(item)).collect(), left))
    }

    async fn query(&self, query: &Query) -> Result<Page, PortError> {
        let page = self.inner.query(query).await?;
        let held = self.state().entry.take();
        if let Some(entry) = held {
            self.inner.write(&Write::Put(entry, Condition::Always)).await.map(drop)?;
        }
        if !self.has(Plant::HeadCached) || !query.partition.starts_with("K#") {
            return Ok(page);
        }
        let version = |page: &Page| page.items.iter().find(|item| is_lock(&item.key)).map(Item::version);
        let mut state = self.state();
        let seen = state.lanes.entry(query.partition.clone()).or_insert_with(|| page.clone());
        if version(seen) != version(&page) {
            *seen = page.clone();
        }
        Ok(seen.clone())
    }

    async fn put_batch(&self, puts: &[Item], deletes: &[Key]) -> Result<Leftover, PortError> {
        if self.plant.is_none() {
            return self.inner.put_batch(puts, deletes).await;
        }
        let mut puts = puts.to_vec();
        let mut deletes = deletes.to_vec();
        match self.plant {
            Some(Plant::LaneBeforeEntry) => {
                if let Some(place) = puts.iter().position(|item| is_entry(&item.key)) {
                    let entry = puts.remove(place);
                    self.state().entry = Some(entry);
                }
            }
            Some(Plant::NoTombstone) => puts.retain(|item| !item.key.pk.starts_with("Z#")),
            Some(Plant::AskNumberConstant) => {
                puts.iter_mut().filter(|item| is_entry(&item.key)).for_each(|item| item.key = first_ask(&item.key));
                deletes.iter_mut().filter(|key| is_entry(key)).for_each(|key| *key = first_ask(key));
            }
            _ => {}
        }
        if puts.is_empty() && deletes.is_empty() {
            return Ok(Leftover::default());
        }
        self.inner.put_batch(&puts, &deletes).await
    }

    async fn write(&self, write: &Write) -> Result<Written, PortError> {
        if self.plant.is_none() {
            return self.inner.write(write).await;
        }
        let write = self.bend(write);
        let written = self.inner.write(&write).await?;
        if written == Written::Done {
            self.note_commit(&[write]);
        }
        Ok(written)
    }

    async fn transact(&self, writes: &[Write]) -> Result<Transacted, PortError> {
        if self.plant.is_none() {
            return self.inner.transact(writes).await;
        }
        let mut writes: Vec<Write> = writes.iter().map(|write| self.bend(write)).collect();
        if self.has(Plant::CheckStripped) {
            writes.retain(|write| !matches!(write, Write::Check(..)));
        }
        let ends = matches!(writes.first(), Some(Write::Update { key, .. }) if is_execution(key));
        let done = if self.has(Plant::FollowUpSplit) && ends {
            self.split(writes.clone()).await?
        } else {
            self.inner.transact(&writes).await?
        };
        if done == Transacted::Done {
            self.note_commit(&writes);
        }
        Ok(done)
    }
}

impl Bus for Planted {
    async fn publish(&self, entries: &[BusEntry]) -> Result<Vec<Option<String>>, PortError> {
        if self.has(Plant::DuplicateSilent) && self.settles() {
            return Ok(vec![None; entries.len()]);
        }
        if self.has(Plant::TimeOfPublication) {
            let now = format!("\"time\":\"{}\"", self.now().rfc3339());
            let retimed = |entry: &BusEntry| {
                let at = entry.detail.rfind("\"time\":\"").unwrap_or(0);
                let end = at + now.len();
                let detail = format!("{}{now}{}", &entry.detail[..at], entry.detail.get(end..).unwrap_or_default());
                BusEntry { detail, ..entry.clone() }
            };
            let entries: Vec<BusEntry> = entries.iter().map(retimed).collect();
            return self.inner.publish(&entries).await;
        }
        self.inner.publish(entries).await
    }
}

impl Queue for Planted {
    async fn send(&self, engine: &str, bodies: &[String]) -> Result<Vec<Option<String>>, PortError> {
        let done = Ok(vec![None; bodies.len()]);
        let conforms = matches!(self.state().message, Some(Message::Conform { .. }));
        match self.plant {
            Some(Plant::DuplicateSilent) if self.settles() && self.state().message.is_none() => done,
            Some(Plant::PauseNotRechecked) if !conforms && bodies.iter().all(|body| body.contains("\"obey\"")) => done,
            Some(Plant::AskNumberConstant) => {
                let zero = |body: &String| match serde_json::from_str(body) {
                    Ok(Message::Granted { to, payload, .. }) => Message::Granted { to, ask: 0, payload }.to_body(),
                    _ => body.clone(),
                };
                self.inner.send(engine, &bodies.iter().map(zero).collect::<Vec<_>>()).await
            }
            _ => self.inner.send(engine, bodies).await,
        }
    }

    async fn send_at(&self, engine: &str, name: &str, body: &str, at: Timestamp) -> Result<(), PortError> {
        let message = self.state().message.clone();
        match (self.plant, message) {
            (Some(Plant::EarlyWakeDropped), Some(Message::Wake { at: own, .. })) if self.settles() && own == at => Ok(()),
            (Some(Plant::WakeNotResent), other)
                if self.settles() && !matches!(other, Some(Message::Wake { at: own, .. }) if own == at) =>
            {
                Ok(())
            }
            _ => self.inner.send_at(engine, name, body, at).await,
        }
    }
}

impl Clock for Planted {
    fn now(&self) -> Timestamp {
        self.inner.now() + Span(0)
    }
}
