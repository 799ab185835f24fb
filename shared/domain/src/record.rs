//! Transition records: the events and messages of a commit in final form, and the payload. The state names its record, so every
//! handler that loads the state can publish exactly the same bytes again. All engines use this format.

#![expect(missing_docs, reason = "names that say what they are need no documentation")]

use crate::cause::Cause;
use crate::event::{CloudEvent, Object};
use crate::ids::{RecordHash, RecordId, SubjectId};
use crate::json::canonical;
use crate::names::Context;
use crate::payload::merge;
use crate::stored::Recorded;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Record numbers of what lives for ever go round below this: a record's place in its subject's life has 12 bits.
pub(crate) const NUMBERS: u16 = 4000;

/// A transition record without its address. The serialised form is what is hashed and stored: members are only ever added,
/// with defaults, so that records of older versions keep their hashes.
///
/// `S` is an effect on another subject: each becomes one message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(bound(deserialize = "S: Deserialize<'de>"))]
pub struct Record<S> {
    /// The payload so far, without the properties that the shipyard adds for the next task.
    #[serde(rename = "b", default, skip_serializing_if = "Object::is_empty")]
    pub base: Object,
    /// The events of the commit, in the order of publication.
    #[serde(rename = "e", default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Draft>,
    /// The effects of the commit on other subjects.
    #[serde(rename = "f", default, skip_serializing_if = "Vec::is_empty")]
    pub sends: Vec<S>,
    /// Hashes of the answers that were absorbed since the previous record. The same answer again is a duplicate.
    #[serde(rename = "a", default, skip_serializing_if = "Vec::is_empty")]
    pub absorbed: Vec<u64>,
    /// Those answers that are not stored as items, in the format of their engine: objects, or texts in older records.
    #[serde(rename = "i", default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<Value>,
    /// The message that made the record ([`crate::cause::Cause::id`]). Only a redelivery of that message publishes it again.
    #[serde(rename = "m", default)]
    pub made_by: u64,
    /// When the record was made.
    #[serde(rename = "t", default)]
    pub at: Timestamp,
    /// Number and hash of the previous record.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<(u16, String)>,
    /// Remarks for readers of the timeline, for example that a list was cut.
    #[serde(rename = "n", default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// An event in a record.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Draft {
    /// The id. Absent: the address of the record, which depends only on its content.
    #[serde(rename = "i", default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(rename = "y")]
    pub ty: String,
    #[serde(rename = "s")]
    pub source: String,
    #[serde(rename = "t")]
    pub time: Timestamp,
    /// The event that it answers.
    #[serde(rename = "r", default, skip_serializing_if = "Answers::is_nothing")]
    pub answers: Answers,
    /// The context, if it is not that of the record's subject.
    #[serde(rename = "k", default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// The configuration that executors should use.
    #[serde(rename = "g", default, skip_serializing_if = "Option::is_none")]
    pub git_commit_id: Option<String>,
    /// Whether `data` extends the record's payload.
    #[serde(rename = "u", default, skip_serializing_if = "std::ops::Not::not")]
    pub with_base: bool,
    /// The top-level members of the payload that `data` is limited to. Empty: all.
    #[serde(rename = "w", default, skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<String>,
    /// The top-level members of the payload that `data` leaves out.
    #[serde(rename = "o", default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    /// The event's own data, which is merged over the payload.
    #[serde(rename = "d", default, skip_serializing_if = "Object::is_empty")]
    pub data: Object,
}

/// The event that a draft answers (`triggeredid`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum Answers {
    /// No event.
    #[default]
    Nothing,
    /// The event whose id is the address of this record.
    Own,
    /// The event with this id.
    Event(String),
}

impl Answers {
    fn is_nothing(&self) -> bool {
        *self == Answers::Nothing
    }
}

impl<S> Default for Record<S> {
    fn default() -> Self {
        Self {
            base: Object::new(),
            events: vec![],
            sends: vec![],
            absorbed: vec![],
            inputs: vec![],
            made_by: 0,
            at: Timestamp::default(),
            previous: None,
            notes: vec![],
        }
    }
}

impl<S: Recorded> Record<S> {
    /// The stored bytes.
    pub fn to_bytes(&self) -> String {
        S::record_to_value(self).map(|json| canonical(&json)).unwrap_or_default()
    }

    /// The address of the record. Its last part is the hash of the record's bytes.
    pub fn id(&self, subject: SubjectId, number: u16) -> RecordId {
        RecordId { subject, number, hash: RecordHash::of(self.to_bytes().as_bytes()) }
    }
}

impl<S> Record<S> {
    /// The record of a commit that says nothing yet.
    pub fn after(previous: Option<RecordId>, cause: Cause, at: Timestamp) -> Self {
        Self { made_by: cause.id, at, previous: previous.map(|id| (id.number, id.hash.to_string())), ..Self::default() }
    }

    /// Its number, of a subject that lives for ever.
    pub fn number_going_round(&self) -> u16 {
        self.previous.as_ref().map_or(0, |(number, _)| (number + 1) % NUMBERS)
    }

    /// The previous record.
    pub fn previous(&self, subject: SubjectId) -> Option<RecordId> {
        let (number, hash) = self.previous.as_ref()?;
        Some(RecordId { subject, number: *number, hash: RecordHash::parse(hash)? })
    }

    /// The events in final form. `id` is the address of this record.
    pub fn events(&self, id: &RecordId, context: &Context) -> Vec<CloudEvent> {
        self.events.iter().map(|draft| self.event(draft, id, context)).collect()
    }

    /// [`Record::events`] without the trigger of the task, which is over: no executor should start it now.
    pub fn events_but_trigger(&self, id: &RecordId, context: &Context) -> Vec<CloudEvent> {
        self.events.iter().filter(|draft| draft.id.is_some()).map(|draft| self.event(draft, id, context)).collect()
    }

    /// The event whose id is the address of the record, if there is one: the trigger of a task.
    pub fn trigger(&self, id: &RecordId, context: &Context) -> Option<CloudEvent> {
        self.events.iter().find(|draft| draft.id.is_none()).map(|draft| self.event(draft, id, context))
    }

    fn event(&self, draft: &Draft, id: &RecordId, context: &Context) -> CloudEvent {
        let taken = |name: &str| {
            (draft.with_base || draft.with.iter().any(|with| with == name)) && !draft.without.iter().any(|w| w == name)
        };
        let mut data: Object =
            self.base.iter().filter(|(name, _)| taken(name)).map(|(name, value)| (name.clone(), value.clone())).collect();
        // The data is merged when the record is read, so that a record never stores a large member twice.
        merge(&mut data, &draft.data);
        CloudEvent {
            id: draft.id.clone().unwrap_or_else(|| id.uuid().to_string()),
            source: draft.source.clone(),
            ty: draft.ty.clone(),
            time: draft.time,
            context: draft.context.as_ref().map_or_else(|| context.clone(), |own| Context::of(own)),
            authors: vec![],
            triggered_id: match &draft.answers {
                Answers::Nothing => None,
                Answers::Own => Some(id.uuid().to_string()),
                Answers::Event(id) => Some(id.clone()),
            },
            git_commit_id: draft.git_commit_id.clone(),
            data,
        }
    }
}
