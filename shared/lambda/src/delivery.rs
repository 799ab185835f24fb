//! From a queue's message to a delivery: a pure function, so that functions and tests read messages alike.

use keelway_domain::time::Timestamp;
use keelway_engine::protocol::{Body, Delivery};
use keelway_wire::cloudevent::from_bus_envelope;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The member that distinguishes our own messages from the bus's events in the queue.
const OWN: &str = "keelway";
/// How much of an unusable input is kept, in bytes.
const MAX_TEXT: usize = 64 * 1024;

/// One of our own messages that this version does not understand: perhaps a newer version sent it while both are deployed. It must
/// be delivered again, and become a dead letter if no version ever understands it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this version does not understand a message of Keelway's own, of kind {kind:?}")]
pub struct NotUnderstood {
    kind: String,
}

/// Reads a message's body. `sent` is the message's `SentTimestamp`, the same on every redelivery; it stands for an event's absent
/// time. `again`: the message was delivered before.
///
/// # Errors
/// Only for messages of our own; everything else is at least [`Body::Invalid`].
pub fn delivery<M: DeserializeOwned>(body: &str, sent: Timestamp, again: bool) -> Result<Delivery<M>, NotUnderstood> {
    let invalid = |reason: String| Delivery { sent, again, body: Body::Invalid { reason, text: shortened(body) } };
    let json: Value = match serde_json::from_str(body) {
        Ok(json) => json,
        Err(error) => return Ok(invalid(format!("the message is not JSON: {error}"))),
    };
    if let Some(kind) = json.get(OWN) {
        // Only the kind is named: the parser's own text would copy the message's content into the log.
        let kind: String = kind.as_str().unwrap_or("not text").chars().take(20).collect();
        let message: M = serde_json::from_value(json).map_err(|_| NotUnderstood { kind })?;
        return Ok(Delivery { sent, again, body: Body::Own(message) });
    }
    Ok(match from_bus_envelope(&json, sent) {
        Ok(event) => Delivery { sent, again, body: Body::Event(event) },
        Err(error) => invalid(error.to_string()),
    })
}

/// As much of an unusable input as is kept.
pub fn shortened(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_TEXT)].to_owned()
}

/// What a delivery is about, for logs and for keeping one context's messages apart from another's.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct About {
    /// `sequence.triggered`, `task.finished`, `event`, `granted`, `wake`, …, `invalid`.
    pub kind: &'static str,
    /// The project, if it names one.
    pub project: Option<String>,
    /// The context, if it names one.
    pub context: Option<String>,
    /// The subject it is addressed to (an execution, for example), if known.
    pub subject: Option<String>,
}

impl About {
    /// The same for all deliveries about one context of one project; `None` when the delivery has no context.
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

    fn read(body: &str) -> Result<Delivery<Message>, NotUnderstood> {
        delivery(body, SENT, false)
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
        let delivery = read(&envelope.to_string()).unwrap();
        let Body::Event(event) = &delivery.body else { panic!("{delivery:?}") };
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
