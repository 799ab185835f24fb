//! Planted faults of promotions: mistakes that this engine is built against, made by a wrapper between the engine and its ports,
//! and by the one who reaches the host. The simulation or a case has to find each of them. The engine itself has no hook for any of
//! this.

use crate::bent::{Bend, Bent, By, Pile, changed, json as parsed, pile_up, unconditional, without};
use crate::plants::plants;
use keelway_domain::stored::Stored;
use keelway_engine::evaluations;
use keelway_engine::item::{Attr, Attrs, Item, Key};
use keelway_engine::keys::MAIN;
use keelway_engine::ports::Write;
use keelway_engine::promotions::{Job, Message};
use keelway_world::queue::{Parcel, Received};
use keelway_world::worker::Worker;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

plants! {
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
    /// Every commit of a pipeline leaves something in it.
    PiledUp,
    /// A copy of a command that was obeyed is obeyed again.
    CommandObeyedTwice,
    /// An evaluation passes, whatever it came to.
    EvaluationPasses,
    /// The id of an evaluation does not follow from its window.
    EvaluationWithoutWindow,
    /// An evaluation that nobody answers is not ordered again.
    EvaluationOrderedOnce,
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

/// A mistake, or none.
#[derive(Debug, Clone)]
pub struct Mistake {
    inner: Worker,
    plant: Option<Plant>,
    at_hand: Arc<Mutex<AtHand>>,
    pile: Pile,
}

/// Ports with a mistake, or none.
pub type Planted = Bent<Mistake>;

fn is_pipeline(key: &Key) -> bool {
    key.pk.starts_with("P#") && key.sk == MAIN
}

/// An item with the environments of a pipeline changed.
fn environments(item: Item, change: impl Fn(&mut Value)) -> Item {
    changed(item, "en", |all| all.as_object_mut().into_iter().flat_map(|all| all.values_mut()).for_each(change))
}

/// A definition whose windows all have the zone of the first.
fn one_zone(value: &mut Value) {
    if let Some(windows) = value.get_mut("windows").and_then(Value::as_array_mut) {
        let zone = windows.first().map(|first| first["zone"].clone()).unwrap_or_default();
        windows.iter_mut().skip(1).for_each(|window| window["zone"] = zone.clone());
    }
    match value {
        Value::Array(all) => all.iter_mut().for_each(one_zone),
        Value::Object(all) => all.values_mut().for_each(one_zone),
        _ => {}
    }
}

/// The id of all evaluations.
const ONE_ID: &str = "evaluation";

/// An environment whose evaluation has that id.
fn one_id(state: &mut Value) {
    if !state["ev"].is_null() {
        state["ev"]["i"] = ONE_ID.into();
    }
}

impl Planted {
    /// Around these ports.
    pub fn new(inner: &Worker, plant: Option<Plant>) -> Self {
        Self::with(inner, Mistake { inner: inner.clone(), plant, at_hand: Arc::default(), pile: Pile::default() })
    }
}

impl Mistake {
    fn at_hand(&self) -> MutexGuard<'_, AtHand> {
        self.at_hand.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Approvals that a pipeline has are given to what waits for one now.
    fn carry_approvals(&self, key: &Key, set: &mut Attrs) {
        let old = self.inner.core().table.peek(key).map(|item| parsed(item.text("en")));
        let (Some(old), Some(Attr::S(new))) = (old, set.get("en")) else { return };
        let mut new = parsed(Some(new));
        for (name, state) in new.as_object_mut().into_iter().flatten() {
            if old[name]["p"]["y"] == true && state["p"]["s"] == "waiting" {
                (state["p"]["y"], state["p"]["ap"]) = (true.into(), json!([{"b": "ann", "t": 0}]));
            }
        }
        set.insert("en".into(), new.to_string().into());
    }
}

/// Whether a mistaken engine does not write an item.
fn forgets(plant: Plant, key: &Key) -> bool {
    match plant {
        Plant::OpenRequestForgotten => key.pk.starts_with("R#") && key.sk != MAIN,
        Plant::HistoryForgotten => key.pk.starts_with("P#") && key.sk.starts_with("H#"),
        _ => false,
    }
}

impl Bend for Mistake {
    fn is_mistaken(&self) -> bool {
        self.plant.is_some()
    }

    fn begin(&self, received: Option<&Received>) {
        let attempts = |text: &str| matches!(Job::from_json(text), Ok(Job::Attempt { .. }));
        let evaluates = |text: &str| Message::from_json(text).is_ok_and(|message| !matches!(message, Message::Command { .. }));
        let kind = |received: &Received| match &received.parcel {
            Parcel::Own(text) if attempts(text) => AtHand::Attempt,
            Parcel::Own(text) if evaluates(text) => AtHand::Evaluation,
            _ => AtHand::Other,
        };
        if self.is_mistaken() {
            *self.at_hand() = received.map_or(AtHand::Own, kind);
        }
    }

    fn read(&self, item: Item, _: By) -> Option<Item> {
        let Some(plant) = self.plant else { return Some(item) };
        let (pipeline, at_hand) = (is_pipeline(&item.key), *self.at_hand());
        let evaluates = at_hand == AtHand::Evaluation;
        Some(match plant {
            Plant::AttemptWithoutLease if pipeline && at_hand == AtHand::Attempt => environments(item, |state| {
                if state["p"]["s"] == "attempting" {
                    state["p"]["k"] = false.into();
                }
            }),
            Plant::RecordReopened if pipeline && evaluates => environments(item, |state| {
                if state["p"]["s"] == "abandoned" {
                    state["p"]["s"] = "waiting".into();
                }
            }),
            Plant::SoakIgnored if pipeline => environments(item, |state| {
                if !state["s"].is_null() {
                    state["s"][1] = 0.into();
                }
            }),
            Plant::EvaluationPasses if pipeline => environments(item, |state| {
                if !state["ev"]["a"].is_null() {
                    state["ev"]["a"] = json!({"status": "succeeded", "result": "pass", "evaluated": true, "score": 100.0});
                }
            }),
            Plant::CommandObeyedTwice if pipeline && at_hand == AtHand::Other => without(item, "ob"),
            Plant::HoldIgnored if pipeline && evaluates => environments(item, |state| {
                drop(state.as_object_mut().and_then(|state| state.remove("h")));
            }),
            Plant::OlderFactAccepted if item.key.pk.starts_with("O#") && item.key.sk == MAIN => item.with("n", i64::MIN),
            Plant::SecondZoneIgnored if item.key.pk.starts_with("PD#") => changed(item, "j", one_zone),
            _ => item,
        })
    }

    fn write(&self, mut write: Write) -> Option<Write> {
        let Some(plant) = self.plant else { return Some(write) };
        match &mut write {
            Write::Update { key, set, .. } if plant == Plant::ApprovalSurvivesRevision && is_pipeline(key) => {
                self.carry_approvals(key, set);
            }
            Write::Update { key, set, .. } if plant == Plant::EvaluationWithoutWindow && is_pipeline(key) => {
                if let Some(Attr::S(text)) = set.get("en") {
                    let mut all = parsed(Some(text));
                    all.as_object_mut().into_iter().flat_map(|all| all.values_mut()).for_each(one_id);
                    set.insert("en".into(), all.to_string().into());
                }
            }
            Write::Update { key, set, .. } if plant == Plant::PiledUp && is_pipeline(key) => pile_up(&self.pile, set),
            Write::Update { key, .. } if plant == Plant::CommitUnconditional && is_pipeline(key) => {
                return Some(unconditional(write));
            }
            Write::Delete(..) => return Some(write),
            _ => {}
        }
        (!forgets(plant, write.key())).then_some(write)
    }

    fn send(&self, body: &str) -> Option<String> {
        let wakes = body.contains("\"sweep ") || body.contains("\"keelway\":\"look\"");
        let again =
            matches!(evaluations::Message::from_json(body), Ok(evaluations::Message::Evaluate { asker, .. }) if asker.time > 1);
        let lost = match self.plant {
            Some(Plant::SweepSilent) => *self.at_hand() == AtHand::Own && wakes,
            Some(Plant::EvaluationOrderedOnce) => again,
            _ => false,
        };
        let mut message = parsed(Some(body));
        if self.plant == Some(Plant::EvaluationWithoutWindow) && message["keelway"] == "evaluate" && !message["id"].is_null() {
            message["id"] = ONE_ID.into();
            return Some(message.to_string());
        }
        (!lost).then(|| body.to_owned())
    }
}
