//! What is asked of pipelines, and the answers; and what is registered for them.

use super::{PromotionState, WaitingApproval};
use crate::http::page::page;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The body of `POST /v1/pipelines/{namespace}/{name}/environments/{environment}/revisions/{revision}/approval`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct ApprovalRequest {
    /// What was decided.
    pub decision: ApprovalDecision,
    /// Why, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Who decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// What a person decides about a revision in an environment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum ApprovalDecision {
    /// It may be promoted.
    #[default]
    Approve,
    /// It must not be, in this run.
    Reject,
    /// Whether approved or not, it is given up in this run, and what is open for it is closed.
    Abandon,
    /// Its promotion failed, but all targets run it and are healthy: the environments behind go on.
    Accept,
}

/// The answer to an approval or a command: 201 with `Location` when a pull request is open by then, 200 when the state shows it,
/// 202 when it does not yet.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct CommandAnswer {
    /// Its project.
    pub namespace: String,
    /// The pipeline.
    pub name: String,
    /// Whether the state shows it: `false` only with 202.
    pub done: bool,
    /// The promotion it is about, as it is now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promotion: Option<PromotionState>,
    /// Of an approval that needs further ones: what is still waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_approval: Option<WaitingApproval>,
    /// The path that will show it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub look: Option<String>,
}

/// The body of `POST /v1/pipelines/{namespace}/{name}/commands`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct CommandRequest {
    /// `suspend`, `resume`, `hold`, `release`, `abandon`, `retry` or `abort`.
    pub command: String,
    /// `hold`, `release`, `retry`, `abort`: which environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// `hold`: on which revision, by default the one it is healthy on. `abandon`: which revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Why, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Who asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// The answer to `POST /v1/observations`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(default)]
pub struct ObservationAnswer {
    /// One per fact, in the order of the body.
    pub facts: Vec<ObservedFact>,
}

/// What became of a fact.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(default)]
pub struct ObservedFact {
    /// The object's kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its cluster; absent: the one that reports without a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// The version it counts as.
    pub version: i64,
    /// The object is suspended: whoever applies it does nothing until it is resumed.
    pub suspended: bool,
    /// Whether it is as new as what is known, or newer. `false`: it is older, and changed nothing.
    pub newer: bool,
}

page! {
    /// A page of clusters (`GET /v1/clusters`) or git hosts (`GET /v1/githosts`).
    RegisteredPage of Registered;
    /// By namespace and name.
}

/// A registered cluster or git host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct Registered {
    /// `Cluster`, `GitHost` or `MetricsSource`.
    pub kind: String,
    /// Of a cluster or a source of metrics: its project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// `spec` as it is in force; secrets by name only.
    pub spec: BTreeMap<String, serde_json::Value>,
    /// Of a cluster or a source of metrics: whether an administrator of the whole installation applied it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub vouched: bool,
    /// When it was last changed.
    pub applied_at: String,
    /// How often that was.
    pub version: i64,
}
