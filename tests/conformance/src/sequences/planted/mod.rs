//! Planted faults of sequences: mistakes a protocol like this is built against. The simulation has to find each of them.

mod bend;
mod extras;
mod plant;
mod rollout;
mod sweeps;

pub use plant::Plant;
pub use rollout::Rollout;

use crate::bent::Bent;
use keelway_domain::cause::Cause;
use keelway_engine::item::{Attr, Item, Key};
use keelway_engine::ports::{Page, Write};
use keelway_engine::protocol::record;
use keelway_engine::sequences::{Address, Body, Incoming, Message};
use keelway_world::worker::Worker;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};

/// What all workers' wrappers see, mistaken or not; for invariants that need more than the table.
#[derive(Default)]
pub struct Seen {
    /// Who gave a lane away in a version of its lock: when it had looked at the queue, counted in requests.
    pub looks: HashMap<(String, i64), u64>,
    /// When messages with these events were sent, by event id.
    pub sent: HashMap<String, BTreeSet<i64>>,
    /// Whether shipyards change, so that `judged` is kept.
    pub judges: bool,
    /// The revisions in force for those who wrote a version of an execution, or tried to.
    pub judged: HashMap<(Key, i64), BTreeSet<String>>,
    /// When those who wrote a version of a schedule looked at its runs, counted in requests; the first of them.
    pub runs: HashMap<(Key, i64), u64>,
    /// The messages of retries and of schedules' triggers.
    pub handed_in: BTreeSet<String>,
    /// The retries that people were promised.
    pub promised: Vec<Address>,
}

/// What the wrapper knows of the message at hand.
#[derive(Default)]
struct State {
    message: Option<Message>,
    /// It was put on the bus by somebody else.
    outside: bool,
    /// The message as a cause of its own.
    cause: u64,
    /// The worker runs the earlier version.
    earlier: bool,
    /// An answer was put into a record.
    answered: bool,
    /// It is a tick of the sweep.
    sweeps: bool,
    /// When each lane was last looked at.
    looked: BTreeMap<String, u64>,
    /// The requests of executions as they were read.
    asks: HashMap<String, i64>,
    committed: bool,
    /// What it has begun.
    begun: BTreeSet<Key>,
    /// A queue entry held back.
    entry: Option<Item>,
    /// The lane as first seen in this message.
    lanes: HashMap<String, Page>,
    /// Executions as seen before, for reads without consistency; kept over messages.
    older: HashMap<Key, Item>,
    reads: u64,
    /// The revision in force as it was read.
    revision: Option<String>,
    /// When the runs of a schedule were looked at first.
    runs: Option<u64>,
}

/// A mistake, or none, and what is noted of the requests.
pub struct Mistake {
    inner: Worker,
    plant: Option<Plant>,
    seen: Arc<Mutex<Seen>>,
    rollout: Option<Arc<Rollout>>,
    state: Mutex<State>,
}

/// Ports with a mistake, or none.
pub type Planted = Bent<Mistake>;

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

/// A record that says it was made by another message.
fn remade(item: Item, by: u64) -> Item {
    let Some(mut json) = record::text(&item).and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok()) else {
        return item;
    };
    json["m"] = by.into();
    item.with("j", json.to_string())
}

/// A message as a cause of its own, also where its copies are the same cause: the mistakes take copies for different messages.
fn by_itself(delivery: &Incoming) -> u64 {
    let text = match &delivery.body {
        Body::Event(event) => event.to_bytes(),
        Body::Own(own) => own.to_body(),
        Body::Invalid { text, .. } => text.clone(),
    };
    Cause::of(text.as_bytes(), delivery.sent).id
}

impl Planted {
    /// Around these ports. With a `rollout`, each message may meet the earlier version.
    pub fn new(inner: Worker, plant: Option<Plant>, (seen, rollout): (Arc<Mutex<Seen>>, Option<Arc<Rollout>>)) -> Self {
        Self(Mistake { inner, plant, seen, rollout, state: Mutex::default() })
    }
}

impl Mistake {
    /// Whether the message at hand has changed an execution or a schedule.
    pub fn committed(&self) -> bool {
        self.state().committed
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
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

    /// Notes when whoever gives a lane away looked at its queue.
    fn note_lock(&self, write: &Write) {
        let Write::Update { key, set, .. } = write else { return };
        if !is_lock(key) || !set.contains_key("h") {
            return;
        }
        if let (Some(Attr::N(version)), Some(looked)) = (set.get("v"), self.state().looked.get(&key.pk).copied()) {
            let mut seen = self.seen();
            let first = seen.looks.entry((key.pk.clone(), *version)).or_insert(looked);
            *first = looked.min(*first);
        }
    }

    /// The lane as a mistaken engine sees it.
    fn mistaken_lane(&self, query_partition: &str, mut page: Page) -> Page {
        let lock = page.items.iter().position(|item| is_lock(&item.key));
        let holder = lock.and_then(|place| page.items[place].text("h").map(str::to_owned));
        match self.plant {
            Some(Plant::FreeLaneTaken) if holder.is_none() && self.state().outside && self.settles() => {
                page.items.retain(|item| is_lock(&item.key));
            }
            Some(Plant::ZombieFreesLane) => {
                let ask = holder.and_then(|id| self.state().asks.get(&id).copied());
                if let (Some(place), Some(ask), true) = (lock, ask, self.committed()) {
                    drop(page.items[place].attrs.insert("q".into(), Attr::N(ask)));
                }
            }
            Some(Plant::HeadCached) => {
                let version = |page: &Page| page.items.iter().find(|item| is_lock(&item.key)).map(Item::version);
                let mut state = self.state();
                let seen = state.lanes.entry(query_partition.to_owned()).or_insert_with(|| page.clone());
                if version(seen) != version(&page) {
                    *seen = page.clone();
                }
                return seen.clone();
            }
            _ => {}
        }
        page
    }

    fn note_commit(&self, writes: &[Write]) {
        if writes.iter().any(|write| is_execution(write.key()) || extras::is_schedule(write.key())) {
            self.state().committed = true;
        }
        let begun = writes.iter().filter(|write| matches!(write, Write::Put(..)) && is_execution(write.key()));
        self.state().begun.extend(begun.map(|write| write.key().clone()));
    }
}
