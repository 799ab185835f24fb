//! CloudEvents as Keptn uses them: the envelope, the grammar of types, results and states.

#![expect(missing_docs, reason = "names that say what they are need no documentation")]

use crate::names::{Context, SequenceName, StageName, TaskName};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The largest `data.labels` of an event, in bytes. Labels are repeated in events that carry no other data.
pub const MAX_LABELS_BYTES: usize = 16 * 1024;

/// A JSON object.
pub type Object = Map<String, Value>;

/// The prefix of every event type of this engine.
pub const PREFIX: &str = "sh.keptn.event.";
/// The type of the event about an entry of the audit.
pub const AUDIT: &str = "dev.keelway.audit";
/// The `source` of events that the engine sends; Keptn's clients expect it.
pub const SOURCE: &str = "shipyard-controller";
/// The type of the event about a task that its sequence has given up.
pub const CANCELLED: &str = "dev.keelway.task.cancelled";
/// The attribute of an answer that the API has published for others: it is handled, and the rule of sequences leaves it alone.
pub const HANDLED: &str = "keelwayhandled";
/// The `source` of events that the engine sends about approvals.
pub const APPROVAL_SOURCE: &str = "approval-service";
/// The `source` of an event that came without one, as Keptn's API sets it.
pub const DEFAULT_SOURCE: &str = "https://github.com/keptn/keptn/api";
/// The member of a sequence's data that names the promotion which it carries out:
/// `{namespace, pipeline, environment, revision, run}`. The sequence's `.finished` repeats it.
pub const PROMOTION: &str = "promotion";
/// The attribute with the identities of those who triggered by an event, one in each line. Clients of the API cannot set it;
/// whoever may put events on the bus can.
pub const AUTHORS: &str = "keelwayauthors";
/// The version of the Keptn specification the events follow.
pub const SPEC_VERSION: &str = "0.2.4";

/// A CloudEvent in structured JSON with Keptn's extensions. Absent attributes are empty or `None`.
#[derive(Debug, Clone, PartialEq)]
pub struct CloudEvent {
    /// Unique together with `source`.
    pub id: String,
    pub source: String,
    /// For example `sh.keptn.event.deployment.finished`.
    pub ty: String,
    /// When it was sent, according to the sender.
    pub time: Timestamp,
    /// The attribute `shkeptncontext`.
    pub context: Context,
    /// The verified identities of those who triggered by this event ([`AUTHORS`]). Empty: they are not known.
    pub authors: Vec<String>,
    /// The attribute `triggeredid`: the id of the `.triggered` event that this event answers.
    pub triggered_id: Option<String>,
    /// The attribute `gitcommitid`: the configuration that executors should use.
    pub git_commit_id: Option<String>,
    /// The member `data`, always an object.
    pub data: Object,
}

impl CloudEvent {
    /// The event as structured JSON.
    pub fn to_json(&self) -> Value {
        let mut members = self.head();
        members.insert("data".to_owned(), Value::Object(self.data.clone()));
        Value::Object(members)
    }

    /// All members but `data`.
    fn head(&self) -> Object {
        let mut members = Object::new();
        let mut put = |name: &str, value: &str| drop(members.insert(name.to_owned(), Value::from(value)));
        put("specversion", "1.0");
        put("datacontenttype", "application/json");
        put("shkeptnspecversion", SPEC_VERSION);
        put("id", &self.id);
        put("source", &self.source);
        put("type", &self.ty);
        put("time", &self.time.rfc3339());
        put("shkeptncontext", self.context.as_str());
        if !self.authors.is_empty() {
            put(AUTHORS, &self.authors.join("\n"));
        }
        if let Some(id) = &self.triggered_id {
            put("triggeredid", id);
        }
        if let Some(id) = &self.git_commit_id {
            put("gitcommitid", id);
        }
        members
    }

    /// The value of [`AUTHORS`].
    pub fn authors_of(json: &Value) -> Vec<String> {
        let text = json.get(AUTHORS).and_then(Value::as_str).unwrap_or_default();
        text.lines().filter(|author| !author.is_empty()).map(str::to_owned).collect()
    }

    /// The bytes that are put on the bus. Equal events have equal bytes.
    pub fn to_bytes(&self) -> String {
        crate::json::canonical_with(&self.head(), "data", &self.data)
    }

    /// The size of the bus entry as EventBridge counts it: source, detail type and detail, in bytes of UTF-8.
    pub fn size(&self) -> usize {
        self.source.len() + self.ty.len() + self.to_bytes().len()
    }

    /// A string member of `data`. An empty string counts as absent.
    pub fn text(&self, field: &str) -> Option<&str> {
        self.data.get(field).and_then(Value::as_str).filter(|text| !text.is_empty())
    }
}

/// A parsed event type. The prefix must match; Keptn does not check it, and processes misspelt types halfway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventType {
    /// `sh.keptn.event.<stage>.<sequence>.triggered|started|finished`.
    Sequence(StageName, SequenceName, Kind),
    /// `sh.keptn.event.<task>.triggered|started|status.changed|finished`.
    Task(TaskName, Kind),
    /// Any other type, without the prefix: possibly a domain event that starts a sequence.
    Other(String),
}

