//! Planted faults of promotions: mistakes that this engine is built against, made by a wrapper between the engine and its ports,
//! and by the one who reaches the host. The simulation or a case has to find each of them. The engine itself has no hook for any of
//! this.

use keelway_domain::time::Timestamp;
use keelway_engine::item::{Item, Key};
use keelway_engine::keys::MAIN;
use keelway_engine::ports::{
    Bus, BusEntry, Clock, Condition, Leftover, Page, PortError, Query, Queue, Store, Transacted, Write, Written,
};
use keelway_engine::promotions::{Job, Message};
use keelway_world::queue::{Parcel, Received};
use keelway_world::worker::Worker;
use serde_json::{Map, Value, json};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The mistakes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Plant {
    /// Whoever gets the message of an attempt carries it out, even if somebody else is at it.
    AttemptWithoutLease,
    /// An attempt does not look for what an earlier one made.
    LookUpSkipped,
    /// A promotion that was abandoned is attempted again.
    RecordReopened,
    /// An open pull request is not entered into its repository's list.
    OpenRequestForgotten,
    /// A revision counts as healthy for ever.
    SoakIgnored,
    /// An approval is carried over to the next revision.
    ApprovalSurvivesRevision,
    /// What is superseded stays open.
    SupersededLeftOpen,
    /// A fact is kept whatever its version.
    OlderFactAccepted,
    /// A held environment is promoted into.
    HoldIgnored,
    /// All windows go by the zone of the first one.
    SecondZoneIgnored,
    /// After one failure to close it, a pull request is forgotten.
    ClosingGivenUp,
    /// A pull request that was closed counts as merged.
    ClosedTakenForMerged,
    /// The sweep wakes nobody.
    SweepSilent,
    /// A failed attempt is not repeated.
    FailureFinal,
    /// A pipeline is written without a condition.
    CommitUnconditional,
    /// History is not written.
    HistoryForgotten,
}

impl Plant {
    /// All of them.
    pub const ALL: [Plant; 16] = [
        Plant::AttemptWithoutLease,
        Plant::LookUpSkipped,
        Plant::RecordReopened,
        Plant::OpenRequestForgotten,
        Plant::SoakIgnored,
        Plant::ApprovalSurvivesRevision,
        Plant::SupersededLeftOpen,
        Plant::OlderFactAccepted,
        Plant::HoldIgnored,
        Plant::SecondZoneIgnored,
        Plant::ClosingGivenUp,
        Plant::ClosedTakenForMerged,
        Plant::SweepSilent,
        Plant::FailureFinal,
        Plant::CommitUnconditional,
        Plant::HistoryForgotten,
    ];
}

/// What is at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum AtHand {
    /// An attempt.
    Attempt,
    /// A message that evaluates.
    Evaluation,
    /// Something that is no message: the sweep, or a report.
    Own,
    /// Anything else.
    #[default]
    Other,
}

/// Ports with a mistake, or none.
#[derive(Debug, Clone)]
pub struct Planted {
    /// The ports.
    pub inner: Worker,
    plant: Option<Plant>,
    at_hand: Arc<Mutex<AtHand>>,
}

fn is_pipeline(key: &Key) -> bool {
    key.pk.starts_with("P#") && key.sk == MAIN
}

/// An item with the environments of a pipeline changed.
fn environments(item: Item, change: impl Fn(&mut Value)) -> Item {
    let Some(mut all) = item.text("en").and_then(|text| serde_json::from_str::<Map<String, Value>>(text).ok()) else { return item };
    all.values_mut().for_each(change);
    item.with("en", Value::Object(all).to_string())
}

impl Planted {
    /// Around these ports.
    pub fn new(inner: Worker, plant: Option<Plant>) -> Self {
        Self { inner, plant, at_hand: Arc::default() }
    }

    /// A message begins; `None`: something else does.
    pub fn begin(&self, received: Option<&Received>) {
        if self.plant.is_none() {
            return;
        }
        let own = received.map(|received| match &received.parcel {
            Parcel::Own(text) if serde_json::from_str::<Job>(text).is_ok_and(|job| matches!(job, Job::Attempt { .. })) => {
                AtHand::Attempt
            }
            Parcel::Own(text)
                if serde_json::from_str::<Message>(text).is_ok_and(|message| !matches!(message, Message::Command { .. })) =>
            {
                AtHand::Evaluation
            }
            _ => AtHand::Other,
        });
        *self.at_hand() = own.unwrap_or(AtHand::Own);
    }

