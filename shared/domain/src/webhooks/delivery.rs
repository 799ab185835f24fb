//! The delivery of one event to one subscription.

use super::decide::LONGEST_PAUSE;
use crate::event::{EventType, Kind, Object, Status, TaskResult};
use crate::ids::{RecordId, SubjectId, event_id, hash64};
use crate::record::{Answers, Draft};
use crate::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A transition record of a delivery.
pub type Record = crate::record::Record<Nothing>;

/// The effects of deliveries on other subjects: there are none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Nothing {}

crate::recorded!(Nothing);

/// The state of a delivery: its attempts, and when the next one is due.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery {
    /// The id of the delivery; see [`id`].
    pub id: SubjectId,
    /// Namespace and name of the subscription.
    pub of: (String, String),
    /// The event, as structured JSON.
    pub event: Value,
    /// Distinguishes a delivery that a person asked for again from the first one.
    pub again: Option<String>,
    /// When it began.
    pub began: Timestamp,
    /// Which answers Keelway gives in the receiver's place.
    pub executor: Executor,
    /// The attempts, oldest first.
    pub attempts: Vec<Exchange>,
    /// When the next attempt is due. `None`: the delivery has ended.
    pub due: Option<Timestamp>,
    /// How it ended.
    pub end: Option<End>,
    /// The effect of the last attempt on the subscription, which the engine notes there.
    pub health: Option<Health>,
    /// If that effect disables the subscription: since when it had taken events at the time of the attempt.
    pub since: Option<Timestamp>,
    /// The last transition record.
    pub record: Option<RecordId>,
}

/// The answers to a task's trigger that Keelway gives in the receiver's place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Executor {
    /// Send `.started` when the delivery begins.
    #[serde(rename = "s", default, skip_serializing_if = "std::ops::Not::not")]
    pub started: bool,
    /// Send `.finished` when the delivery ends.
    #[serde(rename = "f", default, skip_serializing_if = "std::ops::Not::not")]
    pub finished: bool,
}

/// One request and its answer, without secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// When the request was made: the time in its signature.
    #[serde(rename = "t")]
    pub at: Timestamp,
    /// The status of the answer, if there was one.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The duration in milliseconds.
    #[serde(rename = "m", default)]
    pub ms: u64,
    /// The beginning of the answer.
    #[serde(rename = "a", default, skip_serializing_if = "String::is_empty")]
    pub answer: String,
    /// Why there was no answer, or why the answer does not count.
    #[serde(rename = "e", default, skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// The pause that the receiver asked for with 429 or 503.
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Span>,
}

/// The most characters of an answer that are stored.
const EXCERPT: usize = 500;
/// Statuses with which a receiver may ask for a pause.
const BUSY: [u16; 2] = [429, 503];

fn excerpt(text: &str) -> String {
    text.chars().take(EXCERPT).collect()
}

impl Exchange {
    /// The request with its answer: the status, the text, and the pause that the receiver asked for, in seconds. The text must not
    /// contain secrets.
    #[must_use]
    pub fn answered(self, status: u16, text: &str, pause: Option<i64>) -> Self {
        let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let pause = pause.filter(|seconds| BUSY.contains(&status) && *seconds > 0);
        let error = if (300..400).contains(&status) { "redirects are not followed" } else { "" };
        Self {
            status: Some(status),
            answer: excerpt(plain.trim()),
            retry_after: pause.map(|seconds| Span::seconds(seconds.min(LONGEST_PAUSE.0 / 1000))),
            error: error.to_owned(),
            ..self
        }
    }

    /// The request without an answer, and why. The text must not contain secrets.
    #[must_use]
    pub fn unanswered(self, why: &str) -> Self {
        Self { error: excerpt(why), ..self }
    }

    /// Whether the receiver accepted the event.
    pub fn succeeded(&self) -> bool {
        self.status.is_some_and(|status| (200..300).contains(&status))
    }
}

/// The end of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum End {
    /// The receiver accepted the event.
    Delivered,
    /// No attempts are left.
    GivenUp,
    /// The receiver answered 410: it wants no more events.
    Gone,
    /// The subscription was disabled before the next attempt.
    Disabled,
    /// The subscription was deleted before the next attempt.
    Deleted,
    /// The task that the receiver was to carry out ended before the next attempt.
    TaskOver,
    /// The receiver's answer would not fit into an item.
    TooLarge,
}

impl End {
    /// The text in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::GivenUp => "givenUp",
            Self::Gone => "gone",
            Self::Disabled => "disabled",
            Self::Deleted => "deleted",
            Self::TaskOver => "taskOver",
            Self::TooLarge => "tooLarge",
        }
    }
}

/// The effect of an attempt on the health of the subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Health {
    /// It fails since this time.
    Failing(Timestamp),
    /// It works again, after failures since this time.
    Working(Timestamp),
    /// It is disabled, because the receiver answered 410.
    Gone(Timestamp),
    /// It is disabled, because no request has reached the receiver for too long: since when, and when this was found.
    Dead(Timestamp, Timestamp),
}

/// The id of a delivery: an event is delivered to a subscription once. `again` distinguishes repetitions that people asked for.
pub fn id(of: (&str, &str), source: &str, event: &str, again: Option<&str>) -> SubjectId {
    let again = again.unwrap_or_default();
    SubjectId(hash64(&[b"webhook", of.0.as_bytes(), of.1.as_bytes(), source.as_bytes(), event.as_bytes(), again.as_bytes()]))
}

