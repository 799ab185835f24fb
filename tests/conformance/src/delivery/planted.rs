//! Planted faults between the engines: a decision of one of them that goes wrong because of what it believes of another one. A
//! wrapper has the decision read, or write, what a mistaken one would; or whoever stands for the rules of the bus, and for what
//! carries promotions out, decides it wrongly. The engines themselves have no hook for any of this.

use super::hand::Shared;
use crate::bent::{Bend, Bent, By, changed, json};
use crate::plants::plants;
use keelway_domain::event::{EventType, Kind};
use keelway_domain::ids::RecordId;
use keelway_engine::deployments::{self, keys::HEADS};
use keelway_engine::item::{Item, Key};
use keelway_engine::keys::MAIN;
use keelway_engine::ports::{BusEntry, Write};
use keelway_engine::promotions;
use keelway_engine::sequences::keys::open_tasks;
use keelway_world::queue::{Parcel, Received};
use keelway_world::worker::Worker;
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};

plants! {
    /// A task is carried out whether or not its sequence waits for it.
    TaskNotAwaited,
    /// A task that its sequence gives up is carried out to its end.
    GivenUpIgnored,
    /// The task of a version that failed has passed.
    FailurePasses,
    /// A task for a config that does not exist is not answered.
    NobodySilent,
    /// A config is ready for pipelines before its version is complete.
    ReadyTooEarly,
    /// A fact counts, however old it is.
    OlderFactCounts,
    /// A revision is promoted from a target that is not ready.
    UnreadyPromoted,
    /// Each attempt of a promotion triggers a sequence of its own.
    AttemptTriggersAnew,
    /// A sequence that failed has carried its promotion out.
    EndTakenForSuccess,
    /// The sequence of a promotion that is given up goes on.
    SequenceNotAborted,
    /// The end of a sequence tells its promotion nothing.
    EndNotFollowed,
    /// A rollback that fails is rolled back.
    RollbackUndone,
    /// A revision moves on whatever its evaluation has come to.
    FailedEvaluationPasses,
    /// Of two readings of a cluster, the one that is told last counts.
    LateReadingCounts,
    /// A cluster that does not answer is taken for what it was.
    AwayUntold,
    /// The second pipeline at a cluster hears nothing of it.
    SecondPipelineUnheard,
    /// A tag points to the image that is told last.
    LatePushCounts,
    /// Who follows the newest of several tags hears nothing of a push.
    AliasUnheard,
    /// What carries a task out is replaced by what its tag pointed to before.
    OldPushReplaces,
    /// An image that loses one of its tags is gone.
    TagTakenForImage,
}

/// A mistake in an engine, or none.
#[derive(Clone)]
pub struct Mistake {
    /// The ports.
    pub inner: Worker,
    /// Which one.
    pub plant: Option<Plant>,
    /// What lies outside.
    pub yard: Shared,
    /// The engine whose ports these are.
    of: String,
    /// The task whose trigger is at hand.
    task: Arc<Mutex<Option<(RecordId, String)>>>,
}

/// The ports of one engine, with a mistake or none.
pub type Planted = Bent<Mistake>;

fn is_execution(key: &Key) -> bool {
    key.pk.starts_with("C#") && key.sk.starts_with("X#")
}

fn is_fact(key: &Key) -> bool {
    key.pk.starts_with("O#") && key.sk == MAIN
}

fn is_head(key: &Key) -> bool {
    key.pk.starts_with("DH#") && key.sk.starts_with(HEADS)
}

/// What is known of an image.
fn is_image(key: &Key) -> bool {
    key.pk.starts_with("DH#") && key.sk.starts_with("X#")
}

/// The image as if the last deletion of one of its tags had been its own.
fn all_deleted(image: &mut Value) {
    let tags = image["t"].as_object().into_iter().flat_map(|tags| tags.values());
    let last = tags.filter(|tag| tag[1] == false).filter_map(|tag| tag[0].as_i64()).max();
    if let Some(last) = last {
        image["x"] = last.into();
    }
}

fn is_config(key: &Key) -> bool {
    key.pk.starts_with("D#") && key.sk == MAIN
}

impl Planted {
    /// Around these ports.
    pub fn new(inner: &Worker, plant: Option<Plant>, yard: Shared) -> Self {
        Self::with(inner, Mistake { inner: inner.clone(), plant, yard, of: String::new(), task: Arc::default() })
    }

    /// The same for an engine.
    pub fn of(&self, engine: &str) -> Self {
        Self::with(&self.inner, Mistake { of: engine.to_owned(), ..Mistake::clone(self) })
    }
}

impl Mistake {
    /// Whether the mistake is this one, of this engine.
    fn has(&self, plant: Plant, engine: &str) -> bool {
        self.plant == Some(plant) && self.of == engine
    }

