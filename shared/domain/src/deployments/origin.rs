//! What a version comes from, if it is no change of its config: a rollback, or the task of a delivery.

use serde::{Deserialize, Serialize};

/// The rollback that a version is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rollback {
    /// The version to go back to.
    #[serde(rename = "v")]
    pub release: u64,
    /// Whether Keelway rolled back without a command.
    #[serde(rename = "a", default)]
    pub automatic: bool,
    /// An id that configs share which are rolled back together.
    #[serde(rename = "g", default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Whether it takes the steps of the strategy. Otherwise it is immediate.
    #[serde(rename = "s", default, skip_serializing_if = "std::ops::Not::not")]
    pub by_steps: bool,
}

/// The task of a sequence that a deployment carries out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// The name of the task.
    #[serde(rename = "t")]
    pub name: String,
    /// The context of the sequence.
    #[serde(rename = "c")]
    pub context: String,
    /// The id of its `.triggered` event.
    #[serde(rename = "i")]
    pub triggered: String,
    /// Its project, stage and service.
    #[serde(rename = "p")]
    pub place: [String; 3],
}

/// The delivery whose task asked for a version: what a cause tells of the [`Task`]. It stays when the task has its answer, and the
/// version is retried.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// The name of the task.
    pub task: String,
    /// The project of the sequence.
    pub project: String,
    /// Its stage.
    pub stage: String,
    /// What it delivers.
    pub service: String,
    /// The context of the sequence.
    pub context: String,
}

impl Task {
    /// The delivery that it is a task of.
    pub fn delivery(&self) -> Delivery {
        let Self { name, context, place: [project, stage, service], .. } = self;
        let [task, project, stage, service, context] = [name, project, stage, service, context].map(Clone::clone);
        Delivery { task, project, stage, service, context }
    }
}

impl std::fmt::Display for Delivery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { task, project, stage, service, context } = self;
        write!(f, "task {task} of {project}/{stage}/{service} ({context})")
    }
}
