//! Planted faults: mistakes a protocol like this is built against, made by a wrapper between the engine and its ports. The
//! simulation has to find each of them. The engine itself has no hook for any of this.

mod extras;
mod plant;
mod ports;
mod sweeps;

pub use plant::Plant;

use keelway_domain::cause::Cause;
use keelway_engine::item::{Attr, Item, Key};
use keelway_engine::ports::{Condition, Page, PortError, Store, Transacted, Write, Written};
use keelway_engine::sequences::{Address, Body, Delivery, Message};
use keelway_world::queue::Received;
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

/// Ports with a mistake, or none.
pub struct Planted {
    inner: Worker,
    plant: Option<Plant>,
    seen: Arc<Mutex<Seen>>,
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

/// A record that says it was made by another message.
fn remade(item: Item, by: u64) -> Item {
    let Some(mut json) = item.text("j").and_then(|text| serde_json::from_str::<serde_json::Value>(text).ok()) else { return item };
    json["m"] = by.into();
    item.with("j", json.to_string())
}

/// A message as a cause of its own, also where its copies are the same cause: the mistakes take copies for different messages.
fn by_itself(delivery: &Delivery) -> u64 {
    let text = match &delivery.body {
        Body::Event(event) => event.to_bytes(),
        Body::Own(own) => own.to_body(),
        Body::Invalid { text, .. } => text.clone(),
    };
    Cause::of(text.as_bytes(), delivery.sent).id
}

impl Planted {
    /// Around these ports.
    pub fn new(inner: Worker, plant: Option<Plant>, seen: Arc<Mutex<Seen>>) -> Self {
        Self { inner, plant, seen, state: Mutex::default() }
    }
    /// A message begins; `None`: something else does.
    pub fn begin(&self, received: Option<&Received>) {
        let delivery: Option<Delivery> = received.and_then(Received::delivery);
        let cause = delivery.as_ref().map_or(0, by_itself);
        let (mut message, mut outside) = (None, false);
        match delivery.map(|delivery| (delivery.sent, delivery.body)) {
            Some((sent, Body::Own(own))) => {
                self.note_handed_in(&own, sent);
                message = Some(own);
            }
            Some((sent, Body::Event(event))) => {
                outside = true;
                self.seen().sent.entry(event.id).or_default().insert(sent.0);
            }
            _ => {}
        }
        let mut state = self.state();
        let older = std::mem::take(&mut state.older);
        *state = State { message, outside, cause, older, reads: state.reads, ..State::default() };
    }
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

    fn read(&self, item: Item) -> Item {
        self.note_revision(&item);
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
            Some(Plant::ZombieFreesLane) if is_execution(&item.key) => {
                let id = item.key.sk.trim_start_matches("X#").to_owned();
                self.state().asks.entry(id).or_insert(item.number("q").unwrap_or(0));
                item
            }
            Some(Plant::MadeByAnybody) if item.key.sk.starts_with("T#") => remade(item, self.state().cause),
            Some(Plant::MakerForgotten) if item.key.sk.starts_with("T#") => remade(item, 0),
            Some(Plant::OldWindows) => self.outdated(item),
            _ => self.swept(item),
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
            (Some(Plant::AcceptedWhenHandled), Write::Put(item, _)) if is_execution(&item.key) && item.number("cl") == Some(1) => {
                drop(item.attrs.insert("ac".into(), Attr::N(self.inner.core().now.0)));
            }
            (Some(Plant::FollowUpsByOwnTime), Write::Put(item, _)) if is_execution(&item.key) => {
                let own = item.number("bo");
                item.attrs.extend(own.map(|at| ("ac".into(), Attr::N(at))));
            }
            (Some(Plant::ContextOverwritten), Write::Put(item, condition))
                if item.key.pk.starts_with("C#") && item.key.sk == "!" =>
            {
                *condition = Condition::Always;
            }
            (Some(Plant::HeldKept), Write::Update { key, set, remove, .. }) if is_execution(key) && set.contains_key("en") => {
                remove.retain(|name| name != "hd");
            }
            (Some(Plant::ScheduleUnconditional), Write::Update { key, condition, .. }) if extras::is_schedule(key) => {
                *condition = Condition::Always;
            }
            _ => {}
        }
        write
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