impl Delivery {
    /// A delivery whose first attempt is due now.
    pub fn begin(of: (&str, &str), event: &Value, again: Option<&str>, executor: Executor, now: Timestamp) -> Self {
        let text = |name: &str| event.get(name).and_then(Value::as_str).unwrap_or_default();
        // A repetition of a delivery does not answer the task again.
        let answers = again.is_none() && matches!(EventType::parse(text("type")), EventType::Task(_, Kind::Triggered));
        Self {
            id: id(of, text("source"), text("id"), again),
            of: (of.0.to_owned(), of.1.to_owned()),
            event: event.clone(),
            again: again.map(str::to_owned),
            began: now,
            executor: if answers { executor } else { Executor::default() },
            attempts: vec![],
            due: Some(now),
            end: None,
            health: None,
            since: None,
            record: None,
        }
    }

    /// The `webhook-id`, which is the same for all attempts, and for a redelivery on request. It is a hash, because ids of events
    /// may contain any text.
    pub fn message_id(&self) -> String {
        let of = (self.of.0.as_str(), self.of.1.as_str());
        format!("msg_{}", id(of, self.text("source"), self.text("id"), None))
    }

    /// A string attribute of the event.
    pub fn text(&self, name: &str) -> &str {
        self.event.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// The answer to the task that the event triggers: `.finished` with this result, or `.started` for `None`.
    pub(super) fn answer(&self, result: Option<TaskResult>, now: Timestamp) -> Option<Draft> {
        let EventType::Task(task, Kind::Triggered) = EventType::parse(self.text("type")) else { return None };
        let given = self.event.get("data");
        let member = |name: &str| given.and_then(|data| data.get(name)).cloned().map(|value| (name.to_owned(), value));
        let mut data: Object = ["project", "stage", "service", "labels"].into_iter().filter_map(member).collect();
        let kind = match result {
            None => Kind::Started,
            Some(result) => {
                let status = if result == TaskResult::Pass { Status::Succeeded } else { Status::Errored };
                data.insert("status".into(), status.as_str().into());
                data.insert("result".into(), result.as_str().into());
                data.insert("message".into(), self.outcome().into());
                let answers: Vec<&str> = self.attempts.last().map(|last| last.answer.as_str()).into_iter().collect();
                data.insert(task.to_string(), json!({"webhook": self.of.1, "responses": answers}));
                Kind::Finished
            }
        };
        Some(Draft {
            id: Some(event_id(self.id, kind.as_str()).to_string()),
            ty: EventType::task(task.as_str(), kind),
            source: super::SOURCE.into(),
            time: now,
            answers: Answers::Event(self.text("id").to_owned()),
            context: Some(self.text("shkeptncontext").to_owned()),
            data,
            ..Draft::default()
        })
    }

    /// The end of the delivery in one sentence.
    pub fn outcome(&self) -> String {
        let webhook = format!("webhook {}", self.of.1);
        let last = self.attempts.last();
        let why = || match last {
            Some(Exchange { status: Some(status), error, .. }) if error.is_empty() => format!("it answered {status}"),
            Some(attempt) => attempt.error.clone(),
            None => String::new(),
        };
        let attempts = || format!("{} attempt{}", self.attempts.len(), if self.attempts.len() == 1 { "" } else { "s" });
        match self.end {
            None => format!("{webhook}: {} so far", attempts()),
            Some(End::Delivered) => format!("{webhook} answered {}", last.and_then(|last| last.status).unwrap_or_default()),
            Some(End::GivenUp) => format!("{webhook} was given up after {}: {}", attempts(), why()),
            Some(End::Gone) => format!("{webhook} answered 410 and is disabled"),
            Some(End::Disabled) => format!("{webhook} is disabled"),
            Some(End::Deleted) => format!("{webhook} was deleted"),
            Some(End::TaskOver) => format!("{webhook} was not asked: the task is over"),
            Some(End::TooLarge) => format!("{webhook} was not asked: the event is too large to keep its answer"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_answer_the_beginning_is_kept_on_one_line() {
        let told = |status, text: &str| Exchange::default().answered(status, text, None);
        assert_eq!(told(200, "\tso\nso "), Exchange { status: Some(200), answer: "so so".into(), ..Exchange::default() });
        assert_eq!(told(500, &"ä".repeat(501)).answer, "ä".repeat(500));
        assert_eq!(Exchange::default().unanswered(&"e".repeat(501)).error, "e".repeat(500));
        for (status, error) in [(299, ""), (301, "redirects are not followed"), (399, "redirects are not followed"), (400, "")] {
            assert_eq!(told(status, "").error, error, "{status}");
        }
    }

    #[test]
    fn a_busy_receiver_may_ask_for_a_day_at_most() {
        for (status, asked, pause) in [
            (429, 60, Some(Span::seconds(60))),
            (503, i64::MAX, Some(LONGEST_PAUSE)),
            (503, 0, None),
            (429, -1, None),
            (500, 60, None),
        ] {
            assert_eq!(Exchange::default().answered(status, "", Some(asked)).retry_after, pause, "{status} {asked}");
        }
    }

    #[test]
    fn a_message_has_one_id_whenever_and_however_often_it_is_sent() {
        let id = |of: (&str, &str), event: &str, again: Option<&str>| {
            let event = serde_json::json!({"source": "keelway", "id": event});
            Delivery::begin(of, &event, again, Executor::default(), Timestamp(0)).message_id()
        };
        let one = id(("shop", "chat"), "e-1", None);
        assert!(one.strip_prefix("msg_").is_some_and(|hash| !hash.is_empty()), "{one}");
        assert_eq!(id(("shop", "chat"), "e-1", Some("ann")), one, "a redelivery on request");
        for other in [id(("shop", "mail"), "e-1", None), id(("cart", "chat"), "e-1", None), id(("shop", "chat"), "e-2", None)] {
            assert_ne!(other, one);
        }
    }
}
