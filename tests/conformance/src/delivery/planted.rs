//! Planted faults between the engines: a decision of one of them that goes wrong because of what it believes of another one. A
//! wrapper has the decision read, or write, what a mistaken one would; or whoever stands for the rules of the bus, and for what
//! carries promotions out, decides it wrongly. The engines themselves have no hook for any of this.

use super::hand::Yard;
use keelway_domain::event::{EventType, Kind};
use keelway_domain::ids::RecordId;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::deployments;
use keelway_engine::item::{Attr, Item, Key};
use keelway_engine::keys::MAIN;
use keelway_engine::ports::{Bus, BusEntry, Clock, Leftover, Page, PortError, Query, Queue, Store, Transacted, Write, Written};
use keelway_engine::promotions;
use keelway_world::queue::{Parcel, Received};
use keelway_world::worker::Worker;
use serde_json::Value;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

/// The mistakes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Plant {
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
}

impl Plant {
    /// All of them.
    pub const ALL: [Plant; 12] = [
        Plant::TaskNotAwaited,
        Plant::GivenUpIgnored,
        Plant::FailurePasses,
        Plant::NobodySilent,
        Plant::ReadyTooEarly,
        Plant::OlderFactCounts,
        Plant::UnreadyPromoted,
        Plant::AttemptTriggersAnew,
        Plant::EndTakenForSuccess,
        Plant::SequenceNotAborted,
        Plant::EndNotFollowed,
        Plant::RollbackUndone,
    ];
}

/// The ports of one engine, with a mistake or none.
#[derive(Clone)]
pub struct Planted {
    /// The ports.
    pub inner: Worker,
    /// The mistake.
    pub plant: Option<Plant>,
    /// What lies outside.
    pub yard: Arc<Mutex<Yard>>,
    /// Whose ports these are.
    of: String,
    /// The task whose trigger is at hand.
    task: Arc<Mutex<Option<(RecordId, String)>>>,
}

