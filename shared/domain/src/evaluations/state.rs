//! The state of a service's evaluations.

use super::answer::{Answer, Asker};
use crate::evaluation::{Measured, Note, Period};
use crate::event::{Object, TaskResult};
use crate::ids::{RecordId, SubjectId, hash64};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How many evaluations of a service are kept for comparison.
pub const KEPT: usize = 20;
/// The most evaluations of a service that are under way. Lanes run one sequence at a time, so there is one, and some whose sequence
/// was given up meanwhile.
pub const MOST_OPEN: usize = 10;

/// The record of a commit.
pub type Record = crate::record::Record<Order>;

/// What a commit sets off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Ask the source of an evaluation for its values.
    Measure {
        /// The trigger of the evaluation.
        id: String,
        /// Which time this is.
        attempt: u32,
    },
    /// Tell a pipeline what the evaluation came to that it asked for.
    Tell {
        /// The id that the pipeline gave it.
        id: String,
        /// The evaluation's end, and whom it is told.
        told: Told,
    },
}

crate::recorded!(Order);

/// The evaluations of a service in a stage.
#[derive(Debug, Clone, PartialEq)]
pub struct Service {
    /// Project, stage and service.
    pub place: [String; 3],
    /// When the first one began.
    pub began: Timestamp,
    /// Those under way, oldest first.
    pub open: Vec<Open>,
    /// Those that have ended, newest first; at most [`KEPT`].
    pub past: Vec<Past>,
    /// When something is due.
    pub wake: Option<Timestamp>,
    /// The last record.
    pub record: Option<RecordId>,
}

/// What a task's trigger or a pipeline asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The id of the trigger, or the one that the pipeline has given.
    pub id: String,
    /// Its context.
    pub context: String,
    /// The window; or why there is none.
    pub period: Result<Period, String>,
    /// Labels of the event.
    pub labels: Object,
    /// What was deployed: `primary`, `canary`, or nothing.
    pub deployment: String,
    /// The revision of the project's files.
    pub revision: Option<String>,
    /// The pipeline that asks. `None`: a sequence waits for it.
    pub asker: Option<Asker>,
}

/// An evaluation under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Open {
    /// The id of its trigger.
    pub id: String,
    /// The context of its sequence.
    pub context: String,
    /// When its trigger was taken.
    pub began: Timestamp,
    /// What is evaluated.
    pub period: Period,
    /// Labels of the trigger, which every event of it repeats.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub labels: Object,
    /// What was deployed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub deployment: String,
    /// The revision of the project's files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The pipeline that asked. `None`: a sequence waits for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asker: Option<Asker>,
    /// The name of the source.
    pub provider: String,
    /// Whether somebody has declared it void before it ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub invalidated: bool,
    /// What it waits for.
    pub phase: Phase,
}

/// What an evaluation waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Phase {
    /// The source is asked at this time: metrics arrive late, and a source that was busy is asked again.
    Due {
        /// When.
        at: Timestamp,
        /// Which time that will be, from 1.
        attempt: u32,
        /// Whether values may still arrive, so that a source without some of them is asked once more.
        late: bool,
        /// Why it was not answered the last time.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        why: String,
    },
    /// The source is being asked.
    Measuring {
        /// When the order is given again.
        until: Timestamp,
        /// Which time this is.
        attempt: u32,
        /// Whether values may still arrive.
        late: bool,
    },
    /// A service on the bus was asked.
    Asked {
        /// The id of `get-sli.triggered`.
        id: String,
        /// Whether it has said that it has begun.
        started: bool,
        /// When it is given up.
        until: Timestamp,
    },
}

impl Phase {
    /// When it has to go on without an input.
    pub fn at(&self) -> Timestamp {
        match self {
            Self::Due { at, .. } => *at,
            Self::Measuring { until, .. } | Self::Asked { until, .. } => *until,
        }
    }
}

/// An evaluation that has ended, as far as later ones need it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Past {
    /// The id of its trigger.
    pub id: String,
    /// The context of its sequence.
    pub context: String,
    /// The id of its `evaluation.finished`.
    pub finished: String,
    /// Tells the item with all of it from those of workers that judged other values and came too late.
    pub content: String,
    /// When it ended.
    pub at: Timestamp,
    /// How.
    pub result: TaskResult,
    /// Whether somebody has declared it void.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub invalidated: bool,
    /// Whether anything was judged. Without, it passes and is nothing to compare with.
    pub evaluated: bool,
    /// What the pipeline was told that asked. It is told again if it asks again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<Told>,
}

/// What a pipeline is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Told {
    /// The pipeline, and which time it had asked.
    pub asker: Asker,
    /// What the evaluation came to.
    pub answer: Answer,
}

/// All of an evaluation that has ended: an item of its own, which is written before the commit and never changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ended {
    /// The id of its trigger.
    pub id: String,
    /// The context of its sequence.
    pub context: String,
    /// When its trigger was taken.
    pub began: Timestamp,
    /// When it ended.
    pub at: Timestamp,
    /// The pipeline that asked. `None`: a sequence waited for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asker: Option<Asker>,
    /// What was evaluated, if there was a window.
    pub period: Option<Period>,
    /// The name of the source, if there was one.
    pub provider: String,
    /// Whether anything was judged.
    pub evaluated: bool,
    /// `status`, `result`, `message` and `evaluation` of the event, without the file.
    pub finished: Value,
    /// What was measured.
    pub values: Vec<Measured>,
    /// What decided and does not show.
    pub notes: Vec<String>,
}

crate::stored!(Ended);

impl Ended {
    /// Follows from all that it says.
    pub fn content(&self) -> String {
        let text = serde_json::to_string(self).unwrap_or_default();
        format!("{:016x}", hash64(&[text.as_bytes()]))
    }
}

impl Service {
    /// One without evaluations.
    pub fn new(place: [String; 3], now: Timestamp) -> Self {
        Self { place, began: now, open: vec![], past: vec![], wake: None, record: None }
    }
    /// Its id, in the addresses of its records.
    pub fn id(&self) -> SubjectId {
        let [project, stage, service] = &self.place;
        SubjectId(hash64(&[b"evaluations", project.as_bytes(), stage.as_bytes(), service.as_bytes()]))
    }
    /// Whether an evaluation with this trigger is under way or was made.
    pub fn knows(&self, id: &str) -> bool {
        self.open.iter().any(|open| open.id == id) || self.past.iter().any(|past| past.id == id)
    }
    /// The evaluation under way that this trigger began.
    pub fn open(&self, id: &str) -> Option<&Open> {
        self.open.iter().find(|open| open.id == id)
    }
    /// The evaluation under way for which a service on the bus was asked with this event.
    pub fn asking(&self, get_sli: &str) -> Option<&Open> {
        self.open.iter().find(|open| matches!(&open.phase, Phase::Asked { id, .. } if id == get_sli))
    }
}

/// Notes as text.
pub(super) fn words(notes: &[Note]) -> Vec<String> {
    notes.iter().map(Note::to_string).collect()
}
