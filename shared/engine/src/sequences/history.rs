//! Records of what happened: events as received, tombstones. All are written without conditions, because their keys end in the hash
//! of their content; all but tombstones expire.

use super::{Limits, Sequences, keys};
use crate::item::{Item, Key};
use crate::ports::{PortError, Ports};
use crate::protocol::Handled;
use crate::protocol::invalid::{self, short};
use crate::table;
use keelway_domain::evaluations::{GET_SLI, SOURCE as EVALUATES};
use keelway_domain::event::{CloudEvent, EventType, Kind, MAX_LABELS_BYTES, Object};
use keelway_domain::ids::RecordId;
use keelway_domain::names::{Context, ProjectName};
use keelway_domain::sequences::{Standing, content, mismatch, standing};
use keelway_domain::time::Timestamp;
use serde_json::Value;

/// The verdict on a recorded event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// It came after the task was over.
    Stale,
    /// It could not be used, for this reason.
    Invalid(&'a str),
    /// It counts, or is kept as history.
    None,
}

fn expires(limits: &Limits, at: Timestamp) -> i64 {
    (at + limits.retention).0 / 1000
}

/// An event as an item; the project is the context's.
pub fn event(limits: &Limits, project: &ProjectName, event: &CloudEvent, at: Timestamp, verdict: Verdict<'_>) -> Item {
    let verdict = match verdict {
        Verdict::Stale => Some("stale".to_owned()),
        Verdict::Invalid(reason) => Some(format!("invalid: {}", short(reason))),
        Verdict::None => None,
    };
    let key = Key::new(keys::context_partition(project, &event.context), keys::event_sort(at, content(event)));
    Item::new(key).with("b", event.to_bytes()).with_some("vd", verdict).with("ttl", expires(limits, at))
}

/// Reads a recorded event.
pub fn decode(item: &Item) -> Option<CloudEvent> {
    let json: Value = serde_json::from_str(item.text("b")?).ok()?;
    from_json(&json)
}

/// Reads an event that this code has written.
pub fn from_json(json: &Value) -> Option<CloudEvent> {
    let text = |name: &str| json.get(name).and_then(Value::as_str).map(str::to_owned);
    Some(CloudEvent {
        id: text("id")?,
        source: text("source")?,
        ty: text("type")?,
        time: Timestamp::parse(&text("time")?)?,
        context: Context::new(text("shkeptncontext")?).ok()?,
        authors: CloudEvent::authors_of(json),
        triggered_id: text("triggeredid"),
        git_commit_id: text("gitcommitid"),
        data: json.get("data").and_then(Value::as_object).cloned().unwrap_or_else(Object::new),
    })
}

/// A tombstone.
pub fn tombstone(project: &ProjectName, execution: keelway_domain::ids::ExecutionId) -> Item {
    Item::new(keys::tombstone(project, execution))
}

impl<P: Ports> Sequences<P> {
    /// Records an event that cannot be used, in its context if it names one; nothing else happens.
    pub(crate) async fn refuse(&self, event: &CloudEvent, at: Timestamp, reason: &str) -> Result<Handled, PortError> {
        match event.text("project").and_then(|name| ProjectName::new(name).ok()) {
            Some(project) if event.size() <= self.limits.max_event_bytes => {
                let item = self::event(&self.limits, &project, event, at, Verdict::Invalid(reason));
                table::record(&self.ports, vec![item], vec![]).await?;
                tracing::warn!(project = %project, context = %event.context, event = event.id, reason = short(reason), "event recorded as invalid");
                Ok(Handled::Invalid)
            }
            _ => invalid::record(&self.ports, self.limits.retention, at, reason, &event.to_bytes()).await,
        }
    }

    /// Records an event with its verdict.
    pub(super) async fn keep(
        &self,
        project: &ProjectName,
        event: &CloudEvent,
        at: Timestamp,
        verdict: Verdict<'_>,
    ) -> Result<(), PortError> {
        table::record(&self.ports, vec![self::event(&self.limits, project, event, at, verdict)], vec![]).await
    }

