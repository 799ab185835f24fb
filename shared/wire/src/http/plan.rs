//! A shipyard or a pipeline as data: what a drawing or a calendar of it needs.

use serde::{Deserialize, Serialize};

/// `GET /v1/project/{project}/shipyard/plan`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct ShipyardPlan {
    /// The revision in force.
    pub revision: String,
    /// In the shipyard's order.
    pub stages: Vec<PlannedStage>,
    /// The server's clock, RFC 3339.
    pub now: String,
}

/// A stage.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct PlannedStage {
    /// Its name.
    pub name: String,
    /// Its sequences.
    pub sequences: Vec<PlannedSequence>,
    /// Its windows in words, such as `deny 0 18 * * FRI for 2d 14h Europe/Berlin: weekend`.
    pub windows: Vec<String>,
    /// When it is closed in the next 14 days, the first 100 times.
    pub closures: Vec<StageClosure>,
}

/// A sequence of a stage.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct PlannedSequence {
    /// Its name.
    pub name: String,
    /// The names of its tasks, in their order.
    pub tasks: Vec<String>,
    /// What triggers it, beside a trigger of its own.
    pub triggered_on: Vec<PlannedTrigger>,
}

/// What triggers a sequence.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct PlannedTrigger {
    /// `<stage>.<sequence>.finished`, `<stage>.<task>.finished`, or a domain event.
    pub event: String,
    /// What must match, such as `result: fail`; empty without a selector.
    pub selector: Vec<String>,
}

/// A time in which nothing begins in a stage, or is promoted into an environment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct StageClosure {
    /// From when on, RFC 3339; the present time if it is closed already.
    pub from: String,
    /// When it opens again, RFC 3339; absent: not within two years.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Why.
    pub reason: String,
}

/// `GET /v1/pipelines/{namespace}/{name}/plan`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct PipelinePlan {
    /// In the pipeline's order.
    pub environments: Vec<PlannedEnvironment>,
    /// The server's clock, RFC 3339.
    pub now: String,
}

/// An environment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct PlannedEnvironment {
    /// Its name.
    pub name: String,
    /// The windows of its promotions in words; empty: at any time.
    pub windows: Vec<String>,
    /// When nothing is promoted into it in the next 14 days, the first 100 times.
    pub closures: Vec<StageClosure>,
}
