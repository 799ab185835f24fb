//! What comes in and what comes out. Results are written with the members of Keptn's events.

use super::Note;
use crate::event::{Status, TaskResult};
use serde::{Deserialize, Serialize};

/// A value of an indicator, as a provider sends it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The indicator.
    pub metric: String,
    /// The value; of no meaning without success.
    pub value: f64,
    /// Whether there is a value.
    pub success: bool,
    /// Why there is none.
    pub message: String,
}

impl Measured {
    /// A value.
    pub fn value(metric: &str, value: f64) -> Self {
        Self { metric: metric.to_owned(), value, success: true, message: String::new() }
    }
    /// No value, and why.
    pub fn nothing(metric: &str, why: impl Into<String>) -> Self {
        Self { metric: metric.to_owned(), value: 0.0, success: false, message: why.into() }
    }
    /// The same; if the value is no finite number, without it. JSON has no word for such numbers.
    #[must_use]
    pub fn finite(&self) -> Self {
        if self.value.is_finite() { self.clone() } else { Self { value: 0.0, success: false, ..self.clone() } }
    }
}

/// What a provider has sent: `get-sli.finished`.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "named as the members of the event are")]
pub struct Provided {
    pub status: Status,
    pub result: TaskResult,
    pub message: String,
    pub values: Vec<Measured>,
}

/// An earlier evaluation.
#[derive(Debug, Clone, PartialEq)]
pub struct Earlier {
    /// The id of its `evaluation.finished`; empty if it is not known.
    pub id: String,
    /// How it ended.
    pub result: TaskResult,
    /// Whether somebody has declared it void.
    pub invalidated: bool,
    /// Its values.
    pub values: Vec<Measured>,
}

/// What a criterion came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// As written.
    pub criteria: String,
    /// 0 if there was nothing to compare with.
    pub target_value: f64,
    /// Whether it does not hold.
    pub violated: bool,
}

/// The value of an indicator, and what it was compared with.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "named as the members of the event are")]
pub struct Value {
    pub metric: String,
    pub value: f64,
    /// What the earlier values come to.
    pub compared_value: f64,
    pub success: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// What an objective came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the words of the event")]
pub enum Judgement {
    Pass,
    Warning,
    Fail,
    /// It has no pass criteria.
    Info,
}

impl Judgement {
    /// The word in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Warning => "warning",
            Self::Fail => "fail",
            Self::Info => "info",
        }
    }
}

/// The result of an objective.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "named as the members of the event are")]
pub struct Indicator {
    pub score: f64,
    pub value: Option<Value>,
    pub display_name: String,
    /// `None` where Keptn sends `null`: no criterion was looked at.
    pub pass_targets: Option<Vec<Target>>,
    pub warning_targets: Option<Vec<Target>>,
    pub key_sli: bool,
    pub status: Judgement,
}

/// `data.evaluation` of `evaluation.finished`. Who sends it adds `timeStart`, `timeEnd` and `sloFileContent`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Details {
    /// By the score alone; [`Finished::result`] is what counts.
    pub result: TaskResult,
    /// Of 100.
    pub score: f64,
    /// In the order of the objectives. `None` where Keptn sends `null`.
    pub indicator_results: Option<Vec<Indicator>>,
    /// The ids of the evaluations that this one was compared with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub compared_events: Vec<String>,
}

/// What `evaluation.finished` says.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[expect(missing_docs, reason = "named as the members of the event are")]
pub struct Finished {
    pub status: Status,
    pub result: TaskResult,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    pub evaluation: Details,
}

impl Finished {
    /// Without a judgement.
    pub(crate) fn without(status: Status, result: TaskResult, message: String, told: TaskResult) -> Self {
        let evaluation = Details { result: told, score: 0.0, indicator_results: None, compared_events: vec![] };
        Self { status, result, message, evaluation }
    }

    /// The evaluation could not be made.
    pub(super) fn errored(message: impl Into<String>) -> Self {
        Self::without(Status::Errored, TaskResult::Fail, message.into(), TaskResult::Fail)
    }
}

/// A judgement, and what is worth knowing about it that Keptn does not say.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// What Keptn would send.
    pub finished: Finished,
    /// How many earlier evaluations this one was compared with.
    pub compared: usize,
    /// What Keptn is silent about.
    pub notes: Vec<Note>,
}
