//! What happened to pipelines, what they wait for, and what is open for them.

use super::{PromotionState, PullRequestState};
use crate::http::page::page;
use serde::{Deserialize, Serialize};

page! {
    /// A page of what happened, newest first: `GET /v1/pipelines/{namespace}/{name}/history`.
    PipelineHistoryPage of PastPromotion, and Commands, sized "How many promotions and commands a page has at most.";
    /// Promotions that are over, newest first.
}

/// What a page of the history has beside promotions; its members count, too.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct Commands {
    /// Commands that were obeyed, newest first.
    pub commands: Vec<PastCommand>,
    /// The server's clock: what all times of the answer are compared with, RFC 3339.
    pub now: String,
}

/// A promotion that is over.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct PastPromotion {
    /// Into which environment.
    pub environment: String,
    /// When it made room for another one.
    pub at: String,
    /// As it was last.
    #[serde(flatten)]
    pub promotion: PromotionState,
}

/// A command that was obeyed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct PastCommand {
    /// When it was obeyed.
    pub at: String,
    /// `approve`, `reject`, `abandon`, `suspend`, `resume`, `hold`, `release`, `retry` or `abort`.
    pub command: String,
    /// For which environment; absent: for the whole pipeline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// About which revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Who asked, as they said; empty: they did not.
    pub by: String,
    /// Why; empty: they did not say.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// What each environment waits for: `GET /v1/pipelines/{namespace}/{name}/explain`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(default)]
pub struct Explanation {
    /// Its project.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The revision that is carried through; absent before the first run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// In their order.
    pub environments: Vec<Explained>,
    /// The server's clock.
    pub now: String,
}

/// What an environment waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(default)]
pub struct Explained {
    /// The environment.
    pub environment: String,
    /// Whether it runs the revision and is healthy: then there is nothing to wait for.
    pub done: bool,
    /// The first closed gate, or what else it waits for: a word for machines; empty: nothing.
    pub reason: String,
    /// The same as a sentence.
    pub message: String,
    /// What would have to happen.
    pub remedy: String,
    /// When it opens by itself, as far as is known now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opens: Option<String>,
}

/// The open pull requests of a pipeline: `GET /v1/pipelines/{namespace}/{name}/pull-requests`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct OpenPullRequests {
    /// In the order of the environments.
    pub pull_requests: Vec<OpenPullRequest>,
    /// The server's clock.
    pub now: String,
}

/// An open pull request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(default)]
pub struct OpenPullRequest {
    /// Into which environment it promotes.
    pub environment: String,
    /// Which revision.
    pub revision: String,
    /// The repository's URL.
    pub repository: String,
    /// It is being closed, because its promotion is over.
    pub closing: bool,
    /// Number, URL, branch.
    #[serde(flatten)]
    pub request: PullRequestState,
}
