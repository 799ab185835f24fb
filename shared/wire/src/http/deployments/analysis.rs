//! What metrics say of a version while it shares the requests with the one before.

use crate::http::EvaluatedTarget;
use serde::{Deserialize, Serialize};

/// The newest window of an analysis.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct AnalysisState {
    /// The beginning of the window.
    pub from: String,
    /// Its end.
    pub to: String,
    /// `pass`, `warning`, `fail` or `inconclusive`.
    pub result: String,
    /// The reason, in words and numbers.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// How many windows of this attempt have failed.
    pub failures: u32,
    /// The requests of the new version in the window, at the target that had fewest. Absent: they were not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<f64>,
    /// The score, of 100, of the target with the lowest. Absent: nothing was judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// The objectives, those that failed first; at most twenty.
    pub objectives: Vec<AnalysisObjective>,
}

/// An objective in a window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct AnalysisObjective {
    /// The target.
    pub target: String,
    /// The indicator.
    pub sli: String,
    /// `pass`, `warning`, `fail` or `info`.
    pub result: String,
    /// Its value for the new version. Absent: there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// Its value for the version before, in the same window. Absent: there is none, or nothing is compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<f64>,
    /// The criteria of `pass`.
    pub targets: Vec<EvaluatedTarget>,
    /// Why there is no value.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}
