//! The ports of evaluations, and planted faults: mistakes that this engine is built against. The simulation or a case has to find
//! each of them.

use super::plan::PROJECT;
use crate::bent::{Bend, Bent, By, Pile, changed, pile_up, unconditional};
use crate::plants::plants;
use keelway_domain::ids::hash64;
use keelway_domain::names::ProjectName;
use keelway_domain::shipyard::EVALUATION;
use keelway_domain::time::Timestamp;
use keelway_engine::item::{Item, Key};
use keelway_engine::keys::MAIN;
use keelway_engine::ports::{BusEntry, Clock, Write};
use keelway_engine::sequences::keys::open_tasks;
use keelway_world::evaluations::{EvaluationsWorld, Shared, engine};
use keelway_world::queue::Received;
use keelway_world::worker::Worker;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

plants! {
    /// A service's evaluations are committed without a condition.
    CommitUnconditional,
    /// No wake-up is scheduled.
    WakeLost,
    /// The order to ask a source is not sent.
    OrderLost,
    /// What has ended is not written down before the commit.
    EndUnrecorded,
    /// What has ended has one item, whoever writes it: also a worker that comes too late.
    EndOverwritten,
    /// The end of an evaluation has an id that follows from the message.
    EndedByMessage,
    /// The beginning of an evaluation is not told.
    BeginningSilent,
    /// That an evaluation is void is not seen.
    VoidUnseen,
    /// The revision of an evaluation is forgotten when it goes on.
    RevisionForgotten,
    /// Earlier evaluations are not found.
    HistoryUnseen,
    /// A sequence is taken for waiting, whatever it does.
    WaitingAssumed,
    /// A sequence is never taken for waiting.
    WaitingDenied,
    /// Which source was chosen is not seen.
    ChoiceUnseen,
    /// That a source is to be asked later is not seen: it is asked with every message.
    DueIgnored,
    /// A pipeline is not told what it asked for.
    PipelineNotTold,
    /// A pipeline that asks once more is not heard.
    AskedAgainUnheard,
    /// A commit leaves something behind that nobody takes away.
    PiledUp,
}

/// When workers read the evaluations of services last, counted in requests: by worker and key, for the message at hand.
pub type Reads = Arc<Mutex<HashMap<(String, Key), u64>>>;

/// What the mistake remembers.
pub struct Mistake {
    inner: Worker,
    plant: Option<Plant>,
    reads: Reads,
    cause: Mutex<u64>,
    pile: Pile,
}

/// Ports with a mistake, or none.
pub type Planted = Bent<Mistake>;

