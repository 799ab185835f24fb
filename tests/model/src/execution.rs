//! An execution of a sequence.

use crate::Event;
use crate::rules::{span, text};
use serde_json::Value;

#[derive(Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    #[default]
    None,
    Wants,
    Holds,
}

/// The trigger of a task, when it was sent, when the first `.started` came, and all answers.
pub(crate) type Open = (String, i64, Option<i64>, Vec<Event>);

#[derive(Default)]
pub(crate) struct Execution {
    pub context: String,
    pub stage: String,
    pub sequence: Value,
    pub trigger: String,
    /// The place in the lane's queue: follow-ups before triggers; then by the acceptance of the root, by the time of the cause, and
    /// by the shipyard.
    pub place: (bool, usize, usize, usize),
    pub payload: Value,
    pub lane: Lane,
    pub task: usize,
    pub open: Option<Open>,
    pub due: Option<i64>,
    pub began: bool,
    /// When its first task was triggered.
    pub first: Option<i64>,
    pub results: Vec<(String, &'static str)>,
    /// Labels and message of the last answer to the last task.
    pub last: Value,
}

impl Execution {
    pub fn task_name(&self) -> String {
        text(&self.sequence["tasks"][self.task], "name").to_owned()
    }
    /// When the timeout of the sequence passes.
    pub fn timeout(&self) -> Option<i64> {
        Some(self.first? + span(&self.sequence["timeout"])?)
    }
    pub fn lane_key(&self) -> (String, String) {
        (self.stage.clone(), text(&self.payload, "service").to_owned())
    }
}
