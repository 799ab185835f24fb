//! Evaluations of a service in a stage.

use crate::http::page::{Clock, page};
use serde::{Deserialize, Serialize};

page! {
    /// A page of evaluations: `GET /v1/project/{project}/stage/{stage}/service/{service}/evaluation`.
    EvaluationPage of EvaluationView, and Clock;
    /// Those under way, and the last twenty that have ended, newest first.
}

/// An evaluation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct EvaluationView {
    /// The id of its `evaluation.triggered`, or the one that a pipeline has given it.
    pub id: String,
    /// The project.
    pub project: String,
    /// The stage.
    pub stage: String,
    /// The service.
    pub service: String,
    /// The context of its sequence, or of the pipeline that has asked for it.
    #[serde(rename = "shkeptncontext")]
    pub context: String,
    /// The pipeline that has asked for it, `<namespace>/<name>`. Absent: a sequence has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<String>,
    /// The environment and the revision that the pipeline has it about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// The revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// `waiting`: its source is asked later; `measuring`: it is being asked; `asked`: a service on the bus was asked; `finished`.
    pub state: String,
    /// The beginning of the window, RFC 3339.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub start: String,
    /// The end of the window.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub end: String,
    /// When its trigger was taken.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub begun: String,
    /// When it ended.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub finished: String,
    /// When its source is asked next, or given up.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub due: String,
    /// The source of its values.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub provider: String,
    /// As in `evaluation.finished`: `succeeded` or `errored`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub status: String,
    /// `pass`, `warning` or `fail`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub result: String,
    /// Of 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Why, in Keptn's words; or why its source has not answered yet.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Whether anything was judged. If it has ended without, it passes or fails for the reason in `message`.
    pub evaluated: bool,
    /// Whether it is left out when others are compared.
    pub invalidated: bool,
    /// What decided and is not in the result.
    pub notes: Vec<String>,
    /// One for each objective, in their order. `null`: nothing was judged, or it is not kept any more.
    pub indicators: Option<Vec<EvaluatedIndicator>>,
    /// The ids of the `evaluation.finished` that it was compared with.
    pub compared_events: Vec<String>,
}

/// The result of an objective.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct EvaluatedIndicator {
    /// What it adds to the score.
    pub score: f64,
    /// What was measured. `null`: nothing.
    pub value: Option<EvaluatedValue>,
    /// What messages call it.
    pub display_name: String,
    /// The criteria of `pass`. `null`: they were not looked at.
    pub pass_targets: Option<Vec<EvaluatedTarget>>,
    /// The criteria of `warning`. `null`: they were not looked at.
    pub warning_targets: Option<Vec<EvaluatedTarget>>,
    /// Whether the evaluation fails if this objective does.
    pub key_sli: bool,
    /// `pass`, `warning`, `fail` or `info`.
    pub status: String,
}

/// A value, and what it was compared with.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct EvaluatedValue {
    /// The indicator.
    pub metric: String,
    /// The value; of no meaning without success.
    pub value: f64,
    /// What the earlier values come to; 0 if there are none.
    pub compared_value: f64,
    /// Whether there is a value.
    pub success: bool,
    /// Why there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// What a criterion came to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct EvaluatedTarget {
    /// As written.
    pub criteria: String,
    /// The number that it means; 0 if there was nothing to compare with.
    pub target_value: f64,
    /// Whether it does not hold.
    pub violated: bool,
}

/// The source that a project evaluates by: `GET` and `PUT /v1/project/{project}/sli-provider`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct SliProvider {
    /// A `MetricsSource` of the project, or a service on the bus that answers `get-sli.triggered`. Empty: none was chosen.
    pub name: String,
}
