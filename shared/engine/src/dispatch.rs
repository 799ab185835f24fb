//! The inbox of sequences: it passes each input on to executions or to schedules, which share its queue.

use crate::checks;
use crate::ports::{PortError, Ports};
use crate::protocol::{Handled, Inbox};
use crate::sequences::{Message, NAME, Publishes, Sequences, is_taken};
use keelway_domain::cause::Cause;
use keelway_domain::event::{APPROVAL_SOURCE, CloudEvent, EventType, Kind, SOURCE};
use keelway_domain::schedules::Input as Scheduled;
use keelway_domain::sequences::{Input, ReactionKind};
use keelway_domain::time::Span;

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
    fn publishes(&self, event: &CloudEvent) -> bool {
        self.limits.publishes == Publishes::All || is_taken(event)
    }
    async fn event(&self, event: &CloudEvent, cause: Cause) -> Result<Handled, PortError> {
        self.on_event(event, cause).await
    }
    async fn message(&self, message: &Message, cause: Cause) -> Result<Handled, PortError> {
        self.on_message(message, cause).await
    }
}

impl<P: Ports> Sequences<P> {
    async fn on_event(&self, event: &CloudEvent, cause: Cause) -> Result<Handled, PortError> {
        let sent = cause.sent;
        if event.ty == checks::CHECK {
            return checks::record(&self.ports, event, cause).await;
        }
        // The bus's rule keeps our own events out, so an event under our name that arrives here is forged.
        if [SOURCE, APPROVAL_SOURCE].contains(&event.source.as_str()) {
            return self.refuse(event, sent, "forged: this source is the engine's own").await;
        }
        if Self::is_about_values(event) {
            return self.keep_history(event, sent).await;
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
            Message::Planned { project, schedule } => self.schedules().turn(project, schedule, Scheduled::Look, cause).await,
            Message::Due { project, schedule, at } => self.schedules().turn(project, schedule, Scheduled::Due(*at), cause).await,
            Message::Fire { to, schedule, firing } => self.fire(to, schedule, firing, cause).await,
            Message::Windows { project } => self.windows_changed(project).await,
            Message::Retry { to, of, from, by } => self.start_again(to, *of, (*from, by), cause).await,
            Message::Decide { to, trigger, event } => self.decision(to, *trigger, event, cause.sent, cause).await,
        }
    }
}
