//! What waits for a person, fails or waits for something else, across the engines.

use crate::http::execution::Behind;
use crate::http::page::page;
use crate::http::promotions::WaitingApproval;
use serde::{Deserialize, Serialize};

page! {
    /// A page of what waits: `GET /v1/wait`.
    WaitPage of WaitItem, and Looked;
    /// What needs a person, then what fails, then what waits for something else; of each the oldest first.
}

/// What a page of [`WaitItem`]s has beside them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct Looked {
    /// The server's clock: what all times of the answer are compared with, RFC 3339.
    pub now: String,
    /// Of what there is more than was looked at, or something that cannot be read: `sequences`, `pipelines`, `deployments` or
    /// `deadLetters`; empty: all was.
    pub cut: Vec<String>,
}

/// Something that waits for a person, fails, or waits for something else.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct WaitItem {
    /// `person`: somebody has to decide or act; `failing`: it does not go on as it is; `waiting`: it goes on by itself.
    pub group: String,
    /// `sequence`, `pipeline`, `deployment`, `webhook` or `message`.
    pub engine: String,
    /// Why: of a sequence as in `waits`, of a pipeline as `explain` says, of a deployment config as in its status.
    pub reason: String,
    /// The same as a sentence, where the engine has one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// What would help, where the engine says so.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub remedy: String,
    /// The project or namespace; empty: it belongs to the installation.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub project: String,
    /// The pipeline, deployment config or webhook subscription; of a message the id of its dead letter.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The service of a sequence.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub service: String,
    /// The stage of a sequence.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub stage: String,
    /// The environment of a pipeline.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub environment: String,
    /// The context of a sequence, or of what a deployment is carried out for.
    #[serde(rename = "shkeptncontext", skip_serializing_if = "String::is_empty")]
    pub context: String,
    /// The sequence.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub sequence: String,
    /// The present task of a sequence.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub task: String,
    /// The id of the open task's trigger: what an approval is decided by.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// The number of a deployment config's version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// The image or revision that is to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The one that runs there now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Since when.
    pub since: String,
    /// When that ends by itself, or is given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// The execution that holds the lane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind: Option<Behind>,
    /// What keeps a stage closed: the reason of a window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
    /// Who has paused, held, suspended, claimed or begun it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// Of a task that somebody has begun: when they were last heard from, if that was after `since`. Of a version that is carried
    /// out: when its deployer was last heard from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heard: Option<String>,
    /// Of a task that somebody has begun: when they have missed three of the heartbeats that they promised.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// Of a task that somebody has claimed: whether they have no place for it yet.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub queued: bool,
    /// Who has sent `.finished` of a task without a `.started`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    /// Of a promotion: who may approve it, and how many have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<WaitingApproval>,
    /// The pull request that waits to be merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Of a promotion: where the git host shows what it would change; absent: no commits are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compare_url: Option<String>,
    /// The scope that it takes to act, for example `approve:production`; absent: there is nothing to do through the API.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs: Option<String>,
}