/// A worker, as what it asks of sources is noted.
pub fn name(worker: &Worker) -> String {
    format!("{worker:?}")
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_service(key: &Key) -> bool {
    key.pk.starts_with("EV#") && key.sk == MAIN
}

/// The key without the content.
fn shared_end(key: &Key) -> Option<Key> {
    let trigger = key.sk.strip_prefix("F#").filter(|_| key.pk.starts_with("EV#"))?.split('#').next()?;
    Some(Key::new(key.pk.clone(), format!("F#{trigger}#")))
}

impl Planted {
    /// Around these ports.
    pub fn new(inner: &Worker, plant: Option<Plant>, reads: Reads) -> Self {
        let pile = Pile::default();
        Self::with(inner, Mistake { inner: inner.clone(), plant, reads, cause: Mutex::new(0), pile })
    }
}

/// An execution that waits for a task.
fn waiting(item: Item) -> Item {
    let open = ProjectName::new(PROJECT).map(|project| open_tasks(&project, EVALUATION)).unwrap_or_default();
    item.with("gp1", open).with("gs1", "-").with("tt", 1i64)
}

/// Each entry of a list, changed.
fn each(item: Item, attribute: &'static str, change: impl Fn(&mut Value)) -> Item {
    changed(item, attribute, |all| all.as_array_mut().into_iter().flatten().for_each(&change))
}

impl Bend for Mistake {
    fn is_mistaken(&self) -> bool {
        self.plant.is_some()
    }

    fn begin(&self, received: Option<&Received>) {
        let worker = name(&self.inner);
        lock(&self.reads).retain(|(other, _), _| *other != worker);
        *lock(&self.cause) =
            received.map_or(0, |received| hash64(&[format!("{:?}{}", received.parcel, received.sent.0).as_bytes()]));
    }
    fn answered(&self, key: &Key) {
        if is_service(key) {
            let now = self.inner.core().request_count();
            lock(&self.reads).insert((name(&self.inner), key.clone()), now);
        }
    }

    fn instead(&self, key: &Key) -> Option<Key> {
        shared_end(key).filter(|_| self.plant == Some(Plant::EndOverwritten))
    }
    fn read(&self, item: Item, _: By) -> Option<Item> {
        let (service, execution) = (is_service(&item.key), item.key.sk.starts_with("X#"));
        Some(match self.plant {
            Some(Plant::VoidUnseen) if service => each(item, "pa", |past| past["invalidated"] = false.into()),
            Some(Plant::RevisionForgotten) if service => each(item, "op", |open| open["revision"] = Value::Null),
            Some(Plant::DueIgnored) if service => each(item, "op", |open| {
                if let Some(due) = open["phase"].get_mut("due") {
                    due["at"] = 0.into();
                }
            }),
            Some(Plant::AskedAgainUnheard) if service => each(item, "pa", |past| {
                if let Some(told) = past.get_mut("told") {
                    told["asker"]["time"] = u32::MAX.into();
                }
            }),
            Some(Plant::HistoryUnseen) if item.key.sk.starts_with("F#") => return None,
            Some(Plant::ChoiceUnseen) if item.key.pk.starts_with("EC#") => return None,
            Some(Plant::WaitingAssumed) if execution => waiting(item),
            Some(Plant::WaitingDenied) if execution => return None,
            _ => item,
        })
    }

    fn write(&self, mut write: Write) -> Option<Write> {
        match (self.plant, &mut write) {
            (Some(Plant::PiledUp), Write::Update { key, set, .. }) if is_service(key) => pile_up(&self.pile, set),
            (Some(Plant::CommitUnconditional), Write::Update { key, .. }) if is_service(key) => return Some(unconditional(write)),
            (Some(Plant::EndUnrecorded), Write::Put(item, _)) if shared_end(&item.key).is_some() => return None,
            (Some(Plant::EndOverwritten), Write::Put(item, _)) => {
                if let Some(key) = shared_end(&item.key) {
                    item.key = key;
                }
            }
            _ => {}
        }
        Some(write)
    }

    fn publish(&self, entry: BusEntry) -> Option<BusEntry> {
        match self.plant {
            Some(Plant::BeginningSilent) if entry.detail_type.ends_with("evaluation.started") => None,
            Some(Plant::EndedByMessage) if entry.detail_type.ends_with("evaluation.finished") => {
                let Ok(mut event) = serde_json::from_str::<Value>(&entry.detail) else { return Some(entry) };
                event["id"] = format!("answer-{}", *lock(&self.cause)).into();
                Some(BusEntry { detail: keelway_domain::json::canonical(&event), ..entry })
            }
            _ => Some(entry),
        }
    }
    fn send(&self, body: &str) -> Option<String> {
        let lost = match self.plant {
            Some(Plant::OrderLost) => body.contains("\"measure\""),
            Some(Plant::PipelineNotTold) => body.contains("\"keelway\":\"evaluated\""),
            _ => false,
        };
        (!lost).then(|| body.to_owned())
    }
    fn send_at(&self, _: &str, at: Timestamp) -> bool {
        self.plant != Some(Plant::WakeLost) || at <= self.inner.now()
    }
}

/// A world for cases whose engines make a mistake.
pub fn world(plant: Plant) -> EvaluationsWorld {
    let sources = Shared::default();
    let asked = sources.clone();
    EvaluationsWorld::with(sources, move |worker| {
        engine(Planted::new(&worker, Some(plant), Reads::default()).ports().clone(), &asked)
    })
}
