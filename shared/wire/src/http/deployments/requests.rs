//! What is asked of deployment configs and told about images, and the answers.

use super::VersionState;
use crate::http::page::page;
use keelway_domain::diff::FieldChange;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// One thing wrong with a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(default)]
pub struct FieldError {
    /// The field: of the request, or of what it is about.
    pub field: String,
    /// A word for machines: `Required`, `Invalid`, `NotFound`, `Conflict`.
    pub code: String,
    /// A sentence for people.
    pub message: String,
}

/// The body of `POST /v1/deploymentConfigs/{id}/instantiate`: OpenShift's `DeploymentRequest`, and more.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct InstantiateRequest {
    /// `DeploymentRequest`, if given.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Not looked at.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// The config's name, if given.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Images are resolved first; else they stay as they are.
    pub latest: bool,
    /// Also if nothing has changed, and with the images of triggers that are not automatic.
    pub force: bool,
    /// `ImageChange`: images stay as they are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclude_triggers: Vec<String>,
    /// The image of the first container, or of the one that the config's annotation names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// A deployment on its way is cancelled first.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub supersede: bool,
    /// A paused config is resumed first.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub resume: bool,
    /// Suspended triggers fire again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub resume_triggers: bool,
    /// Triggers are suspended, so that an image that is named stays although its container follows a tag.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub suspend_triggers: bool,
    /// Who asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Why, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The body of `POST /v1/deploymentConfigs/{id}/pause`, `/resume`, `/cancel`, `/retry`, `/proceed`, `/triggers/suspend` and
/// `/triggers/resume`. It may be empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SteerRequest {
    /// Who asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Why, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Of `cancel` only: what waits for the end of the deployment is not deployed, either.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub and_what_waits: bool,
}

/// The answer to what is asked of a config: 200 when the state shows it, 202 when it does not yet.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct SteerAnswer {
    /// Its project.
    pub namespace: String,
    /// The config.
    pub name: String,
    /// Whether the state shows it: `false` only with 202.
    pub done: bool,
    /// There was nothing to do, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nothing: Option<String>,
    /// What follows a cancellation: a newer change is deployed next, or what waits is cancelled with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub follows: Option<String>,
    /// The version that it led to; else the latest one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployment: Option<VersionState>,
    /// The path that will show it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub look: Option<String>,
}

/// The body of `POST /v1/deploymentConfigs/{id}/rollback`, and the `rollback` stanza of `PUT /v1/deploymentConfigs/{id}`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RollbackRequest {
    /// `<config>-<version>`, or the number. Absent: the newest complete version below the latest.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub release: Value,
    /// Labels, triggers and strategy go back. Default: `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<bool>,
    /// Template, replicas and selector go back. Default: `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub application: Option<bool>,
    /// The proposal leaves its meaning open; not looked at.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub strategy: Value,
    /// Why, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// Nothing is written; the answer says what would be.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// Also to a version that failed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub allow_failed: bool,
    /// By the steps of the strategy. Default: at once, with its hooks.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub by_steps: bool,
    /// Also if it changes nothing: the latest version is complete, and deploys the same.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
    /// Who asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// OpenShift's request: also a body of `POST /v1/deploymentConfigs/{id}/rollback`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct DeploymentConfigRollback {
    /// `DeploymentConfigRollback`
    pub kind: String,
    /// Not looked at.
    pub api_version: String,
    /// The config's name, if given.
    pub name: String,
    /// Added to the annotations upstream; refused here unless empty.
    pub updated_annotations: BTreeMap<String, String>,
    /// What goes back.
    pub spec: DeploymentConfigRollbackSpec,
    /// Nothing is written.
    pub dry_run: bool,
}

/// The `spec` of a [`DeploymentConfigRollback`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct DeploymentConfigRollbackSpec {
    /// The version, by the name of its deployment; counts if `revision` is 0.
    pub from: Reference,
    /// The version. 0: the one in `from`, else the newest complete version below the latest.
    pub revision: i64,
    /// The template goes back.
    pub include_template: bool,
    /// The triggers go back.
    pub include_triggers: bool,
    /// The strategy goes back.
    pub include_strategy: bool,
    /// Replicas and selector go back.
    pub include_replication_meta: bool,
}

/// A Kubernetes object by its name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Reference {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
}

/// The body of `POST /v1/rollbacks`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RollbacksRequest {
    /// One per config. `notes`, `dryRun` and `by` are said once for all.
    pub rollbacks: Vec<OneRollback>,
    /// Why, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// Nothing is written.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// Who asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// One of several rollbacks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct OneRollback {
    /// The config: `<name>` in `default`, or `<namespace>:<name>`.
    pub id: String,
    /// As in [`RollbackRequest`].
    #[serde(skip_serializing_if = "Value::is_null")]
    pub release: Value,
    /// As in [`RollbackRequest`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<bool>,
    /// As in [`RollbackRequest`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub application: Option<bool>,
    /// As in [`RollbackRequest`].
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub allow_failed: bool,
    /// By the steps of the strategy. Default: at once, with its hooks.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub by_steps: bool,
    /// Also if it changes nothing: the latest version is complete, and deploys the same.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
}

/// What a rollback did to a config, or would do.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct RollbackAnswer {
    /// Its project.
    pub namespace: String,
    /// The config.
    pub name: String,
    /// Whether the state shows it.
    pub done: bool,
    /// Nothing was written, because that was asked for.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// The version that it goes back to.
    pub resolved_release: u64,
    /// Why that one, if none was named.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The new version; absent in a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployment: Option<VersionState>,
    /// The `DeploymentConfig` that is then in force; only in a dry run.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub candidate: Value,
    /// What changes, compared with what is in force.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<crate::http::FieldChangeSchema>))]
    pub changes: Vec<FieldChange>,
    /// What could not be checked, and what people should look at.
    pub warnings: Vec<String>,
    /// Of several rollbacks: why this one was refused after all. Others may be done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
    /// The path that will show it, if the state does not yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub look: Option<String>,
}

/// The answer to `POST /v1/rollbacks`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct RollbacksAnswer {
    /// What the new versions have in common.
    pub group_id: String,
    /// In the order of the request.
    pub results: Vec<RollbackAnswer>,
}

/// The body of `POST /v1/artifacts/{namespace}/{name}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ArtifactRequest {
    /// The tag that was pushed.
    pub tag: String,
    /// `sha256:` and 64 hexadecimal digits.
    pub digest: String,
    /// The image without tag and digest: `registry.example.com/shop/cart`.
    pub image: String,
    /// When. Default: now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pushed_at: Option<String>,
    /// What happened.
    pub action: ArtifactAction,
}

/// What happened to an image.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum ArtifactAction {
    /// It was pushed, or its tag was.
    #[default]
    Push,
    /// It is gone.
    Delete,
}

page! {
    /// A page of artifact sources: `GET /v1/artifactSources`.
    ArtifactSourcePage of ArtifactSourceState;
    /// By name.
}

/// An artifact source.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(default)]
pub struct ArtifactSourceState {
    /// Its project.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Who tells about it, and which tags follow which pattern; a secret by name only.
    pub spec: Value,
    /// Whether an administrator of the whole installation applied it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub vouched: bool,
}
