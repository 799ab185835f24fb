//! The most frequent answer: a `.started` that says only that an executor began. It decides nothing else, so one conditional write
//! absorbs it, and it is short enough to be stored in the execution, and then in its record, instead of in an item of its own.

use super::state::{EventRef, Execution, Reaction, ReactionKind};
use crate::event::{CloudEvent, EventType, Kind, Object};
use crate::ids::RecordId;
use crate::names::TaskName;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The longest source and id together, and the most data besides the scope, in bytes. They keep an execution's item below 1 KB.
const MAX_NAME_BYTES: usize = 200;
const MAX_DATA_BYTES: usize = 120;
/// What the execution itself knows of an answer's data.
const SCOPE: [&str; 3] = ["project", "stage", "service"];

/// A `.started` in short form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bare {
    /// Its source.
    #[serde(rename = "s")]
    pub source: String,
    /// Its id.
    #[serde(rename = "i")]
    pub id: String,
    /// Its time.
    #[serde(rename = "t")]
    pub time: Timestamp,
    /// When it was accepted.
    #[serde(rename = "a")]
    pub at: Timestamp,
    /// Its data besides the scope.
    #[serde(rename = "d", default, skip_serializing_if = "Object::is_empty")]
    pub data: Object,
}

impl Bare {
    /// The short form of a `.started` of this task, if it is short and adds nothing to the payload.
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

    /// The event again.
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

/// What the first `.started` of a task adds to an execution that has not been read; [`super::decide`] gives the same result.
pub struct First {
    /// The reaction.
    pub reaction: Reaction,
    /// What the views show.
    pub latest: EventRef,
    /// The event, to be kept.
    pub bare: Bare,
}

impl First {
    /// Of a `.started` of this task, accepted at that time.
    pub fn of(event: &CloudEvent, task: &TaskName, at: Timestamp) -> Option<Self> {
        let bare = Bare::of(event, task, at)?;
        Some(Self { reaction: Reaction::of(event, ReactionKind::Started, task.as_str(), at), latest: EventRef::of(event), bare })
    }
}
