//! The sequences engine: one message in, at most one commit, then whatever the committed state owes.
//!
//! [`Engine::handle`] is the entry point. Each kind of message has a file of its own: `accept` for what starts
//! executions, `react` for answers to tasks, `turn` for grants, wake-ups and flags. `settle` performs effects, `lane` drives
//! lanes; both may be run by anyone, any number of times.

mod accept;
pub mod codec;
pub mod commands;
mod control;
pub mod dead_letter;
pub mod definitions;
pub mod history;
mod lane;
mod load;
mod react;
mod settle;
mod sweep;
mod turn;
pub mod views;

pub use react::MAX_DECISION_BYTES;
pub use sweep::Swept;

use crate::message::{Body, Delivery, Handled, Message};
use crate::ports::{Limits, PortError, Ports};
use keelway_domain::event::{APPROVAL_SOURCE, EventType, Kind, SOURCE};
use keelway_domain::sequences::{Input, ReactionKind};
use keelway_domain::shipyard::Shipyard;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// A conditional write that loses this often in one message goes back to the queue: somebody else is busy there.
const COMMIT_TRIES: usize = 8;

/// The engine on its ports. Holds no state but a cache of immutable shipyard revisions.
pub struct Engine<P> {
    ports: P,
    limits: Limits,
    revisions: Mutex<HashMap<(String, String), Arc<Shipyard>>>,
}

impl<P: Ports> Engine<P> {
    /// An engine on these ports.
    pub fn new(ports: P, limits: Limits) -> Self {
        Self { ports, limits, revisions: Mutex::new(HashMap::new()) }
    }

    /// The ports.
    pub fn ports(&self) -> &P {
        &self.ports
    }

    /// What an operator tunes.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Handles one delivery. `Ok`: acknowledge it. `Err`: it must come back; nothing is lost by handling it again.
    pub async fn handle(&self, delivery: &Delivery) -> Result<Handled, PortError> {
        match &delivery.body {
            Body::Invalid { reason, text } => history::invalid(&self.ports, &self.limits, delivery.sent, reason, text).await,
            Body::Own(message) => self.message(message, delivery).await,
            // The bus's rule keeps our own events out; one that comes all the same was sent by somebody else.
            Body::Event(event) if [SOURCE, APPROVAL_SOURCE].contains(&event.source.as_str()) => {
                self.refuse(event, delivery.sent, "forged: this source is the engine's own").await
            }
            Body::Event(event) => match EventType::parse(&event.ty) {
                EventType::Sequence(stage, sequence, Kind::Triggered) => self.accept(event, &stage, &sequence, delivery.sent).await,
                EventType::Task(_, Kind::Started) => self.react(event, ReactionKind::Started, delivery.sent).await,
                EventType::Task(_, Kind::Finished) => self.react(event, ReactionKind::Finished, delivery.sent).await,
                EventType::Task(_, Kind::StatusChanged) => self.status_changed(event, delivery.sent).await,
                EventType::Task(_, Kind::Triggered) => {
                    let reason = "tasks are triggered by the engine: trigger a sequence instead";
                    self.refuse(event, delivery.sent, reason).await
                }
                EventType::Sequence(..) => {
                    let reason = "a sequence's started and finished are sent by the engine: nobody else can say so";
                    self.refuse(event, delivery.sent, reason).await
                }
                EventType::Other(name) => self.domain_event(event, &name, delivery.sent).await,
            },
        }
    }

    async fn message(&self, message: &Message, delivery: &Delivery) -> Result<Handled, PortError> {
        match message {
            Message::Granted { to, ask } => self.turn(to, Input::Granted(*ask)).await,
            Message::Wake { to, at } => self.turn(to, Input::Wake(*at)).await,
            Message::Obey { to } => self.turn(to, Input::Obey).await,
            Message::Settle { to } => self.turn(to, Input::Settle).await,
            Message::Follow { to, record, n } => self.follow(to, record, *n).await,
            Message::Start { to, event, stage, sequence, accepted } => {
                self.start_on_event(to, event, (stage, sequence), *accepted).await
            }
            Message::Conform { project, context } => self.conform(project, context).await,
            Message::Decide { to, trigger, event } => self.decision(to, *trigger, event, delivery.sent).await,
        }
    }

    fn contended(&self, what: impl std::fmt::Display) -> PortError {
        PortError::Retry { request: "commit", reason: format!("{what} was changed by others {COMMIT_TRIES} times in a row") }
    }
}
