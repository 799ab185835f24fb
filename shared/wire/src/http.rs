//! Bodies of the HTTP API, as both sides write and read them.

pub mod access;
mod border;
mod definitions;
pub mod deployments;
mod evaluations;
mod execution;
pub mod keptn;
pub mod operations;
mod overview;
mod page;
mod plan;
pub mod promotions;
pub mod schedules;
mod wait;
pub mod webhooks;

pub use border::*;
pub use definitions::*;
pub use evaluations::*;
pub use execution::*;
pub use overview::*;
pub use page::{Clock, Listed, Nothing, Page, PageKey};
pub use plan::*;
pub use wait::*;

use page::page;
use serde::{Deserialize, Serialize};

/// A refusal as problem details (RFC 9457): what is wrong, where, and the way out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default, as = ProblemDetails))]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// A URI that names the kind of problem; `about:blank` when the status says it all.
    #[serde(rename = "type", default = "about_blank")]
    pub ty: String,
    /// The kind of problem in a few words, the same each time.
    pub title: String,
    /// The HTTP status code, repeated for those who only keep the body.
    pub status: u16,
    /// This occurrence: the field at fault and what to do about it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// The path of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// Everything wrong with a manifest, at once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<crate::manifest::Finding>,
    /// Everything wrong with a request about deployments, at once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<deployments::FieldError>,
}

fn about_blank() -> String {
    "about:blank".into()
}

impl Problem {
    /// The content type of a problem.
    pub const CONTENT_TYPE: &str = "application/problem+json";

    /// A problem of the kind `title` under the HTTP status `status`.
    pub fn new(status: u16, title: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { ty: about_blank(), title: title.into(), status, detail: detail.into(), ..Self::default() }
    }
}

impl std::fmt::Display for Problem {
    /// The detail, or the title where there is none; then the findings, one per line.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.detail.is_empty() { &self.title } else { &self.detail })?;
        self.findings.iter().try_for_each(|finding| write!(f, "\n{finding}"))
    }
}

/// The answer to `POST /v1/event`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
pub struct Accepted {
    /// The context the event belongs to: what to watch.
    #[serde(rename = "keptnContext")]
    pub context: String,
    /// Of an answer to a task that does not count as it is: why, and when it will.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The answer to a batch of events at `POST /v1/event`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(default)]
pub struct BatchAccepted {
    /// One for each event, in the order of the batch.
    pub events: Vec<AcceptedEvent>,
}

/// An event of a batch that was accepted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(default)]
pub struct AcceptedEvent {
    /// Its id, which the API gives it if its sender did not.
    pub id: String,
    /// The context it belongs to.
    #[serde(rename = "keptnContext")]
    pub context: String,
    /// Of an answer to a task that does not count as it is: why, and when it will.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

page! {
    /// A page of events: `GET /v1/event` and `GET /v1/event/triggered/{type}`.
    EventPage of serde_json::Value, and News;
    /// CloudEvents in structured JSON. Next to the attributes, `received` says when the event was accepted, or committed by the
    /// engine, and `verdict` why it did not count (`stale`, `invalid: …`).
    "events"
}

/// What a page of events has beside them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct News {
    /// The server's clock: what all times of the answer are compared with, RFC 3339.
    pub now: String,
    /// Open triggers only: what stands for all that are open. Sent back as `unless`, the next answer waits until others are open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
}

page! {
    /// A page of sequence states, newest first: `GET /v1/sequence/{project}`.
    SequencePage of SequenceState, by i64, and Clock;
    /// One per context.
    "states"
}

page! {
    /// A page of executions: `GET /v1/sequence-execution`.
    ExecutionPage of ExecutionState, by i64, and Bounded;
    /// Those of a context in the order of their ids, each with its place.
    "sequenceExecutions"
}

/// What a page of executions has beside them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct Bounded {
    /// The server's clock: what all times of the answer are compared with, RFC 3339.
    pub now: String,
    /// Of open ones: there are more than the oldest 500, which are listed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// Everything that one outside event caused, as Keptn's sequence state; `executions` is Keelway's own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(default)]
pub struct SequenceState {
    /// The first sequence.
    pub name: String,
    /// Its service.
    pub service: String,
    /// Its project.
    pub project: String,
    /// When it was accepted, RFC 3339.
    pub time: String,
    /// The context.
    pub shkeptncontext: String,
    /// In Keptn's words: `triggered`, `started`, `waiting`, `paused`, `finished`, `timedOut` or `aborted`.
    pub state: String,
    /// The same in Keelway's words: also `waitingForApproval`, which is `started` in Keptn's.
    pub phase: String,
    /// In the order they were entered.
    pub stages: Vec<StageState>,
    /// Of a remediation: the problem's title.
    #[serde(rename = "problemTitle", skip_serializing_if = "String::is_empty")]
    pub problem_title: String,
    /// In the order they were caused; of many, the newest.
    pub executions: Vec<ExecutionState>,
    /// There are more executions than are listed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// What would have followed if everything had passed, and does not.
    #[serde(rename = "notReached", skip_serializing_if = "Vec::is_empty")]
    pub not_reached: Vec<NotReached>,
}

impl SequenceState {
    /// Whether nothing of it runs or waits any more.
    pub fn is_over(&self) -> bool {
        matches!(self.state.as_str(), "finished" | "timedOut" | "aborted")
    }
}

/// One stage of a [`SequenceState`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct StageState {
    /// The stage.
    pub name: String,
    /// The image it was to deploy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// In Keptn's words: `triggered`, `started`, `waiting` or `paused`, or the status of the last sequence that ended there.
    pub state: String,
    /// The same in Keelway's words: also `waitingForApproval`.
    pub phase: String,
    /// The last evaluation there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latest_evaluation: Option<EvaluationState>,
    /// The last event there.
    pub latest_event: Option<EventState>,
    /// The last event there with result `fail` or status `errored`.
    pub latest_failed_event: Option<EventState>,
}

