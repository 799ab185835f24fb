//! Answers that are stored without items of their own. The most frequent one is a `.started` that only says that an executor has
//! begun: one conditional write absorbs it, and it is so short that it is stored in the execution and then in its record. The
//! answer that completes a task is stored in the record of its commit at once: most of it is in the payload there, too, so the two
//! together take little more room than one.

#![expect(missing_docs, reason = "names that say what they are need no documentation")]

use super::Record;
use super::state::{EventRef, Execution, Reaction, ReactionKind};
use crate::event::{CloudEvent, EventType, Kind, Object};
use crate::ids::RecordId;
use crate::names::TaskName;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The longest source and id together, and the longest data besides the scope, in bytes. They keep the item of an execution below 1
/// KB.
const MAX_NAME_BYTES: usize = 200;
const MAX_DATA_BYTES: usize = 120;
/// The largest answer that is stored in the record of the commit that it completes a task with. In a larger one, what it has in
/// common with the payload is further away than compression looks back.
const MAX_COMPLETING_BYTES: usize = 16 * 1024;
/// The members of an answer's data that the execution itself knows.
const SCOPE: [&str; 3] = ["project", "stage", "service"];

/// An answer in short form: without what its execution knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bare {
    #[serde(rename = "s")]
    pub source: String,
    #[serde(rename = "i")]
    pub id: String,
    /// The time in the event.
    #[serde(rename = "t")]
    pub time: Timestamp,
    /// When it was accepted.
    #[serde(rename = "a")]
    pub at: Timestamp,
    /// The data besides the scope.
    #[serde(rename = "d", default, skip_serializing_if = "Object::is_empty")]
    pub data: Object,
    /// Whether it is a `.finished`.
    #[serde(rename = "f", default, skip_serializing_if = "std::ops::Not::not")]
    pub finished: bool,
    #[serde(rename = "g", default, skip_serializing_if = "Option::is_none")]
    pub git_commit_id: Option<String>,
}

impl Bare {
    fn new(event: &CloudEvent, kind: ReactionKind, at: Timestamp) -> Self {
        let data = event.data.iter().filter(|(name, _)| !SCOPE.contains(&name.as_str()));
        Self {
            source: event.source.clone(),
            id: event.id.clone(),
            time: event.time,
            at,
            data: data.map(|(name, value)| (name.clone(), value.clone())).collect(),
            finished: kind == ReactionKind::Finished,
            git_commit_id: event.git_commit_id.clone(),
        }
    }

    /// The short form of a `.started` of this task, if the event is short and adds nothing to the payload.
    pub fn of(event: &CloudEvent, task: &TaskName, at: Timestamp) -> Option<Self> {
        let bare = Self::new(event, ReactionKind::Started, at);
        let merges = Reaction::of(event, ReactionKind::Started, task.as_str(), at).has_data;
        let short = event.source.len() + event.id.len() <= MAX_NAME_BYTES
            && Value::Object(bare.data.clone()).to_string().len() <= MAX_DATA_BYTES;
        (short && !merges && event.git_commit_id.is_none()).then_some(bare)
    }

    /// The short form of the answer that completes a task of `x`, if it is not too large and nothing of it gets lost.
    pub fn completing(
        x: &Execution,
        task: &TaskName,
        trigger: &RecordId,
        answer: (ReactionKind, &CloudEvent, Timestamp),
    ) -> Option<Self> {
        let (kind, event, at) = answer;
        let bare = Self::new(event, kind, at);
        (event.size() <= MAX_COMPLETING_BYTES && bare.event(x, task.as_str(), trigger) == *event).then_some(bare)
    }

    /// The answers in a record that have no items of their own.
    pub fn all(record: &Record) -> Vec<Self> {
        let bare = |value: &Value| match value {
            Value::String(text) => serde_json::from_str(text).ok(),
            object => Self::deserialize(object).ok(),
        };
        record.inputs.iter().filter_map(bare).collect()
    }

    /// The original event.
    pub fn event(&self, x: &Execution, task: &str, trigger: &RecordId) -> CloudEvent {
        let mut data = self.data.clone();
        let scope = [x.project.as_str(), x.stage.as_str(), x.service.as_str()];
        data.extend(SCOPE.into_iter().zip(scope).map(|(name, value)| (name.to_owned(), json!(value))));
        CloudEvent {
            id: self.id.clone(),
            source: self.source.clone(),
            ty: EventType::task(task, if self.finished { Kind::Finished } else { Kind::Started }),
            time: self.time,
            context: x.context.clone(),
            authors: vec![],
            triggered_id: Some(trigger.uuid().to_string()),
            git_commit_id: self.git_commit_id.clone(),
            data,
        }
    }
}

/// The changes that the first `.started` of a task makes to an execution, without reading it. [`super::decide`] makes the same
/// changes.
pub struct First {
    pub reaction: Reaction,
    /// The event as the views show it.
    pub latest: EventRef,
    /// The event as it is stored.
    pub bare: Bare,
}

impl First {
    /// The changes for a `.started` of this task that was accepted at that time.
    pub fn of(event: &CloudEvent, task: &TaskName, at: Timestamp) -> Option<Self> {
        let bare = Bare::of(event, task, at)?;
        Some(Self { reaction: Reaction::of(event, ReactionKind::Started, task.as_str(), at), latest: EventRef::of(event), bare })
    }
}
