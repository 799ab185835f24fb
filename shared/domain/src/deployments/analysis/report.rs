//! What a window came to, as it is shown.

use crate::evaluation::{Missed, Period};
use serde::{Deserialize, Serialize};

/// The longest text of a report, in characters.
const TEXT: usize = 200;

/// A window and what it came to: the newest one is shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The window.
    pub window: Period,
    /// `pass`, `warning`, `fail` or `inconclusive`.
    pub result: String,
    /// The reason, in words and numbers.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// How many windows of the attempt have failed.
    #[serde(default)]
    pub failures: u32,
    /// The requests of the new version, of the target that had fewest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<f64>,
    /// The score, of 100, of the target that had the lowest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// The objectives, those that failed first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objectives: Vec<Objective>,
}

/// An objective in a window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Objective {
    /// The target.
    pub target: String,
    /// The indicator.
    pub sli: String,
    /// `pass`, `warning`, `fail` or `info`.
    pub result: String,
    /// Its value for the new version; `None`: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// Its value for the version before, if they are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<f64>,
    /// The criteria of `pass`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<Limit>,
    /// Why there is no value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// A criterion and what it came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Limit {
    /// As written.
    pub criteria: String,
    /// The number that the value is compared with.
    pub target_value: f64,
    /// Whether it does not hold.
    pub violated: bool,
}

/// A window that could not be judged, and why.
pub fn inconclusive(window: Period, why: &str) -> Report {
    let (result, message) = ("inconclusive".to_owned(), cut(why));
    Report { window, result, message, failures: 0, samples: None, score: None, objectives: vec![] }
}

/// No more of a text than is reported.
pub(super) fn cut(text: &str) -> String {
    text.chars().take(TEXT).collect()
}

impl Objective {
    /// Why it failed, in numbers.
    pub(super) fn why(&self) -> String {
        // What was compared over time has no limits, and says in its message which change it has found.
        if self.value.is_some() && self.targets.is_empty() {
            return format!("{}: {} {}", self.target, self.sli, self.message);
        }
        let violated = self.targets.iter().filter(|limit| limit.violated);
        let limits = violated.map(|limit| (limit.criteria.as_str(), limit.target_value));
        let missed = Missed::new(&self.sli, self.value, limits, &self.message);
        format!("{}: {}", self.target, missed.after(self.baseline))
    }
}
