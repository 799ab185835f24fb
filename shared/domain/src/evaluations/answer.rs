//! What a pipeline asks for, and what it is told.

use crate::address::Address;
use crate::evaluation::{Finished, Indicator, Judgement, Missed};
use crate::event::{Status, TaskResult};
use serde::{Deserialize, Serialize};

/// The most violated objectives that a pipeline is told by name.
pub const MOST_VIOLATED: usize = 5;
/// The most characters of a text that people have written.
const LONGEST: usize = 200;

/// The pipeline that asks for an evaluation. No sequence waits for it: the engine of promotions is told what it came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Asker {
    /// The pipeline.
    pub pipeline: Address,
    /// The environment that is evaluated.
    pub environment: String,
    /// The revision that is healthy there.
    pub revision: String,
    /// Which time it asks for this evaluation, from 1.
    pub time: u32,
}

/// What an evaluation came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// Whether it could be made.
    pub status: Status,
    #[expect(missing_docs, reason = "the type says it")]
    pub result: TaskResult,
    /// Whether anything was judged: without objectives or a source, an evaluation passes.
    pub evaluated: bool,
    /// Of 100.
    pub score: f64,
    /// Why it did not pass, or was not made.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The objectives that were not met, at most [`MOST_VIOLATED`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violated: Vec<Violation>,
    /// How many more there are.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: usize,
}

/// An objective that was not met.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Violation {
    /// Its indicator.
    pub sli: String,
    /// What was measured. `None`: there was no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// The violated criteria of a pass, as written, with their targets; or why there was no value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub limit: String,
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

impl Answer {
    /// What a pipeline is told of a judgement.
    pub(super) fn of(finished: &Finished) -> Self {
        let indicators = finished.evaluation.indicator_results.as_deref();
        let missed = |one: &&Indicator| matches!(one.status, Judgement::Fail | Judgement::Warning);
        let violated: Vec<&Indicator> = indicators.unwrap_or_default().iter().filter(missed).collect();
        Self {
            status: finished.status,
            result: finished.result,
            evaluated: indicators.is_some(),
            score: Some(finished.evaluation.score).filter(|score| score.is_finite()).unwrap_or_default(),
            message: short(&finished.message),
            more: violated.len().saturating_sub(MOST_VIOLATED),
            violated: violated.into_iter().take(MOST_VIOLATED).map(violation).collect(),
        }
    }
}

fn violation(of: &Indicator) -> Violation {
    let value = of.value.as_ref();
    let measured = value.filter(|value| value.success);
    let number = measured.map(|value| value.value).filter(|value| value.is_finite());
    let violated = of.pass_targets.iter().flatten().filter(|target| target.violated);
    let limits = violated.map(|target| (target.criteria.as_str(), target.target_value));
    let why = value.map_or("", |value| &value.message);
    Violation {
        sli: short(value.map_or(&of.display_name, |value| &value.metric)),
        value: number,
        limit: short(&Missed::new("", number, limits, why).limit),
    }
}

impl std::fmt::Display for Violation {
    /// For example `error_rate is 2.5, not <1`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        Missed { sli: &self.sli, value: self.value, before: None, limit: self.limit.clone() }.fmt(f)
    }
}

fn short(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
