//! Deployment configs, their versions, and what deployers say. All times are RFC 3339, all lists end with `nextPageKey` `"0"`.
//!
//! A config itself is shown as the `DeploymentConfig` that its manifest would be, with `metadata.resourceVersion` and `status`.

mod analysis;
mod deployers;
mod requests;

pub use analysis::*;
pub use deployers::*;
pub use requests::*;

use super::promotions::Actor;
use crate::http::page::{Clock, page};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

page! {
    /// A page of deployment configs: `GET /v1/deploymentConfigs`.
    ConfigPage of ConfigState, and Clock;
    /// By name.
}

/// How a deployment config is: `GET /v1/deploymentConfigs/{id}/status`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct ConfigState {
    /// Its project.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The number of the latest version; 0: there is none.
    pub latest_version: u64,
    /// The latest version; absent: there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latest: Option<VersionState>,
    /// The newest complete version: what is deployed, as far as Keelway knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_version: Option<u64>,
    /// When it was complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_since: Option<String>,
    /// Its images by container; empty: none is deployed, or it was complete before its images were kept here.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub active_images: BTreeMap<String, String>,
    /// Targets that serve what Keelway did not put there, or did so until that was adopted; absent: none is known to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift: Option<DriftState>,
    /// The alarms that roll it back, in the manifest's order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alarms: Vec<AlarmState>,
    /// The version that follows as soon as the latest one has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending_version: Option<u64>,
    /// Who paused it; absent: it is not paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<Actor>,
    /// Who suspended its triggers; absent: they fire.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub triggers_suspended: Option<Actor>,
    /// Its triggers, in the manifest's order.
    pub triggers: Vec<TriggerState>,
    /// Why it is not done: a word for machines; empty: nothing is left to do.
    pub reason: String,
    /// The same as a sentence.
    pub message: String,
    /// The version of the manifest in force: `metadata.resourceVersion`.
    pub resource_version: String,
    /// Whether an administrator of the whole installation applied that manifest.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub vouched: bool,
    /// The server's clock; in a list, the page has it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub now: String,
}

/// What targets of a [`ConfigState`] serve that Keelway did not put there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct DriftState {
    /// Since when that is known.
    pub since: String,
    /// `Drifted: serves Lambda version 3`, or `Adopted: …`.
    pub message: String,
    /// The targets that drift, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub targets: BTreeMap<String, ServedState>,
    /// What counts as deployed because it was adopted, by target, until the next version is complete.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub adopted: BTreeMap<String, String>,
}

/// An alarm that rolls a config back, as CloudWatch has last told it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct AlarmState {
    /// Its name in CloudWatch.
    pub name: String,
    /// Whether it is on; absent: CloudWatch has told nothing about it yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<bool>,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}

/// A target of a [`DriftState`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct ServedState {
    /// The version that was deployed there.
    pub expected: String,
    /// The one that is served; absent: the alias is gone.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub serves: String,
}

/// A trigger of a [`ConfigState`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct TriggerState {
    /// `ConfigChange`, `ImageChange` or `Manual`.
    #[serde(rename = "type")]
    pub ty: String,
    /// What its manifest says.
    pub automatic: bool,
    /// Whether it cuts versions now.
    pub effective_automatic: bool,
    /// Why it does not, although its manifest says so.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// Of an image change: the tag, `<namespace>/<name>:<tag>`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Of an image change: the containers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub containers: Vec<String>,
    /// The image that the tag points to; absent: none is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// When it was pushed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pushed_at: Option<String>,
}

page! {
    /// A page of versions: a config's history (newest first), `GET /v1/deployments` (oldest first).
    VersionPage of VersionState, and Clock;
    /// One per attempt.
}