    /// An execution that waits for the task whose trigger is at hand.
    fn waiting(&self, mut item: Item) -> Item {
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some((record, task)) = task.filter(|(record, _)| item.key.sk == format!("X#{}", record.subject)) else { return item };
        ["en", "et"].iter().for_each(|name| drop(item.attrs.remove(*name)));
        let project = item.key.pk.split('#').nth(1).unwrap_or_default().to_owned();
        let open = open_tasks(&super::project(&project), &task);
        item.with("th", format!("{}#{}", record.number, record.hash)).with("gp1", open)
    }
}

impl Bend for Mistake {
    fn is_mistaken(&self) -> bool {
        self.plant.is_some()
    }

    fn begin(&self, received: Option<&Received>) {
        if self.plant.is_none() {
            return;
        }
        let task = received.and_then(|received| match &received.parcel {
            Parcel::Event(event) => match EventType::parse(&event.ty) {
                EventType::Task(task, Kind::Triggered) => Some((RecordId::from_uuid(&event.id)?, task.to_string())),
                _ => None,
            },
            Parcel::Own(_) | Parcel::Invalid { .. } => None,
        });
        *self.task.lock().unwrap_or_else(PoisonError::into_inner) = task;
    }

    fn read(&self, item: Item, by: By) -> Option<Item> {
        let by_key = by != By::Query;
        Some(match () {
            // What is known of a target is read with who asks for it.
            () if self.has(Plant::OlderFactCounts, promotions::NAME) && is_fact(&item.key) && !by_key => item.with("n", 0i64),
            () if self.has(Plant::TaskNotAwaited, deployments::NAME) && is_execution(&item.key) && by_key => self.waiting(item),
            () if self.has(Plant::UnreadyPromoted, promotions::NAME) && is_fact(&item.key) && by_key => {
                changed(item, "j", |fact| fact["h"] = true.into())
            }
            () if self.has(Plant::RollbackUndone, deployments::NAME) && is_config(&item.key) => {
                changed(item, "la", |last| drop(last.as_object_mut().map(|last| last.remove("rb"))))
            }
            () if self.has(Plant::LateReadingCounts, promotions::OBSERVER) && is_fact(&item.key) && !by_key => item.with("n", 0i64),
            // A tag is read with others by whoever follows it.
            () if self.has(Plant::LatePushCounts, deployments::NAME) && is_head(&item.key) && by == By::Key => {
                changed(item, "j", |head| head["t"] = 0.into())
            }
            () if self.has(Plant::OldPushReplaces, deployments::NAME) && is_config(&item.key) => {
                changed(item, "la", |last| last["t"] = 0.into())
            }
            () => item,
        })
    }

    fn write(&self, write: Write) -> Option<Write> {
        let lost = match &write {
            Write::Check(key, _) => is_execution(key) && self.has(Plant::TaskNotAwaited, deployments::NAME),
            Write::Put(fact, _) if is_fact(&fact.key) && self.has(Plant::AwayUntold, promotions::OBSERVER) => {
                json(fact.text("j"))["e"].is_string()
            }
            _ => false,
        };
        let write = match write {
            Write::Put(item, condition) if is_image(&item.key) && self.has(Plant::TagTakenForImage, deployments::NAME) => {
                Write::Put(changed(item, "j", all_deleted), condition)
            }
            write => write,
        };
        (!lost).then_some(write)
    }

    fn send(&self, body: &str) -> Option<String> {
        let message = json(Some(body));
        let lost = self.has(Plant::SecondPipelineUnheard, promotions::OBSERVER) && message["to"]["n"] == "mirror"
            || self.has(Plant::AliasUnheard, deployments::NAME)
                && message["because"].as_str().is_some_and(|because| because.starts_with("shop/images:stable"));
        (!lost).then(|| body.to_owned())
    }

    fn publish(&self, entry: BusEntry) -> Option<BusEntry> {
        let Some(plant) = self.plant.filter(|_| self.of == deployments::NAME) else { return Some(entry) };
        let mut event = json(Some(&entry.detail));
        let answers = ["deployment", "rollback"].iter().any(|task| entry.detail_type == format!("sh.keptn.event.{task}.finished"));
        let message = event["data"]["message"].as_str().unwrap_or_default();
        match plant {
            Plant::NobodySilent if message.starts_with("there is no deployment config") => return None,
            Plant::FailurePasses if answers => event["data"]["result"] = "pass".into(),
            Plant::ReadyTooEarly if entry.detail_type == promotions::observations::OBSERVED => {
                let fact = &mut event["data"]["facts"][0];
                fact["ready"] = fact["revision"].is_string().into();
            }
            _ => return Some(entry),
        }
        Some(BusEntry { detail: event.to_string(), ..entry })
    }
}
