//! Definitions: what is applied, and the revisions of shipyards.

use crate::http::page::page;
use keelway_domain::diff::FieldChange;
use serde::{Deserialize, Serialize};

/// [`FieldChange`] for the OpenAPI document: the domain knows nothing of it.
#[cfg(feature = "openapi")]
#[derive(utoipa::ToSchema)]
#[schema(as = FieldChange)]
pub struct FieldChangeSchema {
    /// Where it is: `spec.template.spec.containers[web].image`.
    pub field: String,
    /// What it was; absent: it was not there.
    pub was: Option<serde_json::Value>,
    /// What it is then; absent: it is gone.
    pub becomes: Option<serde_json::Value>,
}

/// The answer to `POST /v1/apply`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct Applied {
    /// One per document, in the order of the text.
    pub applied: Vec<AppliedDocument>,
    /// What may not do what its author expects.
    pub warnings: Vec<crate::manifest::Finding>,
    /// Whether nothing was stored, as asked.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// What became of one document.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(default)]
pub struct AppliedDocument {
    /// `Project`, `Shipyard`, `Pipeline`, `Cluster`, `GitHost`, `DeploymentConfig`, `ArtifactSource`,
    /// `MetricsSource` or `WebhookSubscription`.
    pub kind: String,
    /// `metadata.name`
    pub name: String,
    /// The project it belongs to: of a pipeline, cluster or webhook subscription its namespace; of a git host empty.
    pub project: String,
    /// Of a shipyard: the revision now in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Whether it differs from what was in force before.
    pub changed: bool,
    /// Of a shipyard that changed: the revision that was in force before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
    /// What differs from what was in force before, field by field; empty if nothing was, or if only comments differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<FieldChangeSchema>))]
    pub changes: Vec<FieldChange>,
}

page! {
    /// A page of the history of a project's shipyards: `GET /v1/project/{project}/shipyard/revisions`.
    RevisionPage of RevisionState;
    /// The times that a revision was put in force, newest first.
}

/// One time that a revision was put in force.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct RevisionState {
    /// Counts the times, from 1.
    pub number: i64,
    /// The revision: the git blob id of its text.
    pub revision: String,
    /// When, RFC 3339.
    pub applied: String,
    /// Who put it in force, as they called themselves; may be empty.
    pub by: String,
    /// Whether it is in force now.
    pub in_force: bool,
}

/// What differs between two revisions: `GET /v1/project/{project}/shipyard/diff`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(default)]
pub struct ShipyardDiff {
    /// The one revision.
    pub from: String,
    /// The other.
    pub to: String,
    /// Field by field; empty if they are the same, or if only comments and spelling differ.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<FieldChangeSchema>))]
    pub changes: Vec<FieldChange>,
}

/// The body of `POST /v1/project/{project}/shipyard/rollback`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ShipyardRollback {
    /// The revision to put in force again: 40 hexadecimal digits.
    pub revision: String,
    /// Only say what would change.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// Who asks, for the history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}
