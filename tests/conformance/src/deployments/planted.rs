//! Planted faults of deployments: mistakes that this engine is built against, made by a wrapper between the engine and its ports,
//! and by whoever serves deployers. The simulation or a case has to find each of them. The engine itself has no hook for any of
//! this.

use crate::bent::{Bend, Bent, By, Pile, changed, json, pile_up, unconditional, without};
use crate::plants::plants;
use keelway_domain::stored::Stored;
use keelway_domain::time::Timestamp;
use keelway_engine::deployments::Message;
use keelway_engine::item::{Attr, Attrs, Item, Key};
use keelway_engine::keys::MAIN;
use keelway_engine::ports::Write;
use keelway_world::queue::{Parcel, Received};
use keelway_world::worker::Worker;
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

plants! {
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
    /// Every commit of a config leaves something in it.
    PiledUp,
    /// What is known of an alarm is forgotten: an older report of it counts.
    AlarmsForgotten,
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

/// A mistake, or none.
#[derive(Debug, Clone)]
pub struct Mistake {
    /// Which one.
    pub plant: Option<Plant>,
    at_hand: Arc<Mutex<AtHand>>,
    pile: Pile,
}

/// Ports with a mistake, or none.
pub type Planted = Bent<Mistake>;

fn is_config(key: &Key) -> bool {
    key.pk.starts_with("D#") && key.sk == MAIN
}

/// The key of a snapshot without the hash of its content.
fn without_hash(key: &Key) -> Option<Key> {
    let parts: Vec<&str> = key.sk.split('#').collect();
    match parts[..] {
        ["D", n, hash] if key.pk.starts_with("D#") => Some(Key::new(key.pk.clone(), format!("D#{n}#{}", "0".repeat(hash.len())))),
        _ => None,
    }
}

impl Planted {
    /// Around these ports.
    pub fn new(inner: &Worker, plant: Option<Plant>) -> Self {
        Self::with(inner, Mistake { plant, at_hand: Arc::default(), pile: Pile::default() })
    }
}

impl Mistake {
    fn at_hand(&self) -> MutexGuard<'_, AtHand> {
        self.at_hand.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a config is committed over what others have written: what a deployer says, or what is decided.
    fn overwrites(&self, plant: Plant, set: &Attrs) -> bool {
        let last = match set.get("la") {
            Some(Attr::S(text)) => json(Some(text)),
            _ => Value::Null,
        };
        let own = *self.at_hand() == AtHand::Own;
        let said = own && !last["k"].is_null() && last["e"].is_null();
        match plant {
            Plant::ClaimUnconditional => said && last["k"]["r"].is_null(),
            Plant::HeartbeatOverwrites => said && !last["k"]["r"].is_null(),
            Plant::CommitUnconditional => !own,
            _ => false,
        }
    }
}

/// Whether a mistaken engine does not write an item.
fn forgets(plant: Plant, key: &Key) -> bool {
    match plant {
        Plant::WatchForgotten => key.pk.starts_with("DH#") && key.sk.starts_with("P#"),
        Plant::HistoryForgotten => key.pk.starts_with("D#") && key.sk.starts_with("F#"),
        Plant::AuditForgotten => key.pk.starts_with("D#") && key.sk.starts_with("A#"),
        _ => false,
    }
}

impl Bend for Mistake {
    fn is_mistaken(&self) -> bool {
        self.plant.is_some()
    }

    fn begin(&self, received: Option<&Received>) {
        let kind = |received: &Received| match &received.parcel {
            Parcel::Own(text) => match Message::from_json(text) {
                Ok(Message::Command { .. }) => AtHand::Command,
                Ok(Message::Notice { .. }) | Err(_) => AtHand::Other,
                Ok(_) => AtHand::Evaluation,
            },
            Parcel::Event(_) | Parcel::Invalid { .. } => AtHand::Other,
        };
        if self.is_mistaken() {
            *self.at_hand() = received.map_or(AtHand::Own, kind);
        }
    }

    fn instead(&self, key: &Key) -> Option<Key> {
        self.plant.filter(|plant| *plant == Plant::SnapshotOverwritten).and_then(|_| without_hash(key))
    }

    fn read(&self, item: Item, _: By) -> Option<Item> {
        let Some(plant) = self.plant else { return Some(item) };
        let at_hand = *self.at_hand();
        let (config, evaluates) = (is_config(&item.key), at_hand == AtHand::Evaluation);
        let at_once = |item, name: &str| {
            changed(item, "la", |last| {
                if !last[name].is_null() {
                    last[name]["u"] = 0.into();
                }
            })
        };
        Some(match plant {
            Plant::CommandObeyedTwice if config && at_hand == AtHand::Command => without(item, "ob"),
            Plant::AlarmsForgotten if config => without(item, "al"),
            Plant::SuspensionIgnored if config && evaluates => without(item, "su"),
            Plant::PauseIgnored if config && at_hand != AtHand::Command => without(item, "pa"),
            Plant::LeaseIgnored if config && evaluates => at_once(item, "k"),
            Plant::CancelNotAwaited if config && evaluates => at_once(item, "x"),
            Plant::OlderPushAccepted if item.key.pk.starts_with("DH#") && item.key.sk.starts_with("H#") && !evaluates => {
                changed(item, "j", |head| head["t"] = 0.into())
            }
            _ => item,
        })
    }

    fn write(&self, mut write: Write) -> Option<Write> {
        let Some(plant) = self.plant else { return Some(write) };
        match &mut write {
            Write::Put(item, _) if plant == Plant::SnapshotOverwritten => {
                item.key = without_hash(&item.key).unwrap_or_else(|| item.key.clone());
            }
            Write::Put(item, _)
                if plant == Plant::DefinitionOverwritten && item.key.pk.starts_with("DD#") && *self.at_hand() != AtHand::Own =>
            {
                return Some(unconditional(write));
            }
            Write::Update { key, set, .. } if is_config(key) && plant == Plant::PiledUp => pile_up(&self.pile, set),
            Write::Update { key, set, .. } if is_config(key) && plant == Plant::NothingOwed => drop(set.remove("ow")),
            Write::Update { key, set, .. } if is_config(key) && self.overwrites(plant, set) => return Some(unconditional(write)),
            Write::Delete(..) => return Some(write),
            _ => {}
        }
        (!forgets(plant, write.key())).then_some(write)
    }

    fn send(&self, body: &str) -> Option<String> {
        let lost = match self.plant {
            Some(Plant::SweepSilent) => body.contains("\"because\":\"sweep "),
            Some(Plant::ReportNotEvaluated) => body.contains("\"because\":\"deployer "),
            _ => false,
        };
        (!lost).then(|| body.to_owned())
    }
    fn send_at(&self, _: &str, _: Timestamp) -> bool {
        self.plant != Some(Plant::WakeLost)
    }
}
