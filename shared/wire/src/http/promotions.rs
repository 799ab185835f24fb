//! Pipelines, their commands and what they refer to. All times are RFC 3339, all lists end with `nextPageKey` `"0"`.

mod past;
mod requests;

pub use past::*;
pub use requests::*;

use crate::http::page::{Clock, page};
use serde::{Deserialize, Serialize};

page! {
    /// A page of pipelines: `GET /v1/pipelines`.
    PipelinePage of PipelineEntry, and Clock;
    /// By name.
}

/// A pipeline in one line.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct PipelineEntry {
    /// Its project.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The environments, in their order.
    pub environments: Vec<String>,
    /// The run, from 1; absent before the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<u64>,
    /// The revision that is carried through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Whether it is suspended.
    pub suspended: bool,
    /// Why it is not done: a word for machines; empty: all environments run the revision.
    pub reason: String,
    /// The same as a sentence.
    pub message: String,
    /// What else is wrong, in the order of the environments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ConditionState>,
    /// When its manifest was last changed.
    pub applied_at: String,
}

/// A pipeline: `GET /v1/pipelines/{namespace}/{name}`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct PipelineState {
    /// Its project.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// What all targets run.
    pub app: AppState,
    /// When its manifest was last changed.
    pub applied_at: String,
    /// How often that was.
    pub version: i64,
    /// Whether an administrator of the whole installation applied it as it is.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub vouched: bool,
    /// The revision on which all targets of the first environment were last healthy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latest_revision: Option<String>,
    /// What is carried through; absent before the first run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunState>,
    /// Who suspended it; absent: it is not suspended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspended: Option<Actor>,
    /// Why it is not done: a word for machines; empty: all environments run the revision.
    pub reason: String,
    /// The same as a sentence.
    pub message: String,
    /// What else is wrong, in the order of the environments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ConditionState>,
    /// Revisions that are promoted nowhere any more, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub abandoned: Vec<String>,
    /// In their order.
    pub environments: Vec<EnvironmentState>,
    /// The server's clock.
    pub now: String,
}

/// The object that all targets of a pipeline run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct AppState {
    /// For example `helm.toolkit.fluxcd.io/v2`.
    pub api_version: String,
    /// For example `HelmRelease`.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// A run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(default)]
pub struct RunState {
    /// From 1.
    pub number: u64,
    /// What is carried through.
    pub revision: String,
    /// When it began.
    pub since: String,
}

/// Who did something, when and why.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(default)]
pub struct Actor {
    /// Who, as they said; empty: they did not.
    pub by: String,
    /// When.
    pub at: String,
    /// Why; empty: they did not say.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// An environment of a [`PipelineState`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default, as = PipelineEnvironment))]
#[serde(rename_all = "camelCase", default)]
pub struct EnvironmentState {
    /// Its name.
    pub name: String,
    /// Its targets, in the manifest's order.
    pub targets: Vec<TargetState>,
    /// How revisions get here: `notification`, `pullRequest` or `sequence`; absent in the first environment and where nothing is
    /// said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,
    /// Whether a person must approve each revision.
    pub manual: bool,
    /// The promotion into it that is current.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promotion: Option<PromotionState>,
    /// What waits for approval here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_approval: Option<WaitingApproval>,
    /// What is wrong here, whoever is next.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ConditionState>,
    /// The revision it is held on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
    /// The revision on which all its targets are healthy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub healthy: Option<Healthy>,
    /// Pull requests and sequences of earlier attempts that are still being taken back.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub closing: Vec<PromotionState>,
    /// When the first closed gate opens by itself, as far as is known now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_opening: Option<String>,
    /// The evaluation of the revision that is healthy here, over its soak time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<EvaluationState>,
}

/// An evaluation that the next environment waits for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default, as = EnvironmentEvaluation))]
#[serde(rename_all = "camelCase", default)]
pub struct EvaluationState {
    /// Its id among the evaluations of the service.
    pub id: String,
    /// The stage with the files of the service.
    pub stage: String,
    /// The service.
    pub service: String,
    /// The beginning of the window, RFC 3339.
    pub start: String,
    /// The end of the window.
    pub end: String,
    /// How often it was asked for.
    pub asked: u64,
    /// `pass`, `warning` or `fail`. Absent: it has not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Whether anything was judged.
    pub evaluated: bool,
    /// Of 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Why it did not pass, or was not made.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The objectives that were not met; the first of them, if there are many.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub violated: Vec<ViolatedObjective>,
}

/// An objective that was not met.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct ViolatedObjective {
    /// Its indicator.
    pub sli: String,
    /// What was measured. Absent: there was no value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// The violated criteria, with the targets of those that compare; or why there was no value.
    pub limit: String,
}