    fn at_hand(&self) -> MutexGuard<'_, AtHand> {
        self.at_hand.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, item: Item) -> Item {
        let Some(plant) = self.plant else { return item };
        let at_hand = *self.at_hand();
        match plant {
            Plant::AttemptWithoutLease if is_pipeline(&item.key) && at_hand == AtHand::Attempt => environments(item, |state| {
                if state["p"]["s"] == "attempting" {
                    state["p"]["k"] = false.into();
                }
            }),
            Plant::RecordReopened if is_pipeline(&item.key) && at_hand == AtHand::Evaluation => environments(item, |state| {
                if state["p"]["s"] == "abandoned" {
                    state["p"]["s"] = "waiting".into();
                }
            }),
            Plant::SoakIgnored if is_pipeline(&item.key) => environments(item, |state| {
                if !state["s"].is_null() {
                    state["s"][1] = 0.into();
                }
            }),
            Plant::HoldIgnored if is_pipeline(&item.key) && at_hand == AtHand::Evaluation => environments(item, |state| {
                drop(state.as_object_mut().and_then(|state| state.remove("h")));
            }),
            Plant::OlderFactAccepted if item.key.pk.starts_with("O#") && item.key.sk == MAIN => item.with("n", i64::MIN),
            Plant::SecondZoneIgnored if item.key.pk.starts_with("PD#") => one_zone(item),
            _ => item,
        }
    }

    fn bend(&self, write: &Write) -> Write {
        let mut write = write.clone();
        match (self.plant, &mut write) {
            (Some(Plant::ApprovalSurvivesRevision), Write::Update { key, set, .. }) if is_pipeline(key) => {
                let old = self.inner.core().table.peek(key).and_then(|item| item.text("en").map(str::to_owned));
                let read = |text: &str| serde_json::from_str::<Value>(text).ok();
                let new = set.get("en").and_then(|attr| match attr {
                    keelway_engine::item::Attr::S(text) => read(text),
                    _ => None,
                });
                if let (Some(old), Some(mut new)) = (old.and_then(|text| read(&text)), new) {
                    for (name, state) in new.as_object_mut().into_iter().flatten() {
                        if old[name]["p"]["y"] == true && state["p"]["s"] == "waiting" {
                            (state["p"]["y"], state["p"]["ap"]) = (true.into(), json!([{"b": "ann", "t": 0}]));
                        }
                    }
                    set.insert("en".into(), new.to_string().into());
                }
            }
            (Some(Plant::CommitUnconditional), Write::Update { key, condition, .. }) if is_pipeline(key) => {
                *condition = Condition::Always
            }
            _ => {}
        }
        write
    }

    /// Whether a mistaken engine does not write an item.
    fn forgets(&self, key: &Key) -> bool {
        match self.plant {
            Some(Plant::OpenRequestForgotten) => key.pk.starts_with("R#") && key.sk != MAIN,
            Some(Plant::HistoryForgotten) => key.pk.starts_with("P#") && key.sk.starts_with("H#"),
            _ => false,
        }
    }
}

/// A definition whose windows all have the zone of the first.
fn one_zone(item: Item) -> Item {
    fn change(value: &mut Value) {
        if let Some(windows) = value.get_mut("windows").and_then(Value::as_array_mut) {
            let zone = windows.first().map(|first| first["zone"].clone()).unwrap_or_default();
            windows.iter_mut().skip(1).for_each(|window| window["zone"] = zone.clone());
        }
        match value {
            Value::Array(all) => all.iter_mut().for_each(change),
            Value::Object(all) => all.values_mut().for_each(change),
            _ => {}
        }
    }
    let Some(mut all) = item.text("j").and_then(|text| serde_json::from_str::<Value>(text).ok()) else { return item };
    change(&mut all);
    item.with("j", all.to_string())
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
        page.items = page.items.into_iter().map(|item| self.read(item)).collect();
        Ok(page)
    }
    async fn put_batch(&self, puts: &[Item], deletes: &[Key]) -> Result<Leftover, PortError> {
        let kept: Vec<Item> = puts.iter().filter(|item| !self.forgets(&item.key)).cloned().collect();
        if kept.is_empty() && deletes.is_empty() {
            return Ok(Leftover::default());
        }
        self.inner.put_batch(&kept, deletes).await
    }
    async fn write(&self, write: &Write) -> Result<Written, PortError> {
        self.inner.write(&self.bend(write)).await
    }
    async fn transact(&self, writes: &[Write]) -> Result<Transacted, PortError> {
        let writes: Vec<Write> = writes.iter().filter(|write| !self.forgets(write.key())).map(|write| self.bend(write)).collect();
        self.inner.transact(&writes).await
    }
}

impl Bus for Planted {
    fn publish(&self, entries: &[BusEntry]) -> impl Future<Output = Result<Vec<Option<String>>, PortError>> + Send {
        self.inner.publish(entries)
    }
}

impl Queue for Planted {
    async fn send(&self, engine: &str, bodies: &[String]) -> Result<Vec<Option<String>>, PortError> {
        let swept = |body: &String| body.contains("\"sweep ") || body.contains("\"keelway\":\"look\"");
        if self.plant == Some(Plant::SweepSilent) && *self.at_hand() == AtHand::Own && bodies.iter().all(swept) {
            return Ok(vec![None; bodies.len()]);
        }
        self.inner.send(engine, bodies).await
    }
    fn send_at(&self, engine: &str, name: &str, body: &str, at: Timestamp) -> impl Future<Output = Result<(), PortError>> + Send {
        self.inner.send_at(engine, name, body, at)
    }
}

impl Clock for Planted {
    fn now(&self) -> Timestamp {
        self.inner.now()
    }
    async fn pause(&self, length: keelway_domain::time::Span) {
        self.inner.pause(length).await;
    }
}
