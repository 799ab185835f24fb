//! The ports of webhooks, and planted faults: mistakes that this engine is built against. The simulation has to find each of them.

use super::yard::{Shared, lock};
use keelway_domain::ids::hash64;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::item::{Attrs, Item, Key};
use keelway_engine::keys::MAIN;
use keelway_engine::ports::{
    Bus, BusEntry, Clock, Condition, Leftover, Page, PortError, Query, Queue, Store, Transacted, Write, Written,
};
use keelway_engine::webhooks::{Address, keys};
use keelway_world::queue::Received;
use keelway_world::worker::Worker;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The mistakes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Plant {
    /// The subscriptions are read once.
    ListKept,
    /// An attempt does not see that its subscription is disabled.
    StopIgnored,
    /// A delivery is committed without a condition.
    CommitUnconditional,
    /// No wake-up is scheduled.
    WakeLost,
    /// A receiver that answers 410 is not disabled.
    GoneForgotten,
    /// The answer to a task has an id that follows from the message.
    AnsweredByMessage,
    /// What a receiver answers is kept as it is.
    SecretTold,
    /// A success clears a failure that was noted after it.
    OldSuccessCounts,
    /// A subscription that is resumed stays one that fails.
    ResumeKeepsFailing,
    /// A delivery begins though its subscription was disabled meanwhile.
    DisabledBegins,
}

impl Plant {
    /// All of them.
    pub const ALL: [Plant; 10] = [
        Plant::ListKept,
        Plant::StopIgnored,
        Plant::CommitUnconditional,
        Plant::WakeLost,
        Plant::GoneForgotten,
        Plant::AnsweredByMessage,
        Plant::SecretTold,
        Plant::OldSuccessCounts,
        Plant::ResumeKeepsFailing,
        Plant::DisabledBegins,
    ];
}

/// What the wrapper knows.
#[derive(Debug, Default)]
struct State {
    /// When items were read while the message at hand was handled, counted in requests.
    read: HashMap<Key, u64>,
    /// The message at hand.
    cause: u64,
    /// What the list of subscriptions was first known by.
    list: Option<Item>,
}

/// Ports with a mistake, or none.
#[derive(Debug, Clone)]
pub struct Planted {
    /// The ports.
    pub inner: Worker,
    /// The mistake.
    pub plant: Option<Plant>,
    /// The receivers, and what must never happen.
    yard: Shared,
    state: Arc<Mutex<State>>,
}

fn is_delivery(key: &Key) -> bool {
    key.pk.starts_with("WD#") && key.sk == MAIN
}

impl Planted {
    /// Around these ports.
    pub fn new(inner: Worker, plant: Option<Plant>, yard: Shared) -> Self {
        Self { inner, plant, yard, state: Arc::default() }
    }

    /// A message begins; `None`: something else does.
    pub fn begin(&self, received: Option<&Received>) {
        let mut state = self.state();
        state.read.clear();
        state.cause = received.map_or(0, |received| hash64(&[format!("{:?}{}", received.parcel, received.sent.0).as_bytes()]));
    }