/// How an evaluation ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(default)]
pub struct EvaluationState {
    /// `pass`, `warning` or `fail`.
    pub result: String,
    /// As the executor gave it; 0 to 100 with Keptn's.
    pub score: serde_json::Value,
}

/// An event by reference.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(default)]
pub struct EventState {
    /// Its type.
    #[serde(rename = "type")]
    pub ty: String,
    /// Its id.
    pub id: String,
    /// Its time, RFC 3339.
    pub time: String,
}

page! {
    /// A page of projects: `GET /v1/project`.
    ProjectPage of ProjectState;
    /// By name.
    "projects"
}

/// One project: an entry of [`ProjectPage`], and `GET /v1/project/{project}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct ProjectState {
    /// Its name.
    pub project_name: String,
    /// When it was first applied: nanoseconds since 1970, as Keptn's clients read it.
    pub creation_date: String,
    /// The shipyard's revision in force; empty without one.
    pub shipyard_version: String,
    /// For people.
    pub description: String,
    /// In the shipyard's order.
    pub stages: Vec<ProjectStage>,
    /// The shipyard's source text; only where one project is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shipyard: Option<String>,
    /// What other projects may do here; absent: nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub consents: Vec<ConsentState>,
    /// What it may use of the installation; absent: what administrators of the whole installation have applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyState>,
}

/// A stage of a [`ProjectState`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct ProjectStage {
    /// Its name.
    pub stage_name: String,
    /// The services triggered there so far, by name.
    pub services: Vec<ProjectService>,
}

/// A service of a [`ProjectStage`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct ProjectService {
    /// Its name.
    pub service_name: String,
    /// When it was first named: nanoseconds since 1970, as Keptn's clients read it.
    pub creation_date: String,
}

page! {
    /// A project's stages: `GET /v1/project/{project}/stage`.
    StagePage of ProjectStage;
    /// In the shipyard's order.
    "stages"
}

page! {
    /// A page of services: `GET /v1/project/{project}/service`, and of a stage.
    ServicePage of ProjectService;
    /// By name.
    "services"
}

/// A person's answer to an open approval: `POST /v1/project/{project}/approval/{context}/{triggerId}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Decision {
    /// What was decided.
    pub decision: Verdict,
    /// Why, for people.
    #[serde(default)]
    pub message: String,
    /// Who decided.
    #[serde(default)]
    pub by: String,
}

/// The two ways to answer an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The sequence goes on.
    Approve,
    /// The sequence ends with result `fail`.
    Decline,
}

/// The answer to a [`Decision`]: the result when it is in the state (200), where to look when it is not there yet (202).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(default)]
pub struct Decided {
    /// The context.
    #[serde(rename = "keptnContext")]
    pub context: String,
    /// `pass` or `fail`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// The path that will show it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub look: Option<String>,
}

/// The body of `POST /v1/sequence/{project}/{context}/control`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct Control {
    /// `pause`, `resume` or `abort`.
    pub state: String,
    /// This stage only; empty for all.
    pub stage: String,
}

/// The answer to `GET /v1/metadata`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(default)]
pub struct Metadata {
    /// The version of Keptn whose API this is like.
    pub keptnversion: String,
    /// Whether a project needs no repository of its own: always.
    pub automaticprovisioning: bool,
    /// Keelway's own version.
    pub version: String,
    /// The stack that answers.
    pub stack: String,
    /// What signed requests to it name: `<account>/<region>/<stack>`.
    pub installation: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_problem_is_what_rfc_9457_says() {
        let problem = Problem::new(404, "unknown stage", "stage \"prod\" is not in project shop: did you mean production?");
        let body = json!({
            "type": "about:blank", "title": "unknown stage", "status": 404,
            "detail": "stage \"prod\" is not in project shop: did you mean production?"
        });
        assert_eq!(serde_json::to_value(&problem).unwrap(), body);
        assert_eq!(serde_json::from_value::<Problem>(body).unwrap(), problem);
    }
}
