//! The sequences engine: Keptn Shipyards. An execution of a sequence is the subject of its messages.
//!
//! [`Sequences::handle`](crate::protocol::Inbox::handle) is the entry point. Each kind of input has a file: `accept` and `birth`
//! for inputs that start executions, `answer` for answers to tasks, `turn` for grants, wake-ups and flags. `duty` performs the
//! duties of this engine, `lane` drives lanes. The protocol handles a message before and after its decision
//! ([`crate::protocol::run`]).

mod accept;
mod answer;
mod birth;
mod change;
pub mod codec;
pub mod commands;
mod control;
pub mod definitions;
mod domain_event;
mod duty;
pub mod evaluation;
pub mod freeze;
pub mod history;
pub mod integrations;
pub mod keys;
mod lane;
mod load;
pub mod logs;
mod look;
pub mod message;
pub mod preflight;
pub mod remediation;
pub mod resources;
pub mod retry;
pub mod schedules;
mod shares;
pub mod standing;
mod subject;
mod turn;
pub mod views;
pub mod waits;

pub use answer::MAX_DECISION_BYTES;
pub use message::{Address, Message};

use crate::checks;
use crate::ports::{PortError, Ports};
use crate::protocol::sweep::Tick;
use crate::protocol::{Engine, Handled, Inbox, Letter};
use keelway_domain::cause::Cause;
use keelway_domain::event::{APPROVAL_SOURCE, CloudEvent, EventType, Kind, SOURCE};
use keelway_domain::schedules::Input as Scheduled;
use keelway_domain::sequences::{Duty, Execution, Input, ReactionKind};
use keelway_domain::shipyard::Shipyard;
use keelway_domain::time::Span;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The engine's name.
pub const NAME: &str = "sequences";

/// Settings of the installation; a project's manifest may override the deadlines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// How long an executor has to answer a task's trigger. Default 10 min.
    pub start_deadline: Span,
    /// How long it has from `.started` to `.finished`; 0 = for ever. Default 24 h.
    pub task_timeout: Span,
    /// How long history and payloads are kept after they were written. Default 90 days.
    pub retention: Span,
    /// The largest event, as EventBridge counts it, in bytes. Default 240 KB.
    pub max_event_bytes: usize,
    /// The most executions of one context: triggers that start each other would otherwise go on for ever. Default 1,000.
    pub max_executions: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            start_deadline: Span::minutes(10),
            task_timeout: Span::minutes(24 * 60),
            retention: Span::minutes(90 * 24 * 60),
            max_event_bytes: 240 * 1024,
            max_executions: 1000,
        }
    }
}

/// A delivery of this engine.
pub type Delivery = crate::protocol::Delivery<Message>;
/// A delivery's content.
pub type Body = crate::protocol::Body<Message>;
/// An execution and the version of its item.
pub type Loaded = crate::protocol::Loaded<Execution>;

/// The engine on its ports. Its only state is a cache of immutable shipyard revisions.
pub struct Sequences<P> {
    ports: P,
    limits: Limits,
    revisions: Mutex<HashMap<(String, String), Arc<Shipyard>>>,
}

impl<P: Ports> Sequences<P> {
    /// An engine on these ports.
    pub fn new(ports: P, limits: Limits) -> Self {
        Self { ports, limits, revisions: Mutex::new(HashMap::new()) }
    }

    /// The same, with the revisions that another one remembers.
    pub fn remembering(self, other: &Self) -> Self {
        let revisions = other.remembered().clone();
        Self { revisions: Mutex::new(revisions), ..self }
    }

    /// Whether both remember the same revisions: what they are never changes.
    pub fn remembers_what(&self, other: &Self) -> bool {
        let names = |engine: &Self| engine.remembered().keys().cloned().collect::<HashSet<_>>();
        names(self) == names(other)
    }