/// A numbered version of a config, and how its deployment goes: `GET /v1/deployments/{id}-{n}`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct VersionState {
    /// The config's project.
    pub namespace: String,
    /// `<config>-<version>`
    pub name: String,
    /// The config.
    pub config: String,
    /// Its number.
    pub version: u64,
    /// From 1; one more for each retry.
    pub attempt: u32,
    /// `New`, `Pending`, `Running`, `Complete` or `Failed`.
    pub status: String,
    /// Why it failed, or stops: a word for machines.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Its causes, or what became of it, in a few words.
    pub message: String,
    /// Why it was cut.
    pub details: Details,
    /// The images by container.
    pub images: BTreeMap<String, String>,
    /// When it was cut, or retried.
    pub since: String,
    /// Who carries it out.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub deployer: String,
    /// Whether Keelway starts the deployer.
    pub starts: bool,
    /// When it was claimed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claimed_at: Option<String>,
    /// Until it has ended: when the deployer was last heard of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heard: Option<String>,
    /// Until it has ended: when the deployer must have been heard of again; then it counts as lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// When it was first said to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running_at: Option<String>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// Until then somebody must claim it, or it must have ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<String>,
    /// `run`, `pause` or `cancel`: what the deployer is told; absent: it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired: Option<String>,
    /// Whether it holds until somebody says `proceed`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub holds: bool,
    /// How far it is.
    pub progress: ProgressState,
    /// The share of the requests that it has been given, in percent; absent: Keelway does not shift its requests, or not yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<u8>,
    /// The hooks that Keelway has run or runs, by `pre`, `mid` and `post`: `runs`, `done`, `failed`, or `ignored`, which is a
    /// failure that the hook's policy passes over.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub hooks: BTreeMap<String, String>,
    /// The deployer's exit code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    /// The version that it goes back to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollback_of: Option<u64>,
    /// What configs that were rolled back together have in common.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group_id: String,
    /// The context of the sequence whose task it carries out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// What is deployed, as a `DeploymentConfig` with every image resolved; not in lists.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub snapshot: Value,
    /// The server's clock; not in lists.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub now: String,
}

impl VersionState {
    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        matches!(self.status.as_str(), "Complete" | "Failed")
    }
}

/// Why a version was cut.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(default)]
pub struct Details {
    /// The causes in a few words.
    pub message: String,
    /// All of them.
    pub causes: Vec<Cause>,
}

/// A cause of a version.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct Cause {
    /// `ConfigChange`, `ImageChange`, `Manual`, `Rollback`, `AutoRollback` or `Drift`.
    #[serde(rename = "type")]
    pub ty: String,
    /// Who.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// Of an image change: the tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Of an image change: the image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Of an image change: when it was pushed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Of a rollback: the version it goes back to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release: Option<u64>,
    /// Of an automatic rollback: the version that failed; of a drift: the one that is brought back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<u64>,
    /// Of a rollback: why; of a task of a sequence: which, in words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub notes: String,
    /// The delivery whose task asked for it; absent: none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery: Option<AskedBy>,
}

/// The task of a delivery that asked for a version.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(default)]
pub struct AskedBy {
    /// The task.
    pub task: String,
    /// The project of its sequence.
    pub project: String,
    /// The stage.
    pub stage: String,
    /// The service.
    pub service: String,
    /// The context of the delivery.
    pub context: String,
}

/// How far a deployment is, as the deployer says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(default)]
pub struct ProgressState {
    /// A sentence for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// By target.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub targets: BTreeMap<String, TargetState>,
    /// The end of the log.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tail: String,
    /// What the deployer wants to be told if it, or another one, goes on with this attempt.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub checkpoint: String,
    /// Where the whole log is.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub log: String,
    /// What metrics say of the version. Absent: nothing was judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub analysis: Option<AnalysisState>,
}

/// How far a deployment is at one of its targets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = DeployedTarget))]
#[serde(deny_unknown_fields, default)]
pub struct TargetState {
    /// `New`, `Pending`, `Running`, `Complete` or `Failed`.
    pub status: String,
    /// A sentence for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

page! {
    /// A page of what anybody did with a config, newest first: `GET /v1/deploymentConfigs/{id}/audit`.
    ConfigAuditPage of AuditEntry, and Clock;
    /// The entries.
}

/// An entry of a config's audit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default, as = ConfigAuditEntry))]
#[serde(default)]
pub struct AuditEntry {
    /// When.
    pub at: String,
    /// `latest`, `cancel`, `retry`, `pause`, `resume`, `rollback`, `suspendTriggers`, `resumeTriggers` or `proceed`; `stray` for a
    /// deployer's report that came too late or from somebody else; `drifted` for targets that serve what was not deployed there.
    pub what: String,
    /// Who, as they said.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// Why; of a stray report, what it said.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The version it led to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
}
