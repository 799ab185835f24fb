//! Planted faults of deployments: mistakes that this engine is built against, made by a wrapper between the engine and its ports,
//! and by whoever serves deployers. The simulation or a case has to find each of them. The engine itself has no hook for any of
//! this.

use keelway_domain::time::{Span, Timestamp};
use keelway_engine::deployments::Message;
use keelway_engine::item::{Attr, Item, Key};
use keelway_engine::keys::MAIN;
use keelway_engine::ports::{
    Bus, BusEntry, Clock, Condition, Leftover, Page, PortError, Query, Queue, Store, Transacted, Write, Written,
};
use keelway_world::queue::{Parcel, Received};
use keelway_world::worker::Worker;
use serde_json::Value;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The mistakes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Plant {
    /// Nobody evaluates the config after a deployer has said something.
    ReportNotEvaluated,
    /// A claim is written without a condition.
    ClaimUnconditional,
    /// A heartbeat is written without a condition.
    HeartbeatOverwrites,
    /// A config is committed without a condition.
    CommitUnconditional,
    /// A rollback writes over the definition that somebody has applied meanwhile.
    DefinitionOverwritten,
    /// The sweep wakes nobody.
    SweepSilent,
    /// A copy of a command that was obeyed is obeyed again.
    CommandObeyedTwice,
    /// A report counts for whatever attempt is present.
    ReportOfAnyAttempt,
    /// The key of a snapshot does not follow from its content.
    SnapshotOverwritten,
    /// A config is not entered with the tags that it watches.
    WatchForgotten,
    /// No wake-up is scheduled.
    WakeLost,
    /// Attempts that have ended are not recorded.
    HistoryForgotten,
    /// Obeyed commands are not recorded.
    AuditForgotten,
    /// Triggers fire while they are suspended.
    SuspensionIgnored,
    /// A paused config is deployed.
    PauseIgnored,
    /// Whoever has a claim is taken for lost.
    LeaseIgnored,
    /// A tag points to whatever was told last.
    OlderPushAccepted,
    /// A deployment that is cancelled is forgotten before its deployer has stopped.
    CancelNotAwaited,
    /// A commit by a copy of a message does not note what it owes.
    NothingOwed,
    /// What Keelway changed for a deployer that has failed stays.
    NothingTakenBack,
}

impl Plant {
    /// All of them.
    pub const ALL: [Plant; 20] = [
        Plant::ReportNotEvaluated,
        Plant::ClaimUnconditional,
        Plant::HeartbeatOverwrites,
        Plant::CommitUnconditional,
        Plant::DefinitionOverwritten,
        Plant::SweepSilent,
        Plant::CommandObeyedTwice,
        Plant::ReportOfAnyAttempt,
        Plant::SnapshotOverwritten,
        Plant::WatchForgotten,
        Plant::WakeLost,
        Plant::HistoryForgotten,
        Plant::AuditForgotten,
        Plant::SuspensionIgnored,
        Plant::PauseIgnored,
        Plant::LeaseIgnored,
        Plant::OlderPushAccepted,
        Plant::CancelNotAwaited,
        Plant::NothingOwed,
        Plant::NothingTakenBack,
    ];
}

/// What is at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum AtHand {
    /// A message that evaluates.
    Evaluation,
    /// A command.
    Command,
    /// Something that is no message: the sweep, a deployer, a push.
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
    /// The mistake.
    pub plant: Option<Plant>,
    at_hand: Arc<Mutex<AtHand>>,
}

fn is_config(key: &Key) -> bool {
    key.pk.starts_with("D#") && key.sk == MAIN
}