fn parsed(text: Option<&str>) -> Value {
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

fn is_execution(key: &Key) -> bool {
    key.pk.starts_with("C#") && key.sk.starts_with("X#")
}

fn is_fact(key: &Key) -> bool {
    key.pk.starts_with("O#") && key.sk == MAIN
}

/// An item whose JSON in an attribute is changed.
fn changed(item: Item, name: &'static str, change: impl Fn(&mut Value)) -> Item {
    let mut json = parsed(item.text(name));
    if json.is_null() {
        return item;
    }
    change(&mut json);
    item.with(name, json.to_string())
}

impl Planted {
    /// Around these ports.
    pub fn new(inner: Worker, plant: Option<Plant>, yard: Arc<Mutex<Yard>>) -> Self {
        Self { inner, plant, yard, of: String::new(), task: Arc::default() }
    }

    /// The same for an engine.
    pub fn of(&self, engine: &str) -> Self {
        Self { of: engine.to_owned(), ..self.clone() }
    }

    /// Work begins: a message, or something else.
    pub fn begin(&self, received: Option<&Received>) {
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

    /// Whether the mistake is this one, of this engine.
    fn has(&self, plant: Plant, engine: &str) -> bool {
        self.plant == Some(plant) && self.of == engine
    }

    /// What a mistaken decision reads.
    fn read(&self, item: Item) -> Item {
        if self.has(Plant::TaskNotAwaited, deployments::NAME) && is_execution(&item.key) {
            return self.waiting(item);
        }
        if self.has(Plant::UnreadyPromoted, promotions::NAME) && is_fact(&item.key) {
            return changed(item, "j", |fact| fact["h"] = true.into());
        }
        if self.has(Plant::RollbackUndone, deployments::NAME) && item.key.pk.starts_with("D#") && item.key.sk == MAIN {
            return changed(item, "la", |last| {
                last.as_object_mut().map(|last| last.remove("rb"));
            });
        }
        item
    }

    /// An execution that waits for the task whose trigger is at hand.
    fn waiting(&self, mut item: Item) -> Item {
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some((record, task)) = task.filter(|(record, _)| item.key.sk == format!("X#{}", record.subject)) else { return item };
        ["en", "et"].iter().for_each(|name| drop(item.attrs.remove(*name)));
        let project = item.key.pk.split('#').nth(1).unwrap_or_default().to_owned();
        let open = keelway_engine::sequences::keys::open_tasks(&super::project(&project), &task);
        item.with("th", format!("{}#{}", record.number, record.hash)).with("gp1", open)
    }

    /// What a mistaken decision tells; `None`: nothing.
    fn tells(&self, entry: &BusEntry) -> Option<BusEntry> {
        if self.of != deployments::NAME {
            return Some(entry.clone());
        }
        let Some(plant) = self.plant else { return Some(entry.clone()) };
        let mut event = parsed(Some(&entry.detail));
        let answers = ["deployment", "rollback"].iter().any(|task| entry.detail_type == format!("sh.keptn.event.{task}.finished"));
        let message = event["data"]["message"].as_str().unwrap_or_default();
        match plant {
            Plant::NobodySilent if message.starts_with("there is no deployment config") => return None,
            Plant::FailurePasses if answers => event["data"]["result"] = "pass".into(),
            Plant::ReadyTooEarly if entry.detail_type == promotions::observations::OBSERVED => {
                let fact = &mut event["data"]["facts"][0];
                fact["ready"] = fact["revision"].is_string().into();
            }
            _ => return Some(entry.clone()),
        }
        Some(BusEntry { detail: event.to_string(), ..entry.clone() })
    }
}

impl Store for Planted {
    async fn get(&self, key: &Key) -> Result<Option<Item>, PortError> {
        Ok(self.inner.get(key).await?.map(|item| self.read(item)))
    }
    async fn get_batch(&self, keys: &[Key]) -> Result<(Vec<Item>, Vec<Key>), PortError> {
        let (items, left) = self.inner.get_batch(keys).await?;
        Ok((items.into_iter().map(|item| self.read(item)).collect(), left))
    }
    async fn query(&self, query: &Query) -> Result<Page, PortError> {
        let mut page = self.inner.query(query).await?;
        // What is known of a target is read with who asks for it.
        if self.has(Plant::OlderFactCounts, promotions::NAME) {
            for item in page.items.iter_mut().filter(|item| is_fact(&item.key)) {
                item.attrs.insert("n".into(), Attr::from(0i64));
            }
        }
        Ok(page)
    }
    async fn put_batch(&self, puts: &[Item], deletes: &[Key]) -> Result<Leftover, PortError> {
        self.inner.put_batch(puts, deletes).await
    }
    async fn write(&self, write: &Write) -> Result<Written, PortError> {
        self.inner.write(write).await
    }
    async fn transact(&self, writes: &[Write]) -> Result<Transacted, PortError> {
        if !self.has(Plant::TaskNotAwaited, deployments::NAME) {
            return self.inner.transact(writes).await;
        }
        let kept = writes.iter().filter(|write| !matches!(write, Write::Check(key, _) if is_execution(key)));
        self.inner.transact(&kept.cloned().collect::<Vec<_>>()).await
    }
}

impl Bus for Planted {
    async fn publish(&self, entries: &[BusEntry]) -> Result<Vec<Option<String>>, PortError> {
        if self.plant.is_none() {
            return self.inner.publish(entries).await;
        }
        let told: Vec<BusEntry> = entries.iter().filter_map(|entry| self.tells(entry)).collect();
        match told.len() == entries.len() {
            true => self.inner.publish(&told).await,
            // What is not told counts as told.
            false if told.is_empty() => Ok(vec![None; entries.len()]),
            false => {
                let failed = self.inner.publish(&told).await?.into_iter().flatten().next();
                Ok(vec![failed; entries.len()])
            }
        }
    }
}

impl Queue for Planted {
    fn send(&self, engine: &str, bodies: &[String]) -> impl Future<Output = Result<Vec<Option<String>>, PortError>> + Send {
        self.inner.send(engine, bodies)
    }
    fn send_at(&self, engine: &str, name: &str, body: &str, at: Timestamp) -> impl Future<Output = Result<(), PortError>> + Send {
        self.inner.send_at(engine, name, body, at)
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
