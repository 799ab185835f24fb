//! Records of what happened: events, transition records, tombstones, input that could not be used. All are written without
//! conditions, because their keys end in the hash of their content; all but tombstones expire.

use super::Engine;
use crate::item::Item;
use crate::keys;
use crate::message::Handled;
use crate::ports::{Limits, PortError, Ports, Store};
use crate::table;
use keelway_domain::event::{CloudEvent, Kind, Object};
use keelway_domain::ids::{RecordId, hash64};
use keelway_domain::names::{Context, ProjectName};
use keelway_domain::sequences::{Record, content};
use keelway_domain::time::Timestamp;
use serde_json::Value;

/// Of input that cannot be used, at most this many bytes are kept.
const KEPT_OF_INVALID: usize = 200 * 1024;

/// What is said of a recorded event that did not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// It came after the task was over.
    Stale,
    /// It could not be used, for this reason.
    Invalid(&'a str),
    /// It counts, or is kept as history.
    None,
}

/// A reason quotes what was given; what was given may be long.
fn short(reason: &str) -> String {
    reason.chars().take(1000).collect()
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
    let key = crate::item::Key::new(keys::context_partition(project, &event.context), keys::event_sort(at, content(event)));
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
        triggered_id: text("triggeredid"),
        git_commit_id: text("gitcommitid"),
        data: json.get("data").and_then(Value::as_object).cloned().unwrap_or_else(Object::new),
    })
}

/// A transition record as an item.
pub fn record(limits: &Limits, project: &ProjectName, context: &Context, id: &RecordId, record: &Record, now: Timestamp) -> Item {
    Item::new(keys::record(project, context, id)).with("j", record.to_bytes()).with("ttl", expires(limits, now))
}

/// A tombstone.
pub fn tombstone(project: &ProjectName, execution: keelway_domain::ids::ExecutionId) -> Item {
    Item::new(keys::tombstone(project, execution))
}

/// Records input that belongs to no context.
pub async fn invalid(store: &impl Store, limits: &Limits, at: Timestamp, reason: &str, text: &str) -> Result<Handled, PortError> {
    let kept: String = text.char_indices().take_while(|(i, c)| i + c.len_utf8() <= KEPT_OF_INVALID).map(|(_, c)| c).collect();
    let item = Item::new(keys::invalid(at, hash64(&[text.as_bytes()])))
        .with("why", short(reason))
        .with("b", kept)
        .with_some("cut", (text.len() > KEPT_OF_INVALID).then_some(true))
        .with("ttl", expires(limits, at));
    table::record(store, vec![item], vec![]).await?;
    tracing::warn!(reason = short(reason), "input recorded as invalid");
    Ok(Handled::Invalid)
}

impl<P: Ports> Engine<P> {
    /// Records an event that cannot be used, in its context if it names one, and is done with it.
    pub(super) async fn refuse(&self, event: &CloudEvent, at: Timestamp, reason: &str) -> Result<Handled, PortError> {
        match event.text("project").and_then(|name| ProjectName::new(name).ok()) {
            Some(project) if event.size() <= self.limits.max_event_bytes => {
                let item = self::event(&self.limits, &project, event, at, Verdict::Invalid(reason));
                table::record(&self.ports, vec![item], vec![]).await?;
                tracing::warn!(project = %project, context = %event.context, event = event.id, reason = short(reason), "event recorded as invalid");
                Ok(Handled::Invalid)
            }
            _ => invalid(&self.ports, &self.limits, at, reason, &event.to_bytes()).await,
        }
    }

    /// Records an event with what is said of it.
    pub(super) async fn keep(
        &self,
        project: &ProjectName,
        event: &CloudEvent,
        at: Timestamp,
        verdict: Verdict<'_>,
    ) -> Result<(), PortError> {
        table::record(&self.ports, vec![self::event(&self.limits, project, event, at, verdict)], vec![]).await
    }

    /// `.status.changed`: shown in the timeline, decides nothing.
    pub(super) async fn status_changed(&self, event: &CloudEvent, at: Timestamp) -> Result<Handled, PortError> {
        if let Some(reason) = self.oversize(event) {
            return self.refuse(event, at, &reason).await;
        }
        let (project, to, trigger) = match self.answered(event) {
            Ok(answered) => answered,
            Err(reason) => return self.refuse(event, at, reason).await,
        };
        let Some(loaded) = self.execution(&to).await? else {
            return self.refuse(event, at, super::react::UNKNOWN_TRIGGER).await;
        };
        let open = loaded.x.open && loaded.x.record == Some(trigger);
        self.keep(&project, event, at, if open { Verdict::None } else { Verdict::Stale }).await?;
        Ok(if open { Handled::Recorded } else { Handled::Stale })
    }

    /// Whether an event is too large to be taken at all.
    pub(super) fn oversize(&self, event: &CloudEvent) -> Option<String> {
        let (size, limit) = (event.size(), self.limits.max_event_bytes);
        (size > limit)
            .then(|| format!("the event has {size} bytes, {limit} are allowed: hand on a reference instead of the content"))
    }

    /// The kinds of `Other` events that are kept and do nothing, as in Keptn.
    pub(super) fn is_history(name: &str) -> bool {
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