fn parsed(text: Option<&str>) -> Value {
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// A config with its deployment changed.
fn deployment(item: Item, change: impl Fn(&mut Value)) -> Item {
    let mut last = parsed(item.text("la"));
    if last.is_null() {
        return item;
    }
    change(&mut last);
    item.with("la", last.to_string())
}

fn without(mut item: Item, name: &str) -> Item {
    item.attrs.remove(name);
    item
}

/// The key of a snapshot without the hash of its content.
fn without_hash(key: &Key) -> Key {
    let parts: Vec<&str> = key.sk.split('#').collect();
    match parts[..] {
        ["D", n, hash] if key.pk.starts_with("D#") => Key::new(key.pk.clone(), format!("D#{n}#{}", "0".repeat(hash.len()))),
        _ => key.clone(),
    }
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
        let kind = |received: &Received| match &received.parcel {
            Parcel::Own(text) => match serde_json::from_str::<Message>(text) {
                Ok(Message::Command { .. }) => AtHand::Command,
                Ok(Message::Notice { .. }) | Err(_) => AtHand::Other,
                Ok(_) => AtHand::Evaluation,
            },
            Parcel::Event(_) | Parcel::Invalid { .. } => AtHand::Other,
        };
        *self.at_hand() = received.map_or(AtHand::Own, kind);
    }

    fn at_hand(&self) -> MutexGuard<'_, AtHand> {
        self.at_hand.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, item: Item) -> Item {
        let Some(plant) = self.plant else { return item };
        let at_hand = *self.at_hand();
        match plant {
            Plant::CommandObeyedTwice if is_config(&item.key) && at_hand == AtHand::Command => without(item, "ob"),
            Plant::SuspensionIgnored if is_config(&item.key) && at_hand == AtHand::Evaluation => without(item, "su"),
            Plant::PauseIgnored if is_config(&item.key) && at_hand != AtHand::Command => without(item, "pa"),
            Plant::LeaseIgnored if is_config(&item.key) && at_hand == AtHand::Evaluation => deployment(item, |last| {
                if !last["k"].is_null() {
                    last["k"]["u"] = 0.into();
                }
            }),
            Plant::CancelNotAwaited if is_config(&item.key) && at_hand == AtHand::Evaluation => deployment(item, |last| {
                if !last["x"].is_null() {
                    last["x"]["u"] = 0.into();
                }
            }),
            Plant::OlderPushAccepted
                if item.key.pk.starts_with("DH#") && item.key.sk.starts_with("H#") && at_hand != AtHand::Evaluation =>
            {
                let mut head = parsed(item.text("j"));
                head["t"] = 0.into();
                item.with("j", head.to_string())
            }
            _ => item,
        }
    }

    /// What a deployer says, as a mistaken engine writes it.
    fn says(&self, set: &keelway_engine::item::Attrs) -> bool {
        let last = match set.get("la") {
            Some(Attr::S(text)) => parsed(Some(text)),
            _ => Value::Null,
        };
        let own = *self.at_hand() == AtHand::Own && !last["k"].is_null() && last["e"].is_null();
        match self.plant {
            Some(Plant::ClaimUnconditional) => own && last["k"]["r"].is_null(),
            Some(Plant::HeartbeatOverwrites) => own && !last["k"]["r"].is_null(),
            Some(Plant::CommitUnconditional) => *self.at_hand() != AtHand::Own,
            _ => false,
        }
    }

    fn bend(&self, write: &Write) -> Write {
        let mut write = write.clone();
        match &mut write {
            Write::Update { key, set, .. } if is_config(key) && self.plant == Some(Plant::NothingOwed) => drop(set.remove("ow")),
            Write::Update { key, set, condition, .. } if is_config(key) && self.says(set) => *condition = Condition::Always,
            Write::Put(item, condition)
                if self.plant == Some(Plant::DefinitionOverwritten)
                    && item.key.pk.starts_with("DD#")
                    && *self.at_hand() != AtHand::Own =>
            {
                *condition = Condition::Always;
            }
            _ => {}
        }
        write
    }

    /// Whether a mistaken engine does not write an item.
    fn forgets(&self, key: &Key) -> bool {
        match self.plant {
            Some(Plant::WatchForgotten) => key.pk.starts_with("DH#") && key.sk.starts_with("P#"),
            Some(Plant::HistoryForgotten) => key.pk.starts_with("D#") && key.sk.starts_with("F#"),
            Some(Plant::AuditForgotten) => key.pk.starts_with("D#") && key.sk.starts_with("A#"),
            _ => false,
        }
    }

    fn key(&self, key: &Key) -> Key {
        if self.plant == Some(Plant::SnapshotOverwritten) { without_hash(key) } else { key.clone() }
    }
}

impl Store for Planted {
    async fn get(&self, key: &Key) -> Result<Option<Item>, PortError> {
        Ok(self.inner.get(&self.key(key)).await?.map(|item| self.read(item)))
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
        let kept = puts.iter().filter(|item| !self.forgets(&item.key));
        let kept: Vec<Item> = kept.map(|item| Item { key: self.key(&item.key), ..item.clone() }).collect();
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
        let lost = |body: &String| match self.plant {
            Some(Plant::SweepSilent) => body.contains("\"because\":\"sweep "),
            Some(Plant::ReportNotEvaluated) => body.contains("\"because\":\"deployer "),
            _ => false,
        };
        if bodies.iter().all(lost) {
            return Ok(vec![None; bodies.len()]);
        }
        self.inner.send(engine, bodies).await
    }
    async fn send_at(&self, engine: &str, name: &str, body: &str, at: Timestamp) -> Result<(), PortError> {
        if self.plant == Some(Plant::WakeLost) {
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
