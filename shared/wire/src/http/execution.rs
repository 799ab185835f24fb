//! Executions as the API shows them, and the environments they change.

use crate::http::page::{Clock, page};
use serde::{Deserialize, Serialize};

/// The states that a sequence, or an execution, can be in.
pub const STATES: [&str; 8] =
    ["triggered", "started", "waiting", "paused", "waitingForApproval", "finished", "timedOut", "aborted"];

/// One execution of a sequence in a stage.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct ExecutionState {
    /// 13 characters.
    pub id: String,
    /// Where it runs.
    pub stage: String,
    /// What runs.
    pub sequence: String,
    /// As [`SequenceState::state`], of this execution alone.
    pub state: String,
    /// What it does right now, in a word of the engine's.
    pub phase: String,
    /// `pass`, `warning` or `fail`, once it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// `succeeded`, `errored` or `aborted`, once it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// The image under delivery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Why it did not simply pass: the message of the last task that did not, or of the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When it was caused: its trigger was accepted, or its parent ended. RFC 3339.
    pub accepted_at: String,
    /// When the outside event at its root was accepted: what older and newer deliveries are compared by. RFC 3339.
    pub delivery_accepted_at: String,
    /// When it left the queue, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// When it ended, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<String>,
    /// The tasks reached so far.
    pub tasks: Vec<TaskState>,
    /// The id of the event that triggered it.
    pub trigger_id: String,
    /// The execution whose end set it off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The ended execution that it repeats.
    #[serde(rename = "retryOf", skip_serializing_if = "Option::is_none")]
    pub retry_of: Option<String>,
    /// The execution that repeats it.
    #[serde(rename = "retriedBy", skip_serializing_if = "Option::is_none")]
    pub retried_by: Option<String>,
    /// Who let it begin although its stage was closed.
    #[serde(rename = "override", skip_serializing_if = "Option::is_none")]
    pub overridden: Option<Overridden>,
    /// Its place in the queue, in lists of queues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    /// What it waits for, while it is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<Waits>,
    /// Its context, where the surrounding object does not name it.
    #[serde(rename = "shkeptncontext", skip_serializing_if = "String::is_empty")]
    pub context: String,
    /// Its project, where the surrounding object does not name it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub project: String,
    /// Its service, where the surrounding object does not name it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub service: String,
}

/// One task of an [`ExecutionState`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(default)]
pub struct TaskState {
    /// The task.
    pub name: String,
    /// `pass`, `warning` or `fail`, once it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// `triggered`, `started`, `finished`, `timedOut` or `aborted`.
    pub state: String,
    /// When it was triggered, RFC 3339.
    #[serde(rename = "triggeredAt", skip_serializing_if = "Option::is_none")]
    pub triggered_at: Option<String>,
    /// When the first executor began, RFC 3339.
    #[serde(rename = "startedAt", skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// When it was complete, RFC 3339.
    #[serde(rename = "finishedAt", skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<String>,
    /// Of an approval: who decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Of a task that was aborted or timed out: how many executors had begun and had not answered. They may still work.
    #[serde(rename = "mayRun", skip_serializing_if = "Option::is_none")]
    pub may_run: Option<u64>,
}

/// Somebody let an execution begin although its stage was closed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(default)]
pub struct Overridden {
    /// Who.
    pub by: String,
    /// Why.
    pub reason: String,
}

/// What an open execution waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(default)]
pub struct Waits {
    /// `lane`: for another execution of the service in the stage; `executor`: for a `.started`; `answer`: for a `.finished`;
    /// `approval`: for a person; `delay`: for the time of `triggeredAfter`; `resume`: it is paused; `window`: for its stage to
    /// open.
    pub reason: String,
    /// Since when, RFC 3339.
    pub since: String,
    /// When that ends by itself: the delay, or the deadline after which it is given up. RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// The present task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The type of the open task's trigger.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub ty: Option<String>,
    /// The id of the open task's trigger.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The execution that holds the lane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind: Option<Behind>,
    /// Of a task that somebody works on: who has sent `.started`, as far as that is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// When they were last heard from, if that was after `since`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heard: Option<String>,
    /// When they have missed three of the heartbeats that they promised; absent: they promised none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// Whether they have claimed it, and have no place for it yet.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub queued: bool,
    /// Who has sent `.finished`, while nobody has sent `.started`: the answer counts when a `.started` comes, else at `until`.
    #[serde(rename = "answeredBy", skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    /// What keeps the stage closed: the reason of a window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
}

/// The execution that another one waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(default)]
pub struct Behind {
    /// Its context.
    #[serde(rename = "shkeptncontext")]
    pub context: String,
    /// Its service.
    pub service: String,
    /// Its sequence.
    pub sequence: String,
    /// Its image.
    pub image: Option<String>,
}

/// A sequence that an end did not start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(default)]
pub struct NotReached {
    /// Its stage.
    pub stage: String,
    /// Its name.
    pub sequence: String,
    /// The end that is the reason.
    pub after: Ended,
}

/// How a sequence ended in a stage.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(default)]
pub struct Ended {
    /// The stage.
    pub stage: String,
    /// The sequence.
    pub sequence: String,
    /// `pass`, `warning` or `fail`.
    pub result: String,
}

page! {
    /// A page of environments: `GET /v1/project/{project}/environment`.
    EnvironmentPage of EnvironmentState, and Clock, sized "How many services a page has at most.";
    /// By service, each in the shipyard's order.
}

/// `GET /v1/project/{project}/queue`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(default)]
pub struct QueueList {
    /// By service and stage; those without anybody in them are left out.
    pub items: Vec<Queue>,
    /// The server's clock, RFC 3339.
    pub now: String,
}

/// Who waits for one service in one stage.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(default)]
pub struct Queue {
    /// The service.
    pub service: String,
    /// The stage.
    pub stage: String,
    /// The execution that runs there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<ExecutionState>,
    /// The others, in the order in which they will run.
    pub waiting: Vec<ExecutionState>,
}

/// One service in one stage.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct EnvironmentState {
    /// The stage.
    pub stage: String,
    /// The service.
    pub service: String,
    /// The image that runs; absent before the first deployment, and after a rollback that did not say which.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Since when, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// The context of the delivery that brought it.
    #[serde(rename = "shkeptncontext", skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// When that delivery was accepted, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery_accepted_at: Option<String>,
    /// The last sequence that ended there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<LastSequence>,
    /// Everything open there, oldest first.
    pub coming: Vec<ExecutionState>,
}

/// The last sequence that ended in a stage.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct LastSequence {
    /// Its name.
    pub sequence: String,
    /// Its context.
    #[serde(rename = "shkeptncontext")]
    pub context: String,
    /// `pass`, `warning` or `fail`.
    pub result: String,
    /// `succeeded`, `errored` or `aborted`.
    pub status: String,
    /// When, RFC 3339.
    pub finished_at: String,
}
