//! From a queue's message to a delivery: a pure function, so that functions and tests read messages alike.

use keelway_domain::event::{CloudEvent, EventType, Kind};
use keelway_domain::ids::{ExecutionId, RecordId};
use keelway_domain::names::ProjectName;
use keelway_domain::time::Timestamp;
use keelway_engine::message::{Address, Body, Delivery, Message};
use keelway_wire::cloudevent::from_bus_envelope;
use serde_json::Value;

/// The member that tells our own messages from what the bus puts into the queue.
const OWN: &str = "keelway";
/// How much of something unusable is kept, in bytes.
const MAX_TEXT: usize = 64 * 1024;

/// One of our own messages that this version does not understand: perhaps a newer version sent it, while both are at work. It must
/// come back, and if nobody ever understands it, become a dead letter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this version does not understand a message of Keelway's own, of kind {kind:?}")]
pub struct NotUnderstood {
    kind: String,
}

/// Reads a message's body. `sent` is the message's `SentTimestamp`, the same on every redelivery; it stands for an event's absent
/// time.
///
/// # Errors
/// Only for messages of our own; everything else is at least [`Body::Invalid`].
pub fn delivery(body: &str, sent: Timestamp) -> Result<Delivery, NotUnderstood> {
    let invalid = |reason: String| Delivery { sent, body: Body::Invalid { reason, text: shortened(body) } };
    let json: Value = match serde_json::from_str(body) {
        Ok(json) => json,
        Err(error) => return Ok(invalid(format!("the message is not JSON: {error}"))),
    };
    if let Some(kind) = json.get(OWN) {
        // Only the kind is told: the parser's own words would repeat what the message says into the log.
        let kind: String = kind.as_str().unwrap_or("not text").chars().take(20).collect();
        let message: Message = serde_json::from_value(json).map_err(|_| NotUnderstood { kind })?;
        return Ok(Delivery { sent, body: Body::Own(message) });
    }
    Ok(match from_bus_envelope(&json, sent) {
        Ok(event) => Delivery { sent, body: Body::Event(event) },
        Err(error) => invalid(error.to_string()),
    })
}

fn shortened(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_TEXT)].to_owned()
}

/// What a delivery is about, for logs and for keeping one context's messages apart from another's.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct About {
    /// `sequence.triggered`, `task.finished`, `event`, `granted`, `wake`, …, `invalid`.
    pub kind: &'static str,
    /// The project, if it says one.
    pub project: Option<String>,
    /// The context, if it says one.
    pub context: Option<String>,
    /// The execution, if it follows.
    pub execution: Option<String>,
}

impl About {
    /// What this delivery is about.
    pub fn of(delivery: &Delivery) -> Self {
        match &delivery.body {
            Body::Event(event) => Self::event(event),
            Body::Own(message) => Self::message(message),
            Body::Invalid { .. } => Self { kind: "invalid", ..Self::default() },
        }
    }

    fn event(event: &CloudEvent) -> Self {
        let project = event.text("project");
        let triggered = event.triggered_id.as_deref().and_then(RecordId::from_uuid).map(|record| record.execution);
        let (kind, execution) = match EventType::parse(&event.ty) {
            EventType::Sequence(_, _, Kind::Triggered) => {
                let project = project.and_then(|project| ProjectName::new(project).ok());
                let execution = project.map(|project| ExecutionId::of_trigger(&project, &event.context, &event.source, &event.id));
                ("sequence.triggered", execution)
            }
            EventType::Sequence(..) => ("sequence.other", None),
            EventType::Task(_, Kind::Triggered) => ("task.triggered", None),
            EventType::Task(_, Kind::Started) => ("task.started", triggered),
            EventType::Task(_, Kind::StatusChanged) => ("task.status.changed", triggered),
            EventType::Task(_, Kind::Finished) => ("task.finished", triggered),
            EventType::Other(_) => ("event", None),
        };
        Self {
            kind,
            project: project.map(str::to_owned),
            context: Some(event.context.to_string()),
            execution: execution.map(|execution| execution.to_string()),
        }
    }

