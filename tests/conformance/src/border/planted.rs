//! Planted faults of the border: a check that is not made. Most are made by a wrapper between the engines and their ports, which
//! has a check read an answer that lets everybody through; the others by whoever stands for the API, or for the rule of the bus, in
//! the simulation.

use super::yard::{Shared, lock};
use super::{OURS, THEIRS, project};
use keelway_domain::border::Act;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::deployments::keys as configs;
use keelway_engine::item::{Attr, Attrs, Item, Key};
use keelway_engine::ports::{Bus, BusEntry, Clock, Leftover, Page, PortError, Query, Queue, Store, Transacted, Write, Written};
use keelway_engine::projects;
use keelway_engine::sequences::history;
use keelway_world::queue::Received;
use keelway_world::worker::Worker;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The mistakes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Plant {
    /// Which config a task deploys, the payload says.
    PayloadNamesConfig,
    /// Nobody asks for the consent `deploy`.
    DeployAssumed,
    /// Every project may use every function.
    FunctionsAllowed,
    /// A vouch stays when a definition changes.
    VouchKept,
    /// Nobody asks for the consent `trigger`.
    TriggerAssumed,
    /// Nobody asks for the consent `tag`.
    TagAssumed,
    /// The namespace in the key of a page is not compared.
    PageKeyTrusted,
    /// Nobody asks for the consent `observe`.
    ObserveAssumed,
    /// Every project may send its clusters' tokens to every server.
    ServersAllowed,
    /// A task's trigger counts, whoever sent it.
    TaskOfAnySource,
    /// What a config runs counts, whoever tells it.
    FactOfAnySource,
    /// The result in a client's trigger counts.
    ResultOfTrigger,
    /// A retry begins behind an approval, whoever asks for it.
    ApprovalForEver,
    /// A provider's subject is taken for the token of that name.
    SubjectTakenForToken,
    /// An executor's registration is anybody's.
    AnybodySpeaks,
    /// Consents are read once.
    ConsentRemembered,
}

impl Plant {
    /// All of them.
    pub const ALL: [Plant; 16] = [
        Plant::PayloadNamesConfig,
        Plant::DeployAssumed,
        Plant::FunctionsAllowed,
        Plant::VouchKept,
        Plant::TriggerAssumed,
        Plant::TagAssumed,
        Plant::PageKeyTrusted,
        Plant::ObserveAssumed,
        Plant::ServersAllowed,
        Plant::TaskOfAnySource,
        Plant::FactOfAnySource,
        Plant::ResultOfTrigger,
        Plant::ApprovalForEver,
        Plant::SubjectTakenForToken,
        Plant::AnybodySpeaks,
        Plant::ConsentRemembered,
    ];

    /// The consent that nobody asks for.
    fn assumed(self) -> Option<Act> {
        match self {
            Plant::DeployAssumed => Some(Act::Deploy),
            Plant::TriggerAssumed => Some(Act::Trigger),
            Plant::TagAssumed => Some(Act::Tag),
            Plant::ObserveAssumed => Some(Act::Observe),
            _ => None,
        }
    }
}

/// Ports with a mistake, or none. They note since when the work is at hand whose request was the last one.
#[derive(Clone)]
pub struct Planted {
    /// The ports.
    pub inner: Worker,
    /// The mistake.
    pub plant: Option<Plant>,
    /// What lies outside.
    pub yard: Shared,
    began: Arc<AtomicU64>,
    remembered: Arc<Mutex<BTreeMap<Key, Item>>>,
}

/// What the payload of an execution begins with that was given by another one, and a mark that it only seems so.
const SEEMING: &str = "T#~";

