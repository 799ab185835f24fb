//! Parses a queue's message into a delivery. A pure function, which functions and tests share.

use keelway_domain::stored::Stored;
use keelway_domain::time::Timestamp;
use keelway_engine::protocol::{Body, Incoming};
use keelway_wire::cloudevent::from_bus_envelope;
use serde_json::Value;

/// The member that distinguishes the engines' own messages from events of the bus.
const OWN: &str = "keelway";
/// How much of an invalid input is stored, in bytes.
const MAX_TEXT: usize = 64 * 1024;

/// The error of an own message that this version does not know: a newer version may have sent it during an update. It must be
/// delivered again, and become a dead letter if no version ever knows it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this version does not understand a message of Keelway's own, of kind {kind:?}")]
pub struct NotUnderstood {
    kind: String,
}

/// Parses the body of a message. `sent`: the message's `SentTimestamp`, which redeliveries share; it replaces a missing time of an
/// event. `again`: whether this is a redelivery.
///
/// # Errors
/// An own message is unknown. Everything else is at least [`Body::Invalid`].
pub fn incoming<M: Stored>(body: &str, sent: Timestamp, again: bool) -> Result<Incoming<M>, NotUnderstood> {
    let invalid = |reason: String| Incoming { sent, again, body: Body::Invalid { reason, text: shortened(body) } };
    let json: Value = match serde_json::from_str(body) {
        Ok(json) => json,
        Err(error) => return Ok(invalid(format!("the message is not JSON: {error}"))),
    };
    if let Some(kind) = json.get(OWN) {
        // Only the kind is named: the parser's text would copy the content of the message into the log.
        let kind: String = kind.as_str().unwrap_or("not text").chars().take(20).collect();
        let message = M::from_json(body).map_err(|_| NotUnderstood { kind })?;
        return Ok(Incoming { sent, again, body: Body::Own(message) });
    }
    Ok(match from_bus_envelope(&json, sent) {
        Ok(event) => Incoming { sent, again, body: Body::Event(event) },
        Err(error) => invalid(error.to_string()),
    })
}

/// As much of an unusable input as is kept.
pub fn shortened(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_TEXT)].to_owned()
}

/// The subject of a delivery: for logs, and to handle the messages of one context in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct About {
    /// `sequence.triggered`, `task.finished`, `event`, `granted`, `wake`, …, `invalid`.
    pub kind: &'static str,
    /// The project, if the message names one.
    pub project: Option<String>,
    /// The context, if the message names one.
    pub context: Option<String>,
    /// The subject to which the message is addressed (an execution, for example), if known.
    pub subject: Option<String>,
}

impl About {
    /// A key that all deliveries about one context of one project share. `None`: the delivery has no context.
    pub fn together(&self) -> Option<String> {
        let context = self.context.as_ref()?;
        Some(format!("{}/{context}", self.project.as_deref().unwrap_or_default()))
    }

    /// The span of everything that is logged about the delivery.
    pub fn span(&self, message_id: &str) -> tracing::Span {
        tracing::info_span!(
            "message",
            message.id = message_id,
            message.kind = self.kind,
            project = self.project,
            context = self.context,
            subject = self.subject,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use keelway_engine::sequences::Message;
    use serde_json::json;

    const SENT: Timestamp = Timestamp(1_795_222_266_686);

    fn read(body: &str) -> Result<Incoming<Message>, NotUnderstood> {
        incoming(body, SENT, false)
    }

    #[test]
    fn a_message_of_a_newer_version_is_neither_handled_nor_dropped() {
        let error = read(r#"{"keelway":"promote","to":"s3cret"}"#).unwrap_err();
        assert_eq!(error.to_string(), "this version does not understand a message of Keelway's own, of kind \"promote\"");
        assert!(read(r#"{"keelway":"wake"}"#).is_err());
    }

    #[test]
    fn an_event_in_its_envelope() {
        let event = json!({
            "specversion": "1.0", "id": "1", "source": "me", "type": "sh.keptn.event.dev.delivery.triggered",
            "shkeptncontext": "c-1", "datacontenttype": "application/json", "data": {"project": "shop", "stage": "dev", "service": "cart"},
        });
        let envelope = json!({"version": "0", "detail-type": event["type"], "source": "me", "detail": event});
        let incoming = read(&envelope.to_string()).unwrap();
        let Body::Event(event) = &incoming.body else { panic!("{incoming:?}") };
        assert_eq!(event.time, SENT, "an absent time is the time of sending, the same on every redelivery");
    }

    #[test]
    fn anything_else_is_kept_as_invalid() {
        for (body, says) in [("not json", "not JSON"), ("[1]", "detail"), ("{}", "detail"), (r#"{"detail":{}}"#, "specversion")] {
            let Body::Invalid { reason, text } = read(body).unwrap().body else { panic!("{body}") };
            assert!(reason.contains(says), "{reason}");
            assert_eq!(text, body);
        }
        let long = "\u{e4}".repeat(MAX_TEXT);
        let Body::Invalid { text, .. } = read(&long).unwrap().body else { panic!() };
        assert_eq!(text.len(), MAX_TEXT);
    }
}