/// The last part of the type of a sequence's or task's event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Triggered,
    Started,
    /// `.status.changed`, only of tasks.
    StatusChanged,
    Finished,
}

impl Kind {
    /// The text in the type.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Triggered => "triggered",
            Kind::Started => "started",
            Kind::StatusChanged => "status.changed",
            Kind::Finished => "finished",
        }
    }
    fn parse(text: &str) -> Option<Self> {
        [Kind::Triggered, Kind::Started, Kind::Finished].into_iter().find(|kind| kind.as_str() == text)
    }
}

impl EventType {
    /// Parses a type. Text that does not follow the grammar is [`EventType::Other`], never an error.
    pub fn parse(ty: &str) -> Self {
        Self::known(ty).unwrap_or_else(|| Self::Other(ty.strip_prefix(PREFIX).unwrap_or(ty).to_owned()))
    }

    fn known(ty: &str) -> Option<Self> {
        let parts: Vec<&str> = ty.strip_prefix(PREFIX)?.split('.').collect();
        match parts[..] {
            [task, "status", "changed"] => Some(Self::Task(TaskName::new(task).ok()?, Kind::StatusChanged)),
            [task, kind] => Some(Self::Task(TaskName::new(task).ok()?, Kind::parse(kind)?)),
            [stage, sequence, kind] => {
                Some(Self::Sequence(StageName::new(stage).ok()?, SequenceName::new(sequence).ok()?, Kind::parse(kind)?))
            }
            _ => None,
        }
    }

    /// The type of a task's event.
    pub fn task(task: &str, kind: Kind) -> String {
        format!("{PREFIX}{task}.{}", kind.as_str())
    }

    /// The type of a sequence's event.
    pub fn sequence(stage: &StageName, sequence: &SequenceName, kind: Kind) -> String {
        format!("{PREFIX}{stage}.{sequence}.{}", kind.as_str())
    }
}

/// The result of a task or sequence (`data.result`), from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskResult {
    Pass,
    /// Not good, but the sequence continues.
    Warning,
    Fail,
}

impl TaskResult {
    /// Parses a result. As in Keptn, everything except `pass` and `warning` is `fail`.
    pub fn of(text: Option<&str>) -> Self {
        match text {
            Some("pass") => Self::Pass,
            Some("warning") => Self::Warning,
            _ => Self::Fail,
        }
    }
    /// The text in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Warning => "warning",
            Self::Fail => "fail",
        }
    }
}

/// Whether the executor could do its work (`data.status`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Succeeded,
    Errored,
    Aborted,
    /// Anything else.
    Unknown,
}

impl Status {
    /// Parses a status. Anything unknown is `unknown`.
    pub fn of(text: Option<&str>) -> Self {
        match text {
            Some("succeeded") => Self::Succeeded,
            Some("errored") => Self::Errored,
            Some("aborted") => Self::Aborted,
            _ => Self::Unknown,
        }
    }
    /// The text in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Errored => "errored",
            Self::Aborted => "aborted",
            Self::Unknown => "unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grammar_of_types() {
        let task = |name: &str, kind| EventType::Task(TaskName::new(name).unwrap(), kind);
        assert_eq!(EventType::parse("sh.keptn.event.get-action.triggered"), task("get-action", Kind::Triggered));
        assert_eq!(EventType::parse("sh.keptn.event.test.status.changed"), task("test", Kind::StatusChanged));
        assert_eq!(
            EventType::parse("sh.keptn.event.dev.delivery.finished"),
            EventType::Sequence(StageName::new("dev").unwrap(), SequenceName::new("delivery").unwrap(), Kind::Finished)
        );
        for (ty, rest) in [
            ("sh.keptn.event.production.problem.open", "production.problem.open"),
            ("sh.keptn.events.dev.delivery.triggered", "sh.keptn.events.dev.delivery.triggered"),
            ("garbage", "garbage"),
            ("sh.keptn.event.Dev.delivery.triggered", "Dev.delivery.triggered"),
            ("sh.keptn.event..triggered", ".triggered"),
        ] {
            assert_eq!(EventType::parse(ty), EventType::Other(rest.into()), "{ty}");
        }
    }

    #[test]
    fn an_event_names_its_authors_as_far_as_they_are_known() {
        let event = |authors: &[&str]| CloudEvent {
            id: "e-1".into(),
            source: "shop".into(),
            ty: "dev.shop.ordered".into(),
            time: Timestamp(0),
            context: Context::of("c"),
            authors: authors.iter().map(|author| (*author).to_owned()).collect(),
            triggered_id: None,
            git_commit_id: None,
            data: Object::new(),
        };
        for authors in [&[][..], &["token:ann"], &["token:ann", "a.test/bob"]] {
            let event = event(authors);
            let json: Value = serde_json::from_str(&event.to_bytes()).unwrap();
            assert_eq!(json.get(AUTHORS).is_some(), !authors.is_empty());
            assert_eq!(CloudEvent::authors_of(&json), event.authors);
        }
        assert_eq!(CloudEvent::authors_of(&serde_json::json!({AUTHORS: "\nann\n\n"})), ["ann"]);
        let event = event(&[]);
        assert_eq!(event.size(), "shop".len() + "dev.shop.ordered".len() + event.to_bytes().len());
    }
}