    fn remembered(&self) -> MutexGuard<'_, HashMap<(String, String), Arc<Shipyard>>> {
        self.revisions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Settings of the installation.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    async fn on_event(&self, event: &CloudEvent, cause: Cause) -> Result<Handled, PortError> {
        let sent = cause.sent;
        if event.ty == checks::CHECK {
            return checks::record(&self.ports, event, cause).await;
        }
        // The bus's rule keeps our own events out, so an event under our name that arrives here is forged.
        if [SOURCE, APPROVAL_SOURCE].contains(&event.source.as_str()) {
            return self.refuse(event, sent, "forged: this source is the engine's own").await;
        }
        match EventType::parse(&event.ty) {
            EventType::Sequence(stage, sequence, Kind::Triggered) => self.accept(event, (&stage, &sequence), sent, cause).await,
            EventType::Task(_, Kind::Started) => self.answer(event, ReactionKind::Started, sent, cause).await,
            EventType::Task(_, Kind::Finished) => self.answer(event, ReactionKind::Finished, sent, cause).await,
            EventType::Task(_, Kind::StatusChanged) => self.status_changed(event, sent).await,
            EventType::Task(_, Kind::Triggered) => {
                self.refuse(event, sent, "tasks are triggered by the engine: trigger a sequence instead").await
            }
            EventType::Sequence(..) => {
                let reason = "a sequence's started and finished are sent by the engine: nobody else can say so";
                self.refuse(event, sent, reason).await
            }
            EventType::Other(name) => self.domain_event(event, &name, sent).await,
        }
    }

    async fn on_message(&self, message: &Message, cause: Cause) -> Result<Handled, PortError> {
        match message {
            Message::Granted { to, ask, payload } => self.turn(to, Input::Granted(*ask), payload, cause).await,
            Message::Wake { to, at } => self.turn(to, Input::Wake(*at), "", cause).await,
            Message::Obey { to } => self.turn(to, Input::Obey, "", cause).await,
            Message::Abort { to } => self.turn(to, Input::Abort, "", cause).await,
            Message::Supersede { to, by } => self.turn(to, Input::Superseded(by), "", cause).await,
            Message::Settle { to } => self.turn(to, Input::Settle, "", cause).await,
            Message::Follow { to, record, n } => self.follow(to, record, *n, cause).await,
            Message::Start { to, event, .. } => self.start_on_event(to, event, message, cause).await,
            Message::Conform { project, context, after } => self.conform(project, context, after).await,
            Message::Planned { project, schedule } => self.scheduled(project, schedule, Scheduled::Look, cause).await,
            Message::Due { project, schedule, at } => self.scheduled(project, schedule, Scheduled::Due(*at), cause).await,
            Message::Fire { to, schedule, firing } => self.fire(to, schedule, firing, cause).await,
            Message::Windows { project } => self.windows_changed(project).await,
            Message::Retry { to, of, from, by } => self.start_again(to, *of, (*from, by), cause).await,
            Message::Decide { to, trigger, event } => self.decision(to, *trigger, event, cause.sent, cause).await,
        }
    }
}

impl<P: Ports> Inbox for Sequences<P> {
    type Ports = P;
    type Message = Message;

    const NAME: &'static str = NAME;

    fn ports(&self) -> &P {
        &self.ports
    }
    fn retention(&self) -> Span {
        self.limits.retention
    }
    async fn event(&self, event: &CloudEvent, cause: Cause) -> Result<Handled, PortError> {
        self.on_event(event, cause).await
    }
    async fn message(&self, message: &Message, cause: Cause) -> Result<Handled, PortError> {
        self.on_message(message, cause).await
    }
}

impl<P: Ports> Engine<Execution> for Sequences<P> {
    async fn perform(&self, x: &Execution, duty: &Duty) -> Result<(), PortError> {
        self.fulfil(x, duty).await
    }
    async fn look(&self, open: &[Loaded], tick: &mut Tick) -> Result<Vec<Letter>, PortError> {
        self.overdue(open, tick).await
    }
}