    /// An event that is only kept: in its context's history if it names a project, otherwise among the inputs that cannot be used.
    pub(crate) async fn keep_history(&self, event: &CloudEvent, at: Timestamp) -> Result<Handled, PortError> {
        if let Some(reason) = self.oversize(event) {
            return self.refuse(event, at, &reason).await;
        }
        match event.text("project").map(ProjectName::new) {
            Some(Ok(project)) => self.keep(&project, event, at, Verdict::None).await?,
            Some(Err(error)) => return self.refuse(event, at, &format!("data.project: {error}")).await,
            None => {
                let reason = "kept here, because it has no data.project and so no place in the history of one";
                invalid::record(&self.ports, self.limits.retention, at, reason, &event.to_bytes()).await?;
            }
        }
        Ok(Handled::Recorded)
    }

    /// `.status.changed`: shown in the timeline, decides nothing.
    pub(crate) async fn status_changed(&self, event: &CloudEvent, at: Timestamp) -> Result<Handled, PortError> {
        if let Some(reason) = self.oversize(event) {
            return self.refuse(event, at, &reason).await;
        }
        let (to, trigger) = match self.answered(event) {
            Ok(answered) => answered,
            Err(reason) => return self.refuse(event, at, reason).await,
        };
        let Some(loaded) = self.execution(&to).await? else {
            return self.refuse(event, at, super::answer::UNKNOWN_TRIGGER).await;
        };
        let open = match standing(&loaded.x, trigger) {
            Standing::Unknown => return self.refuse(event, at, super::answer::UNKNOWN_TRIGGER).await,
            Standing::Late => false,
            Standing::Open => true,
        };
        if let Some((field, message)) = mismatch(&loaded.x, Kind::StatusChanged, event).filter(|_| open) {
            return self.refuse(event, at, &format!("{field}: {message}")).await;
        }
        self.keep(&to.project, event, at, if open { Verdict::None } else { Verdict::Stale }).await?;
        Ok(if open { Handled::Recorded } else { Handled::Stale })
    }

    /// Whether an event is too large to be accepted.
    pub fn oversize(&self, event: &CloudEvent) -> Option<String> {
        let (size, limit) = (event.size(), self.limits.max_event_bytes);
        if size > limit {
            return Some(format!("the event has {size} bytes, {limit} are allowed: hand on a reference instead of the content"));
        }
        let labels = event.data.get("labels").map_or(0, |labels| labels.to_string().len());
        (labels > MAX_LABELS_BYTES).then(|| {
            format!(
                "data.labels has {labels} bytes, {MAX_LABELS_BYTES} are allowed: hand on what is no label under a name of its own"
            )
        })
    }

    /// Whether an event is about values for an evaluation: the evaluations engine asks for them on the bus, and no task does.
    pub fn is_about_values(event: &CloudEvent) -> bool {
        let EventType::Task(task, kind) = EventType::parse(&event.ty) else { return false };
        let of_a_task = || event.triggered_id.as_deref().is_some_and(|id| RecordId::from_uuid(id).is_some());
        task.as_str() == GET_SLI && if kind == Kind::Triggered { event.source == EVALUATES } else { !of_a_task() }
    }

    /// The kinds of `Other` events that are kept and do nothing, as in Keptn.
    pub fn is_history(name: &str) -> bool {
        let known = ["sh.keptn.log.error", "sh.keptn.events.problem", "monitoring.configure"];
        known.contains(&name) || name.ends_with(".invalidated")
    }
}

/// The kind of a task event by its type's ending.
pub fn kind_of(ty: &str) -> Option<Kind> {
    [Kind::Triggered, Kind::Started, Kind::StatusChanged, Kind::Finished]
        .into_iter()
        .find(|kind| ty.ends_with(&format!(".{}", kind.as_str())))
}
