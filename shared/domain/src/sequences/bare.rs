//! The most frequent answer: a `.started` that only says that an executor has begun. One conditional write absorbs it, and it is so
//! short that it is stored in the execution and then in its record, not in an item of its own.

#![expect(missing_docs, reason = "names that say what they are need no documentation")]

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
/// The members of an answer's data that the execution itself knows.
const SCOPE: [&str; 3] = ["project", "stage", "service"];

/// A `.started` in short form.
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
}

impl Bare {
    /// The short form of a `.started` of this task, if the event is short and adds nothing to the payload.
    pub fn of(event: &CloudEvent, task: &TaskName, at: Timestamp) -> Option<Self> {
        let data: Object = event
            .data
            .iter()
            .filter(|(name, _)| !SCOPE.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let merges = Reaction::of(event, ReactionKind::Started, task.as_str(), at).has_data;
        let short = event.source.len() + event.id.len() <= MAX_NAME_BYTES
            && Value::Object(data.clone()).to_string().len() <= MAX_DATA_BYTES;
        let bare = Self { source: event.source.clone(), id: event.id.clone(), time: event.time, at, data };
        (short && !merges && event.git_commit_id.is_none()).then_some(bare)
    }

    /// The original event.
    pub fn event(&self, x: &Execution, task: &str, trigger: &RecordId) -> CloudEvent {
        let mut data = self.data.clone();
        let scope = [x.project.as_str(), x.stage.as_str(), x.service.as_str()];
        data.extend(SCOPE.into_iter().zip(scope).map(|(name, value)| (name.to_owned(), json!(value))));
        CloudEvent {
            id: self.id.clone(),
            source: self.source.clone(),
            ty: EventType::task(task, Kind::Started),
            time: self.time,
            context: x.context.clone(),
            authors: vec![],
            triggered_id: Some(trigger.uuid().to_string()),
            git_commit_id: None,
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