/// A target and the newest fact about it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct TargetState {
    /// `<namespace>/<name>` of its cluster; absent: the one that reports without a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// The namespace there.
    pub namespace: String,
    /// What it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Whether it is healthy.
    pub ready: bool,
    /// Why it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When it was observed; absent: nothing has been reported yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_at: Option<String>,
}

/// The revision an environment is held on, by whom.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default, as = PipelineHold))]
#[serde(default)]
pub struct Hold {
    /// The revision.
    pub revision: String,
    /// Who, when and why.
    #[serde(flatten)]
    pub actor: Actor,
}

/// On what an environment is healthy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(default)]
pub struct Healthy {
    /// The revision.
    pub revision: String,
    /// Since when.
    pub since: String,
}

/// What an environment waits to have approved.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(default)]
pub struct WaitingApproval {
    /// The revision that all targets were last healthy on; absent: there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The revision: an approval of any other is refused.
    pub revision: String,
    /// So many have approved.
    pub given: u64,
    /// So many must.
    pub needed: u64,
    /// Only these may; empty: everybody.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub approvers: Vec<String>,
    /// These may not, because they set the revision; with `separate` and without `authors`, nobody may.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub authors: Vec<String>,
    /// Whoever set the revision may not approve it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub separate: bool,
}

/// A promotion of a revision into an environment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct PromotionState {
    /// The run it belongs to.
    pub run: u64,
    /// What is promoted.
    pub revision: String,
    /// `waiting`, `attempting`, `created`, `failed`, `succeeded`, `abandoned` or `rejected`.
    pub phase: String,
    /// Why it is as it is: a word for machines.
    pub reason: String,
    /// The same as a sentence.
    pub message: String,
    /// When it was found to be needed.
    pub since: String,
    /// How often it was attempted.
    pub attempts: u64,
    /// How often a person had it attempted anew.
    #[serde(skip_serializing_if = "is_zero")]
    pub again: u64,
    /// When it was last attempted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempted_at: Option<String>,
    /// After a failure: when it is attempted again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<String>,
    /// Who approved it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<Actor>,
    /// Whether it needs no (further) approval.
    pub approved: bool,
    /// Whether all targets have been healthy on it in this run.
    pub completed: bool,
    /// When all of them had been, or it had ended otherwise; absent: it is not over, or that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done_at: Option<String>,
    /// All targets run it and are healthy, but the promotion failed: the environments behind wait until it is retried with success
    /// or accepted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub contested: bool,
    /// The pull request it made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<PullRequestState>,
    /// Where the git host shows what it would change; not of one that has ended, nor where no commits are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compare_url: Option<String>,
    /// The context of the sequence it triggered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keptn_context: Option<String>,
    /// The id of the notification it sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notification: Option<String>,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// A pull request of a promotion.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(default)]
pub struct PullRequestState {
    /// Its number at the host.
    pub number: u64,
    /// Where people find it.
    pub url: String,
    /// Its branch.
    pub branch: String,
    /// Whether the host could merge it, as far as it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mergeable: Option<bool>,
    /// The last look at its repository; absent: there was none yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub look: Option<LookState>,
}

/// The last look at the repository of a pull request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(default)]
pub struct LookState {
    /// When it was.
    pub at: String,
    /// Why it failed; absent: it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Since when looks have failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}

/// Something that is wrong in an environment, whatever the pipeline waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default, as = PipelineCondition))]
#[serde(default)]
pub struct ConditionState {
    /// The environment.
    pub environment: String,
    /// A word for machines: `TargetNotReadable`, or why a repository cannot be looked at.
    pub reason: String,
    /// The same as a sentence.
    pub message: String,
}