    /// When the message at hand read an item last, counted in requests.
    pub fn read_at(&self, key: &Key) -> u64 {
        self.state().read.get(key).copied().unwrap_or(0)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn bend(&self, write: &Write) -> Write {
        let mut write = write.clone();
        match &mut write {
            Write::Update { key, condition, .. } if self.plant == Some(Plant::CommitUnconditional) && is_delivery(key) => {
                *condition = Condition::Always;
            }
            Write::Update { key, condition, remove, .. } if key.pk == keys::SUBSCRIPTIONS => match self.plant {
                Some(Plant::OldSuccessCounts) if remove[..] == ["fa"] => {
                    *condition = Condition::Match { equal: Attrs::from([("f".into(), 1i64.into())]), absent: vec![] };
                }
                Some(Plant::ResumeKeepsFailing) if remove.iter().any(|name| name == "off") => remove.retain(|name| name != "fa"),
                _ => {}
            },
            _ => {}
        }
        write
    }

    /// Nobody who knows that a subscription takes nothing begins a delivery to it.
    fn inspect(&self, write: &Write) {
        let Write::Put(item, Condition::Absent) = write else { return };
        let (Some(namespace), Some(name)) = (item.text("ns"), item.text("na")) else { return };
        if !is_delivery(&item.key) {
            return;
        }
        let of = Address { namespace: namespace.to_owned(), name: name.to_owned() };
        let read = self.read_at(&keys::subscription(&of));
        let mut yard = lock(&self.yard);
        if yard.stopped.get(&of).is_some_and(|at| *at < read) {
            yard.wrong = Some(format!("{of} takes nothing any more, and a delivery to it begins: {}", item.key));
        }
    }

    /// The same answer as if each message made another one.
    fn reanswered(&self, entry: &BusEntry) -> BusEntry {
        let Ok(mut event) = serde_json::from_str::<serde_json::Value>(&entry.detail) else { return entry.clone() };
        if !entry.detail_type.ends_with(".finished") {
            return entry.clone();
        }
        event["id"] = format!("answer-{}", self.state().cause).into();
        BusEntry { detail: keelway_domain::json::canonical(&event), ..entry.clone() }
    }
}

impl Store for Planted {
    async fn get(&self, key: &Key) -> Result<Option<Item>, PortError> {
        let mut item = self.inner.get(key).await?;
        let now = self.inner.core().request_count();
        let mut state = self.state();
        state.read.insert(key.clone(), now);
        match self.plant {
            Some(Plant::StopIgnored) if key.pk == keys::SUBSCRIPTIONS => {
                if let Some(item) = &mut item {
                    item.attrs.remove("off");
                }
            }
            Some(Plant::ListKept) if *key == keys::changed() && item.is_some() => {
                item = Some(state.list.get_or_insert_with(|| item.clone().unwrap_or_else(|| Item::new(key.clone()))).clone());
            }
            _ => {}
        }
        Ok(item)
    }
    async fn get_batch(&self, keys: &[Key]) -> Result<(Vec<Item>, Vec<Key>), PortError> {
        let (mut items, left) = self.inner.get_batch(keys).await?;
        let now = self.inner.core().request_count();
        self.state().read.extend(keys.iter().filter(|key| !left.contains(key)).map(|key| (key.clone(), now)));
        if self.plant == Some(Plant::DisabledBegins) {
            items.iter_mut().filter(|item| item.key.pk == keys::SUBSCRIPTIONS).for_each(|item| drop(item.attrs.remove("off")));
        }
        Ok((items, left))
    }
    async fn query(&self, query: &Query) -> Result<Page, PortError> {
        self.inner.query(query).await
    }
    async fn put_batch(&self, puts: &[Item], deletes: &[Key]) -> Result<Leftover, PortError> {
        self.inner.put_batch(puts, deletes).await
    }
    async fn write(&self, write: &Write) -> Result<Written, PortError> {
        let disables = matches!(write, Write::Update { key, set, .. } if key.pk == keys::SUBSCRIPTIONS && set.contains_key("off"));
        if disables && self.plant == Some(Plant::GoneForgotten) {
            return Ok(Written::Done);
        }
        self.inspect(write);
        self.inner.write(&self.bend(write)).await
    }
    async fn transact(&self, writes: &[Write]) -> Result<Transacted, PortError> {
        self.inner.transact(&writes.iter().map(|write| self.bend(write)).collect::<Vec<_>>()).await
    }
}

impl Bus for Planted {
    async fn publish(&self, entries: &[BusEntry]) -> Result<Vec<Option<String>>, PortError> {
        if self.plant != Some(Plant::AnsweredByMessage) {
            return self.inner.publish(entries).await;
        }
        self.inner.publish(&entries.iter().map(|entry| self.reanswered(entry)).collect::<Vec<_>>()).await
    }
}

impl Queue for Planted {
    async fn send(&self, engine: &str, bodies: &[String]) -> Result<Vec<Option<String>>, PortError> {
        self.inner.send(engine, bodies).await
    }
    async fn send_at(&self, engine: &str, name: &str, body: &str, at: Timestamp) -> Result<(), PortError> {
        if self.plant == Some(Plant::WakeLost) && at > self.now() {
            return Ok(());
        }
        self.inner.send_at(engine, name, body, at).await
    }
}

impl Clock for Planted {
    fn now(&self) -> Timestamp {
        self.inner.now()
    }
    async fn pause(&self, length: Span) {
        self.inner.pause(length).await;
    }
}
