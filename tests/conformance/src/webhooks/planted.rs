//! The ports of webhooks, and planted faults: mistakes that this engine is built against. The simulation has to find each of them.

use super::yard::{Shared, lock};
use crate::bent::{Bend, Bent, By, Pile, pile_up, unconditional, without};
use crate::plants::plants;
use keelway_domain::ids::hash64;
use keelway_domain::time::Timestamp;
use keelway_engine::item::{Attrs, Item, Key};
use keelway_engine::keys::MAIN;
use keelway_engine::ports::{BusEntry, Clock, Condition, Write};
use keelway_engine::webhooks::{Address, keys};
use keelway_world::queue::Received;
use keelway_world::worker::Worker;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

plants! {
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
    /// Every commit of a delivery leaves something in it.
    PiledUp,
}

/// What is noted of the message at hand.
#[derive(Debug, Default)]
struct State {
    /// When items were read while the message at hand was handled, counted in requests.
    read: HashMap<Key, u64>,
    /// The message at hand.
    cause: u64,
    /// What the list of subscriptions was first known by.
    list: Option<Item>,
}

/// A mistake, or none.
#[derive(Debug, Clone)]
pub struct Mistake {
    /// The ports.
    pub inner: Worker,
    /// Which one.
    pub plant: Option<Plant>,
    /// The receivers, and what must never happen.
    yard: Shared,
    state: Arc<Mutex<State>>,
    pile: Pile,
}

/// Ports with a mistake, or none.
pub type Planted = Bent<Mistake>;

fn is_delivery(key: &Key) -> bool {
    key.pk.starts_with("WD#") && key.sk == MAIN
}

impl Planted {
    /// Around these ports.
    pub fn new(inner: &Worker, plant: Option<Plant>, yard: Shared) -> Self {
        Self::with(inner, Mistake { inner: inner.clone(), plant, yard, state: Arc::default(), pile: Pile::default() })
    }
}

impl Mistake {
    /// When the message at hand read an item last, counted in requests.
    pub fn read_at(&self, key: &Key) -> u64 {
        self.state().read.get(key).copied().unwrap_or(0)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bend for Mistake {
    fn is_mistaken(&self) -> bool {
        self.plant.is_some()
    }

    fn begin(&self, received: Option<&Received>) {
        let mut state = self.state();
        state.read.clear();
        state.cause = received.map_or(0, |received| hash64(&[format!("{:?}{}", received.parcel, received.sent.0).as_bytes()]));
    }
    fn answered(&self, key: &Key) {
        let now = self.inner.core().request_count();
        self.state().read.insert(key.clone(), now);
    }
    /// Nobody who knows that a subscription takes nothing begins a delivery to it.
    fn attempted(&self, write: &Write) {
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

    fn read(&self, item: Item, by: By) -> Option<Item> {
        let subscription = item.key.pk == keys::SUBSCRIPTIONS;
        Some(match (self.plant, by) {
            (Some(Plant::StopIgnored), By::Key) | (Some(Plant::DisabledBegins), By::Batch) if subscription => without(item, "off"),
            (Some(Plant::ListKept), By::Key) if item.key == keys::changed() => self.state().list.get_or_insert(item).clone(),
            _ => item,
        })
    }

    fn write(&self, mut write: Write) -> Option<Write> {
        match (self.plant, &mut write) {
            (Some(Plant::PiledUp), Write::Update { key, set, .. }) if is_delivery(key) => pile_up(&self.pile, set),
            (Some(Plant::CommitUnconditional), Write::Update { key, .. }) if is_delivery(key) => return Some(unconditional(write)),
            (Some(plant), Write::Update { key, set, condition, remove, .. }) if key.pk == keys::SUBSCRIPTIONS => match plant {
                Plant::GoneForgotten if set.contains_key("off") => return None,
                Plant::OldSuccessCounts if remove[..] == ["fa"] => {
                    *condition = Condition::Match { equal: Attrs::from([("f".into(), 1i64.into())]), absent: vec![] };
                }
                Plant::ResumeKeepsFailing if remove.iter().any(|name| name == "off") => remove.retain(|name| name != "fa"),
                _ => {}
            },
            _ => {}
        }
        Some(write)
    }

    /// The same answer as if each message made another one.
    fn publish(&self, entry: BusEntry) -> Option<BusEntry> {
        if self.plant != Some(Plant::AnsweredByMessage) || !entry.detail_type.ends_with(".finished") {
            return Some(entry);
        }
        let Ok(mut event) = serde_json::from_str::<serde_json::Value>(&entry.detail) else { return Some(entry) };
        event["id"] = format!("answer-{}", self.state().cause).into();
        Some(BusEntry { detail: keelway_domain::json::canonical(&event), ..entry })
    }
    fn send_at(&self, _: &str, at: Timestamp) -> bool {
        self.plant != Some(Plant::WakeLost) || at <= self.inner.now()
    }
}
