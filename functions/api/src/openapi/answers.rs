//! Which members the objects in answers always have. Clients read them leniently, and so the types do not say it: their values do.

use super::bodies::{ControlAnswer, LogsDeleted, OverrideAnswer, RetryAnswer};
use keelway_wire::http::Overridden;
use keelway_wire::http::access::{AuditEntry, AuditPage, GrantState, TokenAnswer, TokenPage, TokenState, WhoAmI};
use keelway_wire::http::deployments::{
    ArtifactSourcePage, ArtifactSourceState, AuditEntry as ConfigAuditEntry, AuditPage as ConfigAuditPage, Cause, ClaimAnswer,
    ConfigPage, ConfigState, Details, DriftState, FieldError, ProgressState, ReportAnswer, RollbackAnswer, RollbacksAnswer,
    ServedState, SteerAnswer, StrategyAnswer, TriggerState, VersionPage, VersionState,
};
use keelway_wire::http::keptn::{Committed, Identified, LogPage, Message, ResourcePage};
use keelway_wire::http::operations::{
    Checks, DeadLetter, DeadLetterPage, InstalledLimits, InvalidInput, InvalidPage, RoundTrip, RuleState,
};
use keelway_wire::http::promotions::{
    Actor, AppState, CommandAnswer, ConditionState, EnvironmentState as PipelineEnvironment, Explained, Explanation, Healthy,
    HistoryPage, Hold, LookState, ObservationAnswer, ObservedFact, OpenPullRequest, OpenPullRequests, PastCommand, PastPromotion,
    PipelineEntry, PipelinePage, PipelineState, PromotionState, PullRequestState, Registered, RegisteredPage, RunState,
    TargetState, WaitingApproval,
};
use keelway_wire::http::schedules::{ScheduleLast, SchedulePage, ScheduleRun, ScheduleState};
use keelway_wire::http::webhooks::{
    DeliveryAttempt, DeliveryPage, DeliveryState, Redelivered, WebhookDisabled, WebhookPage, WebhookState,
};
use keelway_wire::http::{
    Accepted, AcceptedEvent, Applied, AppliedDocument, BatchAccepted, Behind, BorderGap, BorderPage, ConsentState, Decided, Ended,
    EnvironmentPage, EnvironmentState, EvaluationState, EventPage, EventState, ExecutionPage, ExecutionState, LastSequence,
    Metadata, NotReached, PatternState, PolicyState, Problem, ProjectPage, ProjectService, ProjectStage, ProjectState, Queue,
    QueueList, RevisionPage, RevisionState, SequencePage, SequenceState, ServicePage, ShipyardDiff, StagePage, StageState,
    TaskState, Waits,
};
use serde::Serialize;
use utoipa::ToSchema;

fn members<T: ToSchema + Serialize + Default>() -> (String, Vec<String>) {
    let value = serde_json::to_value(T::default()).unwrap_or_default();
    (T::name().into_owned(), value.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect())
}

macro_rules! always {
    ($($answer:ty),* $(,)?) => {
        /// By the name of the schema. What is also read, in requests, is left out.
        pub fn always() -> impl Iterator<Item = (String, Vec<String>)> {
            [$(members::<$answer> as fn() -> (String, Vec<String>)),*].into_iter().map(|of| of())
        }
    };
}

always![
    OverrideAnswer,
    DeliveryAttempt,
    DeliveryPage,
    DeliveryState,
    Redelivered,
    WebhookDisabled,
    WebhookPage,
    WebhookState,
    ScheduleLast,
    SchedulePage,
    ScheduleRun,
    ScheduleState,
    Overridden,
    Checks,
    InstalledLimits,
    RoundTrip,
    RuleState,
    Accepted,
    AcceptedEvent,
    Actor,
    AppState,
    Applied,
    AppliedDocument,
    ArtifactSourcePage,
    ArtifactSourceState,
    AuditEntry,
    AuditPage,
    BatchAccepted,
    Behind,
    BorderGap,
    BorderPage,
    Cause,
    ClaimAnswer,
    CommandAnswer,
    Committed,
    ConfigAuditEntry,
    ConfigAuditPage,
    ConfigPage,
    ConfigState,
    ConsentState,
    ControlAnswer,
    DeadLetter,
    DeadLetterPage,
    Decided,
    Details,
    DriftState,
    Ended,
    EnvironmentPage,
    EnvironmentState,
    EvaluationState,
    EventPage,
    EventState,
    ExecutionPage,
    ExecutionState,
    Explained,
    Explanation,
    FieldError,
    GrantState,
    Healthy,
    HistoryPage,
    Hold,
    Identified,
    InvalidInput,
    InvalidPage,
    LastSequence,
    LogPage,
    LogsDeleted,
    Message,
    Metadata,
    NotReached,
    ObservationAnswer,
    ObservedFact,
    OpenPullRequest,
    OpenPullRequests,
    PastCommand,
    PastPromotion,
    PatternState,
    PipelineEntry,
    PipelineEnvironment,
    PipelinePage,
    PipelineState,
    PolicyState,
    Problem,
    ProgressState,
    ProjectPage,
    ProjectService,
    ProjectStage,
    ProjectState,
    PromotionState,
    PullRequestState,
    ConditionState,
    LookState,
    Queue,
    QueueList,
    Registered,
    RegisteredPage,
    ReportAnswer,
    ResourcePage,
    RetryAnswer,
    RevisionPage,
    RevisionState,
    RollbackAnswer,
    RollbacksAnswer,
    RunState,
    SequencePage,
    SequenceState,
    ServedState,
    ServicePage,
    ShipyardDiff,
    StagePage,
    StageState,
    SteerAnswer,
    StrategyAnswer,
    TargetState,
    TaskState,
    TokenAnswer,
    TokenPage,
    TokenState,
    TriggerState,
    VersionPage,
    VersionState,
    WaitingApproval,
    Waits,
    WhoAmI,
];