    fn message(message: &Message) -> Self {
        let to = |kind: &'static str, to: &Address| Self {
            kind,
            project: Some(to.project.to_string()),
            context: Some(to.context.to_string()),
            execution: Some(to.execution.to_string()),
        };
        match message {
            Message::Granted { to: x, .. } => to("granted", x),
            Message::Follow { to: x, .. } => to("follow", x),
            Message::Start { to: x, .. } => to("start", x),
            Message::Wake { to: x, .. } => to("wake", x),
            Message::Obey { to: x } => to("obey", x),
            Message::Decide { to: x, .. } => to("decide", x),
            Message::Settle { to: x } => to("settle", x),
            Message::Conform { project, context } => {
                Self { kind: "conform", project: Some(project.to_string()), context: Some(context.to_string()), execution: None }
            }
        }
    }

    /// The same for all deliveries about one context of one project; `None` when it is about none.
    pub fn together(&self) -> Option<String> {
        let context = self.context.as_ref()?;
        Some(format!("{}/{context}", self.project.as_deref().unwrap_or_default()))
    }

    /// A span that everything logged about the delivery belongs to.
    pub fn span(&self, message_id: &str) -> tracing::Span {
        tracing::info_span!(
            "message",
            message.id = message_id,
            message.kind = self.kind,
            project = self.project,
            context = self.context,
            execution = self.execution,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use keelway_domain::names::Context;
    use serde_json::json;

    const SENT: Timestamp = Timestamp(1_795_222_266_686);

    fn to() -> Address {
        Address {
            project: ProjectName::new("shop").unwrap(),
            context: Context::new("0b9e7a44-1f7e-4abc-8123-5d2a5ef11ecf").unwrap(),
            execution: ExecutionId(42),
        }
    }

    #[test]
    fn our_own_messages_come_back_as_they_were_sent() {
        let message = Message::Wake { to: to(), at: SENT };
        let delivery = delivery(&message.to_body(), SENT).unwrap();
        assert_eq!(delivery, Delivery { sent: SENT, body: Body::Own(message) });
        let about = About::of(&delivery);
        assert_eq!((about.kind, about.project.as_deref()), ("wake", Some("shop")));
        assert_eq!(about.execution, Some(ExecutionId(42).to_string()));
        assert_eq!(about.together().as_deref(), Some("shop/0b9e7a44-1f7e-4abc-8123-5d2a5ef11ecf"));
    }

    #[test]
    fn a_message_of_a_newer_version_is_neither_handled_nor_dropped() {
        let error = delivery(r#"{"keelway":"promote","to":"s3cret"}"#, SENT).unwrap_err();
        assert_eq!(error.to_string(), "this version does not understand a message of Keelway's own, of kind \"promote\"");
        assert!(delivery(r#"{"keelway":"wake"}"#, SENT).is_err());
    }

    #[test]
    fn an_event_in_its_envelope() {
        let event = json!({
            "specversion": "1.0", "id": "1", "source": "me", "type": "sh.keptn.event.dev.delivery.triggered",
            "shkeptncontext": "c-1", "datacontenttype": "application/json", "data": {"project": "shop", "stage": "dev", "service": "cart"},
        });
        let envelope = json!({"version": "0", "detail-type": event["type"], "source": "me", "detail": event});
        let delivery = delivery(&envelope.to_string(), SENT).unwrap();
        let Body::Event(event) = &delivery.body else { panic!("{delivery:?}") };
        assert_eq!(event.time, SENT, "an absent time is the time of sending, the same on every redelivery");
        let about = About::of(&delivery);
        assert_eq!((about.kind, about.context.as_deref()), ("sequence.triggered", Some("c-1")));
        assert!(about.execution.is_some());
    }

    #[test]
    fn anything_else_is_kept_as_invalid() {
        for (body, says) in [("not json", "not JSON"), ("[1]", "detail"), ("{}", "detail"), (r#"{"detail":{}}"#, "specversion")] {
            let Body::Invalid { reason, text } = delivery(body, SENT).unwrap().body else { panic!("{body}") };
            assert!(reason.contains(says), "{reason}");
            assert_eq!(text, body);
        }
        let long = "\u{e4}".repeat(MAX_TEXT);
        let Body::Invalid { text, .. } = delivery(&long, SENT).unwrap().body else { panic!() };
        assert_eq!(text.len(), MAX_TEXT);
    }
}