fn parsed(text: Option<&str>) -> Value {
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// A task's trigger that names the config which the payload of the hostile project names.
fn naming(entry: &BusEntry) -> BusEntry {
    let mut event = parsed(Some(&entry.detail));
    for task in ["deployment", "rollback"] {
        let triggered = event["type"] == format!("sh.keptn.event.{task}.triggered") && event["data"]["project"] == THEIRS;
        if triggered && event["data"][task]["deploymentConfig"].is_null() {
            event["data"][task]["deploymentConfig"] = "team-b:api".into();
            return BusEntry { detail: event.to_string(), ..entry.clone() };
        }
    }
    entry.clone()
}

impl Planted {
    /// Around these ports.
    pub fn new(inner: Worker, plant: Option<Plant>, yard: Shared) -> Self {
        Self { inner, plant, yard, began: Arc::default(), remembered: Arc::default() }
    }

    /// Work begins: a message, or something else.
    pub fn begin(&self, _: Option<&Received>) {
        self.began.store(self.inner.core().request_count(), Ordering::Relaxed);
    }

    /// After how many requests the work at hand began.
    pub fn began(&self) -> u64 {
        self.began.load(Ordering::Relaxed)
    }

    /// Whether it makes this mistake.
    pub fn has(&self, plant: Plant) -> bool {
        self.plant == Some(plant)
    }

    fn acted<T>(&self, result: T) -> T {
        lock(&self.yard).since = self.began();
        result
    }

    fn read(&self, item: Item) -> Item {
        let Some(plant) = self.plant else { return item };
        if item.key == projects::keys::project(&project(OURS)) {
            if plant == Plant::ConsentRemembered {
                let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
                return remembered.entry(item.key.clone()).or_insert(item).clone();
            }
            let Some(act) = plant.assumed() else { return item };
            let mut consents = parsed(item.text("co")).as_array().cloned().unwrap_or_default();
            consents.push(json!({"to": ["*"], "may": [act]}));
            return item.with("co", Value::from(consents).to_string());
        }
        let kind = match plant {
            Plant::FunctionsAllowed => "functions",
            Plant::ServersAllowed => "servers",
            Plant::ResultOfTrigger if item.key.sk.starts_with("X#") => {
                let payload =
                    item.text("pl").filter(|payload| payload.starts_with("E#")).map(|payload| format!("{SEEMING}{payload}"));
                return item.with_some("pl", payload);
            }
            _ => return item,
        };
        if item.key != projects::keys::project(&project(THEIRS)) {
            return item;
        }
        let mut policy = parsed(item.text("po"));
        policy["allows"][kind] = json!([{"name": "*"}]);
        item.with("po", policy.to_string())
    }

    /// What a mistaken engine writes to an item.
    fn bend(&self, key: &Key, attrs: &mut Attrs) {
        match (self.plant, attrs.get("j")) {
            (Some(Plant::VouchKept), Some(Attr::S(text))) if key.pk == configs::definitions(THEIRS) => {
                let old = self.inner.core().table.peek(key).map(|old| parsed(old.text("j")));
                let mut new = parsed(Some(text));
                if old.is_some_and(|old| old["d"]["vouched"] == true) {
                    new["d"]["vouched"] = true.into();
                    attrs.insert("j".into(), new.to_string().into());
                }
            }
            _ => {}
        }
    }

    fn bent(&self, write: &Write) -> Write {
        let mut write = write.clone();
        match &mut write {
            Write::Put(item, _) => self.bend(&item.key, &mut item.attrs),
            Write::Update { key, set, .. } => self.bend(key, set),
            _ => {}
        }
        write
    }
}

/// The key under which the payload really is.
fn real(key: &Key) -> Key {
    Key::new(key.pk.clone(), key.sk.strip_prefix(SEEMING).unwrap_or(&key.sk))
}

/// An item under the key that was asked for: what seems to be another execution's record has a client's trigger for its payload.
fn asked_for(key: &Key, item: Item) -> Item {
    if !key.sk.starts_with(SEEMING) {
        return item;
    }
    let payload = history::decode(&item).map(|event| event.data);
    Item { key: key.clone(), ..item.with("j", json!({"b": payload}).to_string()) }
}

impl Store for Planted {
    async fn get(&self, key: &Key) -> Result<Option<Item>, PortError> {
        Ok(self.inner.get(&real(key)).await?.map(|item| asked_for(key, self.read(item))))
    }
    async fn get_batch(&self, keys: &[Key]) -> Result<(Vec<Item>, Vec<Key>), PortError> {
        let seeming = |found: &Key| keys.iter().find(|key| *key == found || real(key) == *found).unwrap_or(found).clone();
        let (items, left) = self.inner.get_batch(&keys.iter().map(real).collect::<Vec<_>>()).await?;
        let items = items.into_iter().map(|item| asked_for(&seeming(&item.key), self.read(item)));
        Ok((items.collect(), left.iter().map(seeming).collect()))
    }
    async fn query(&self, query: &Query) -> Result<Page, PortError> {
        let mut page = self.inner.query(query).await?;
        page.items = page.items.into_iter().map(|item| self.read(item)).collect();
        Ok(page)
    }
    async fn put_batch(&self, puts: &[Item], deletes: &[Key]) -> Result<Leftover, PortError> {
        let mut puts = puts.to_vec();
        puts.iter_mut().for_each(|item| self.bend(&item.key, &mut item.attrs));
        let result = self.inner.put_batch(&puts, deletes).await;
        self.acted(result)
    }
    async fn write(&self, write: &Write) -> Result<Written, PortError> {
        let result = self.inner.write(&self.bent(write)).await;
        self.acted(result)
    }
    async fn transact(&self, writes: &[Write]) -> Result<Transacted, PortError> {
        let result = self.inner.transact(&writes.iter().map(|write| self.bent(write)).collect::<Vec<_>>()).await;
        self.acted(result)
    }
}

impl Bus for Planted {
    async fn publish(&self, entries: &[BusEntry]) -> Result<Vec<Option<String>>, PortError> {
        let named: Vec<BusEntry> = entries.iter().map(naming).collect();
        let result = self.inner.publish(if self.has(Plant::PayloadNamesConfig) { &named } else { entries }).await;
        self.acted(result)
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
