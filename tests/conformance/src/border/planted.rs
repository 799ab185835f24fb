//! Planted faults of the border: a check that is not made. Most are made by a wrapper between the engines and their ports, which
//! has a check read an answer that lets everybody through; the others by whoever stands for the API, or for the rule of the bus, in
//! the simulation.

use super::yard::{Shared, lock};
use super::{OURS, THEIRS, project};
use crate::bent::{Bend, Bent, By, json as parsed};
use crate::plants::plants;
use keelway_domain::border::Act;
use keelway_engine::deployments::keys as configs;
use keelway_engine::item::{Attr, Attrs, Item, Key};
use keelway_engine::ports::{BusEntry, Write};
use keelway_engine::projects;
use keelway_engine::sequences::history;
use keelway_world::queue::Received;
use keelway_world::worker::Worker;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

plants! {
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

/// A mistake, or none. It notes since when the work is at hand whose request was the last one.
#[derive(Clone)]
pub struct Mistake {
    /// The ports.
    pub inner: Worker,
    /// Which one.
    pub plant: Option<Plant>,
    /// What lies outside.
    pub yard: Shared,
    began: Arc<AtomicU64>,
    remembered: Arc<Mutex<BTreeMap<Key, Item>>>,
}

/// Ports with a mistake, or none.
pub type Planted = Bent<Mistake>;

/// What the payload of an execution begins with that was given by another one, and a mark that it only seems so.
const SEEMING: &str = "T#~";

impl Planted {
    /// Around these ports.
    pub fn new(inner: &Worker, plant: Option<Plant>, yard: Shared) -> Self {
        Self::with(inner, Mistake { inner: inner.clone(), plant, yard, began: Arc::default(), remembered: Arc::default() })
    }
}

impl Mistake {
    /// After how many requests the work at hand began.
    pub fn began(&self) -> u64 {
        self.began.load(Ordering::Relaxed)
    }

    /// The settings of the project to which the consents belong.
    fn consents(&self, plant: Plant, item: Item) -> Item {
        if plant == Plant::ConsentRemembered {
            let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
            return remembered.entry(item.key.clone()).or_insert(item).clone();
        }
        let Some(act) = plant.assumed() else { return item };
        let mut consents = parsed(item.text("co")).as_array().cloned().unwrap_or_default();
        consents.push(json!({"to": ["*"], "may": [act]}));
        item.with("co", Value::from(consents).to_string())
    }

    /// A definition keeps the vouch that the one before had.
    fn keep_vouch(&self, key: &Key, attrs: &mut Attrs) {
        let Some(Attr::S(text)) = attrs.get("j").filter(|_| key.pk == configs::definitions(THEIRS)) else { return };
        let old = self.inner.core().table.peek(key).map(|old| parsed(old.text("j")));
        let mut new = parsed(Some(text));
        if old.is_some_and(|old| old["d"]["vouched"] == true) {
            new["d"]["vouched"] = true.into();
            attrs.insert("j".into(), new.to_string().into());
        }
    }
}

/// A policy that allows everything of a kind.
fn allowing(item: Item, kind: &str) -> Item {
    let mut policy = parsed(item.text("po"));
    policy["allows"][kind] = json!([{"name": "*"}]);
    item.with("po", policy.to_string())
}

impl Bend for Mistake {
    fn is_mistaken(&self) -> bool {
        self.plant.is_some()
    }

    fn begin(&self, _: Option<&Received>) {
        self.began.store(self.inner.core().request_count(), Ordering::Relaxed);
    }
    fn acted(&self) {
        lock(&self.yard).since = self.began();
    }

    /// The key under which the payload really is.
    fn instead(&self, key: &Key) -> Option<Key> {
        key.sk.strip_prefix(SEEMING).map(|sk| Key::new(key.pk.clone(), sk))
    }

    fn read(&self, item: Item, _: By) -> Option<Item> {
        let Some(plant) = self.plant else { return Some(item) };
        let (ours, theirs) =
            (item.key == projects::keys::project(&project(OURS)), item.key == projects::keys::project(&project(THEIRS)));
        Some(match plant {
            _ if ours => self.consents(plant, item),
            Plant::FunctionsAllowed if theirs => allowing(item, "functions"),
            Plant::ServersAllowed if theirs => allowing(item, "servers"),
            Plant::ResultOfTrigger if item.key.sk.starts_with("X#") => {
                let payload = item.text("pl").filter(|key| key.starts_with("E#")).map(|key| format!("{SEEMING}{key}"));
                item.with_some("pl", payload)
            }
            // What seems to be another execution's record has a client's trigger for its payload.
            _ if item.key.sk.starts_with(SEEMING) => {
                let payload = history::decode(&item).map(|event| event.data);
                item.with("j", json!({"b": payload}).to_string())
            }
            _ => item,
        })
    }

    fn write(&self, mut write: Write) -> Option<Write> {
        match &mut write {
            Write::Put(item, _) if self.plant == Some(Plant::VouchKept) => self.keep_vouch(&item.key, &mut item.attrs),
            Write::Update { key, set, .. } if self.plant == Some(Plant::VouchKept) => self.keep_vouch(key, set),
            _ => {}
        }
        Some(write)
    }

    /// A task's trigger that names the config which the payload of the hostile project names.
    fn publish(&self, entry: BusEntry) -> Option<BusEntry> {
        if self.plant != Some(Plant::PayloadNamesConfig) {
            return Some(entry);
        }
        let mut event = parsed(Some(&entry.detail));
        for task in ["deployment", "rollback"] {
            let triggered = event["type"] == format!("sh.keptn.event.{task}.triggered") && event["data"]["project"] == THEIRS;
            if triggered && event["data"][task]["deploymentConfig"].is_null() {
                event["data"][task]["deploymentConfig"] = "team-b:api".into();
                return Some(BusEntry { detail: event.to_string(), ..entry });
            }
        }
        Some(entry)
    }
}
