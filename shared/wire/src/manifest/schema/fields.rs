//! The shape of each field of each level.

use super::Parts;
use super::shapes::{
    any, constant, duration, flag, list, matches, name, needed, open, or_null, pattern, project, sequence, share, text, texts, url,
    whole, word, words,
};
use super::version;
use crate::manifest::deployments::Part;
use crate::manifest::fields::Level::{self, Deployment};
use crate::manifest::promotion::HOSTS;
use crate::manifest::webhook::{FORMS, OPERATORS};
use keelway_domain::border::Act;
use serde_json::{Map, Value, json};

/// The shape of a field; of those that only servers write, anything.
pub fn shape(level: Level, field: &str, parts: &mut Parts) -> Value {
    match level {
        Deployment(part) => deployment(part, field, parts),
        Level::Shipyard | Level::Metadata | Level::Spec | Level::Stage | Level::Sequence | Level::Task => {
            shipyard(level, field, parts)
        }
        Level::Trigger | Level::Selector => shipyard(level, field, parts),
        Level::Schedule | Level::ScheduleSpec => schedule(level, field, parts),
        Level::Remediation | Level::RemediationSpec | Level::ProblemType | Level::RemediationAction => {
            remediation(level, field, parts)
        }
        Level::Webhook | Level::WebhookSpec | Level::WebhookFilter | Level::MatchExpression | Level::WebhookSecret => {
            webhook(level, field, parts)
        }
        Level::Consent | Level::Policy | Level::Allows | Level::ResourcePattern | Level::Quotas => border(level, field, parts),
        _ => other(level, field, parts),
    }
}

/// The fields that must be there.
pub fn required(level: Level) -> &'static [&'static str] {
    match level {
        Level::Shipyard => &["kind", "spec"],
        Level::Spec => &["stages"],
        Level::Stage | Level::Task | Level::ProjectMetadata | Level::ObjectMetadata | Level::SecretRef | Level::ClusterRef => {
            &["name"]
        }
        Level::Sequence => &["name", "tasks"],
        Level::Trigger => &["event"],
        Level::Project => &["apiVersion", "kind", "metadata"],
        Level::Remediation => &["kind", "spec"],
        Level::Consent => &["to", "may"],
        Level::ResourcePattern => &["name"],
        Level::RemediationSpec => &["remediations"],
        Level::ProblemType => &["problemType", "actionsOnOpen"],
        Level::RemediationAction => &["action"],
        Level::Schedule | Level::Pipeline | Level::Cluster | Level::GitHost | Level::Webhook => {
            &["apiVersion", "kind", "metadata", "spec"]
        }
        Level::ScheduleSpec => &["project", "stage", "services", "sequence"],
        Level::PipelineSpec => &["appRef", "environments"],
        Level::AppRef => &["apiVersion", "kind", "name"],
        Level::Environment => &["name", "targets"],
        Level::Target => &["namespace"],
        Level::Promotion => &["strategy"],
        Level::PullRequest => &["type", "url", "baseBranch"],
        Level::SequenceRef => &["service"],
        Level::Window => &["kind"],
        Level::ClusterSpec => &["server", "secretRef"],
        Level::GitHostSpec => &["host", "type", "api"],
        Level::WebhookSpec => &["events", "url"],
        Level::MatchExpression => &["key", "operator"],
        Level::WebhookSecret => &["name", "secretRef"],
        Deployment(part) => required_part(part),
        _ => &[],
    }
}

fn required_part(part: Part) -> &'static [&'static str] {
    match part {
        Part::Config => &["apiVersion", "kind", "metadata", "spec"],
        Part::Metadata => &["name"],
        Part::Spec => &["template"],
        Part::Proposed => &["kind"],
        Part::ProposedTemplate => &["controllerTemplate"],
        Part::Controller => &["podTemplate"],
        Part::Canary => &["steps"],
        Part::Step => &["weight"],
        Part::Hook => &["failurePolicy"],
        Part::Exec => &["containerName", "command"],
        Part::Env | Part::Parameter => &["name"],
        Part::TagImage => &["containerName", "to"],
        Part::Reference => &["name"],
        Part::Trigger => &["type"],
        Part::ImageChange => &["from", "containerNames"],
        Part::ProposedImageChange => &["containerNames"],
        Part::Target => &["name", "kind", "id"],
        Part::List => &["apiVersion", "kind", "items"],
        Part::Template => &["apiVersion", "kind", "objects"],
        Part::Source => &["apiVersion", "kind", "metadata", "spec"],
        Part::Ecr => &["repository"],
        Part::Webhook => &["secret"],
        Part::SourceTag => &["name", "pattern"],
        _ => &[],
    }
}

/// What a level asks for beside its fields.
pub fn further(level: Level) -> Map<String, Value> {
    let one_of = |fields: &[&str]| {
        let all: Vec<Value> = fields.iter().map(|field| json!({"required": [field]})).collect();
        Map::from_iter([("oneOf".to_owned(), Value::Array(all))])
    };
    match level {
        Level::ScheduleSpec => one_of(&["cron", "at"]),
        Level::Strategy => one_of(&["notification", "pull-request", "pullRequest", "sequence"]),
        Level::Window => {
            let forms = json!([{"required": ["schedule", "duration"]}, {"required": ["from", "until"]}]);
            Map::from_iter([("oneOf".to_owned(), forms)])
        }
        Deployment(Part::Hook) => one_of(&["execNewPod", "tagImages", "invoke"]),
        Deployment(Part::Deployer) => one_of(&["ecs", "codeBuild"]),
        Deployment(Part::SourceSpec) => one_of(&["ecr", "webhook"]),
        // A person's answer for each result.
        Level::Task => {
            let answer = or_null(word(&["automatic", "manual"]));
            let properties =
                json!({"type": ["object", "null"], "properties": {"pass": answer, "warning": answer, "separate": or_null(flag())}});
            let condition = json!({"properties": {"name": {"const": "approval"}}});
            Map::from_iter([("if".to_owned(), condition), ("then".to_owned(), json!({"properties": {"properties": properties}}))])
        }
        _ => Map::new(),
    }
}

fn shipyard(level: Level, field: &str, parts: &mut Parts) -> Value {
    match (level, field) {
        (Level::Shipyard, "kind") => constant("Shipyard"),
        (Level::Shipyard, "apiVersion" | "version") => version("Shipyard"),
        (Level::Shipyard, "metadata") => parts.named(Level::Metadata),
        (Level::Shipyard, "spec") => parts.named(Level::Spec),
        (Level::Metadata, "name") => text(),
        (Level::Metadata, "annotations" | "labels") => texts(),
        (Level::Spec, "stages") => list(&parts.named(Level::Stage), 1),
        (Level::Stage, "name") => pattern("^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", 43),
        (Level::Stage, "sequences") => list(&parts.named(Level::Sequence), 0),
        (Level::Stage, "windows") => list(&parts.named(Level::Window), 0),
        (Level::Sequence, "supersede" | "ignoreWindows") => flag(),
        (Level::Sequence | Level::Task, "name") => sequence(),
        (Level::Sequence, "triggeredOn") => list(&json!({"anyOf": [parts.named(Level::Trigger), {"type": "string"}]}), 0),
        (Level::Sequence, "tasks") => list(&parts.named(Level::Task), 1),
        (Level::Task, "properties") => open(),
        (Level::Trigger, "event") => pattern("^[^\\s<>\"'`{}|,]+$", 128),
        (Level::Trigger, "selector") => parts.named(Level::Selector),
        (Level::Selector, "match") => matches(),
        // `timeout`, `startDeadline`, `triggeredAfter`
        _ => duration(),
    }
}

fn schedule(level: Level, field: &str, parts: &mut Parts) -> Value {
    match (level, field) {
        (Level::Schedule, "kind") => constant("Schedule"),
        (Level::Schedule, "apiVersion") => version("Schedule"),
        (Level::Schedule, "metadata") => parts.named(Level::ProjectMetadata),
        (Level::Schedule, _) => parts.named(Level::ScheduleSpec),
        (_, "project") => project(),
        (_, "stage") => pattern("^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", 43),
        (_, "sequence") => sequence(),
        (_, "services") => list(&needed(), 1),
        (_, "suspended") => flag(),
        (_, "concurrency") => word(&["queue", "skip"]),
        (_, "labels") => texts(),
        (_, "data") => open(),
        _ => needed(),
    }
}

fn remediation(level: Level, field: &str, parts: &mut Parts) -> Value {
    match (level, field) {
        (Level::Remediation, "kind") => constant("Remediation"),
        (Level::Remediation, "apiVersion" | "version") => pattern("^(spec\\.keptn\\.sh/)?[0-9]+(\\.[0-9]+)*$", 100),
        (Level::Remediation, "metadata") => parts.named(Level::Metadata),
        (Level::Remediation, "spec") => parts.named(Level::RemediationSpec),
        (Level::RemediationSpec, "remediations") => list(&parts.named(Level::ProblemType), 0),
        (Level::ProblemType, "problemType") | (Level::RemediationAction, "action") => needed(),
        (Level::ProblemType, "actionsOnOpen") => list(&parts.named(Level::RemediationAction), 0),
        (Level::RemediationAction, "name" | "description") => text(),
        _ => any(),
    }
}

fn other(level: Level, field: &str, parts: &mut Parts) -> Value {
    use Level::{
        AppRef, Approval, Cluster, ClusterRef, ClusterSpec, Environment, GitHost, GitHostSpec, Notification, ObjectMetadata,
        Pipeline, PipelineSpec, Project, ProjectMetadata, ProjectSpec, Promotion, PullRequest, SecretRef, SequenceRef, Strategy,
        Target, Window,
    };
    let kind = match level {
        Project => "Project",
        Pipeline => "Pipeline",
        Cluster => "Cluster",
        GitHost => "GitHost",
        _ => "",
    };
    match (level, field) {
        (Project | Pipeline | Cluster | GitHost, "kind") => constant(kind),
        (Project | Pipeline | Cluster | GitHost, "apiVersion") => version(kind),
        (Project, "metadata") => parts.named(ProjectMetadata),
        (Project, "spec") => parts.named(ProjectSpec),
        (ProjectMetadata, "name") => project(),
        (ProjectMetadata | ObjectMetadata, "annotations" | "labels") => texts(),
        (ProjectSpec, "description") => text(),
        (ProjectSpec, "consents") => list(&parts.named(Level::Consent), 0),
        (ProjectSpec, "policy") => parts.named(Level::Policy),
        (Pipeline | Cluster | GitHost, "metadata") => parts.named(ObjectMetadata),
        (Pipeline, "spec") => parts.named(PipelineSpec),
        (Cluster, "spec") => parts.named(ClusterSpec),
        (GitHost, "spec") => parts.named(GitHostSpec),
        // Image streams, and so artifact sources, may have `_` in their names.
        (ObjectMetadata, "name") => pattern("^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$", 63),
        (ClusterRef, "name") => name(63),
        (ObjectMetadata, "namespace") => project(),
        (PipelineSpec, "appRef") => parts.named(AppRef),
        (PipelineSpec, "environments") => list(&parts.named(Environment), 1),
        (PipelineSpec | Environment, "promotion") => parts.named(Promotion),
        (PipelineSpec, "inFlight") => word(&["restart", "finish"]),
        (PipelineSpec, "compare") => word(&["exact", "digest"]),
        (AppRef, _) => needed(),
        (Environment, "name") => pattern("^[A-Za-z0-9][A-Za-z0-9._-]*$", 63),
        (Environment, "targets") => list(&parts.named(Target), 1),
        (Target, "namespace") => needed(),
        (Target, "clusterRef") => parts.named(ClusterRef),
        (ClusterRef, _) => text(),
        (Promotion, "manual") | (PullRequest, "merge") | (Approval, "separate") => flag(),
        (Promotion, "strategy") => parts.named(Strategy),
        (Promotion, "approval") => parts.named(Approval),
        (Promotion, "windows") => list(&parts.named(Window), 0),
        (Strategy, "notification") => parts.named(Notification),
        (Strategy, "pull-request" | "pullRequest") => parts.named(PullRequest),
        (Strategy, "sequence") => parts.named(SequenceRef),
        (Strategy | Notification | PullRequest | ClusterSpec | GitHostSpec, "secretRef" | "webhookSecretRef") => {
            parts.named(SecretRef)
        }
        (SecretRef, "name") => name(253),
        (Notification | PullRequest, "url") | (ClusterSpec, "server") | (GitHostSpec, "api") => url(),
        (PullRequest | GitHostSpec, "type") => word(&HOSTS.map(|(name, _)| name)),
        (PullRequest, "baseBranch") | (GitHostSpec, "host") => needed(),
        (SequenceRef | ClusterSpec, "project" | "stage" | "service" | "name" | "caData") => text(),
        (Approval, "quorum") => whole(1),
        (Approval, "approvers") => words(),
        (Window, "kind") => word(&["allow", "deny"]),
        (Window, "schedule" | "zone" | "from" | "until" | "reason") => needed(),
        (_, "soak" | "remind" | "interval" | "duration" | "startDeadline" | "taskTimeout") => duration(),
        _ => any(),
    }
}

fn border(level: Level, field: &str, parts: &mut Parts) -> Value {
    match (level, field) {
        (Level::Consent, "to") => list(&pattern("^[A-Za-z0-9*?-]+$", 100), 1),
        (Level::Consent, "may") => list(&word(&Act::ALL.map(Act::as_str)), 1),
        (Level::Consent, _) => list(&pattern("^[A-Za-z0-9._*?-]+$", 100), 1),
        (Level::Policy, "allows") => parts.named(Level::Allows),
        (Level::Policy, _) => parts.named(Level::Quotas),
        (Level::Allows, _) => list(&json!({"anyOf": [needed(), parts.named(Level::ResourcePattern)]}), 0),
        (Level::ResourcePattern, "region") => pattern("^[a-z0-9*?-]+$", 63),
        // An account is read as a text, however it is written.
        (Level::ResourcePattern, "account") => json!({"type": ["string", "integer"], "pattern": "^[0-9*?]+$"}),
        (Level::ResourcePattern, _) => needed(),
        _ => whole(1),
    }
}

fn webhook(level: Level, field: &str, parts: &mut Parts) -> Value {
    let patterns = || list(&pattern("^\\S+$", 200), 0);
    match (level, field) {
        (Level::Webhook, "kind") => constant("WebhookSubscription"),
        (Level::Webhook, "apiVersion") => version("WebhookSubscription"),
        (Level::Webhook, "metadata") => parts.named(Level::ObjectMetadata),
        (Level::Webhook, "spec") => parts.named(Level::WebhookSpec),
        (Level::WebhookSpec, "events") => list(&pattern("^\\S+$", 200), 1),
        (Level::WebhookSpec, "filter") => parts.named(Level::WebhookFilter),
        (Level::WebhookFilter, _) => patterns(),
        (Level::WebhookSpec, "matchExpressions") => list(&parts.named(Level::MatchExpression), 0),
        (Level::MatchExpression, "key") => pattern("^data([.][^.]+)+$", 1000),
        (Level::MatchExpression, "operator") => word(&OPERATORS.map(|(name, _)| name)),
        (Level::MatchExpression, "values") => words(),
        (Level::WebhookSpec, "url") => pattern("^(https?://|[{][{])", 65536),
        (Level::WebhookSpec, "headers") => texts(),
        (Level::WebhookSpec, "form") => word(&FORMS.map(|(name, _)| name)),
        (Level::WebhookSpec, "body") => text(),
        (Level::WebhookSpec, "contentType") => pattern("/", 200),
        (Level::WebhookSpec, "secrets") => list(&parts.named(Level::WebhookSecret), 0),
        (Level::WebhookSecret, "name") => pattern("^[A-Za-z_][A-Za-z0-9_]*$", 63),
        (Level::WebhookSpec, "signingSecretRef") | (Level::WebhookSecret, "secretRef") => parts.named(Level::SecretRef),
        (Level::WebhookSpec, "sendStarted" | "sendFinished") => flag(),
        (Level::WebhookSpec, "attempts") => {
            json!({"type": ["integer", "string"], "minimum": 1, "maximum": 10, "pattern": "^([1-9]|10)$"})
        }
        _ => any(),
    }
}

fn deployment(part: Part, field: &str, parts: &mut Parts) -> Value {
    if (part, field) == (Part::Source, "metadata") {
        return parts.named(Level::ObjectMetadata);
    }
    let mut named = |part: Part| parts.named(Deployment(part));
    match (part, field) {
        (Part::Config | Part::Proposed, "kind") => constant("DeploymentConfig"),
        (Part::Config, "apiVersion") => word(&["apps.openshift.io/v1", "v1"]),
        (Part::Proposed, "apiVersion") => constant("v1beta1"),
        (Part::Source, "kind") => constant("ArtifactSource"),
        (Part::Source, "apiVersion") => version("ArtifactSource"),
        (Part::List, "kind") => constant("List"),
        (Part::List, "apiVersion") => version("List"),
        (Part::Template, "kind") => constant("Template"),
        (Part::Template, "apiVersion") => version("Template"),
        (Part::List, "items") | (Part::Template, "objects") => list(&json!({"type": "object", "required": ["kind"]}), 0),
        (Part::Template, "parameters") => list(&named(Part::Parameter), 0),
        (Part::Parameter, "required") => flag(),
        (Part::Parameter, _) => text(),
        (Part::Config | Part::Proposed, "metadata") => named(Part::Metadata),
        (Part::Config, "spec") => named(Part::Spec),
        (Part::Metadata, "name") => name(63),
        (Part::Metadata | Part::Proposed, "namespace") => project(),
        (_, "labels" | "annotations" | "selector" | "replicaSelector") => texts(),
        (Part::Proposed, "id") => pattern("^([a-z]([a-z0-9-]*[a-z0-9])?:)?[a-z0-9]([a-z0-9.-]*[a-z0-9])?$", 114),
        (Part::Proposed, "template") => named(Part::ProposedTemplate),
        (Part::Proposed, "rollback") => named(Part::Rollback),
        (Part::ProposedTemplate, "controllerTemplate") => named(Part::Controller),
        // A pod template, or another document with containers.
        (Part::Spec, "template") | (Part::Controller, "podTemplate") => open(),
        (Part::Spec | Part::ProposedTemplate, "strategy") => named(Part::Strategy),
        (Part::Spec | Part::Proposed, "triggers") => list(&named(Part::Trigger), 0),
        (Part::Spec | Part::Proposed, "targets") => list(&named(Part::Target), 0),
        (Part::Spec | Part::Proposed, "concurrency") => word(&["supersede", "queue"]),
        (Part::Spec | Part::Proposed, "onDrift") => word(&["tell", "restore", "adopt"]),
        (Part::Spec | Part::Proposed, "resume") => word(&["explicit", "onNewerImage"]),
        (Part::Spec | Part::Proposed, "autoRollback") => named(Part::AutoRollback),
        (Part::Spec | Part::Proposed, "deployer") => named(Part::Deployer),
        (_, "paused" | "test" | "automatic" | "onFailure") | (Part::Rollback, "config" | "application") => flag(),
        (_, "replicas" | "revisionHistoryLimit" | "minReadySeconds" | "latestVersion") => whole(0),
        (Part::Strategy, "type") => word(&["Rolling", "Recreate", "Canary", "Custom", ""]),
        (Part::Strategy, "rollingParams") => named(Part::Rolling),
        (Part::Strategy, "recreateParams") => named(Part::Recreate),
        (Part::Strategy, "canaryParams") => named(Part::Canary),
        (Part::Strategy, "customParams") => named(Part::Custom),
        (Part::Strategy, "resources") | (Part::Deployer, _) => open(),
        (_, "updatePeriodSeconds" | "intervalSeconds" | "timeoutSeconds" | "activeDeadlineSeconds") => whole(1),
        (_, "maxUnavailable" | "maxSurge") => share(),
        (_, "pre" | "mid" | "post") => named(Part::Hook),
        (Part::Canary, "steps") => list(&named(Part::Step), 1),
        (Part::Step, "weight") => json!({"type": "integer", "minimum": 1, "maximum": 100}),
        (_, "bake") => duration(),
        (Part::Hook, "failurePolicy") => word(&["Abort", "Retry", "Ignore"]),
        (Part::Hook, "execNewPod") => named(Part::Exec),
        (Part::Hook, "tagImages") => list(&named(Part::TagImage), 1),
        (Part::Hook, "invoke") => pattern("^[A-Za-z0-9:$_-]+$", 170),
        (Part::Exec | Part::Custom, "env" | "environment") => list(&named(Part::Env), 0),
        (Part::Env, "name") => pattern("^[A-Za-z_][A-Za-z0-9_]*$", 1000),
        (Part::Env, "value") => text(),
        (Part::Exec, "command") => list(&needed(), 1),
        (_, "command" | "volumes" | "alarms") => words(),
        (_, "containerNames") => list(&needed(), 1),
        (_, "from" | "to") => named(Part::Reference),
        (Part::Reference, "kind") => word(&["ImageStreamTag", ""]),
        (Part::Trigger, "type") => word(&["ConfigChange", "ImageChange", "Manual"]),
        (Part::Trigger, "imageChangeParams") => {
            json!({"anyOf": [named(Part::ImageChange), named(Part::ProposedImageChange)]})
        }
        (Part::Target, "name") => name(63),
        (_, "region") => pattern("^[a-z0-9]+(-[a-z0-9]+){2,}$", 63),
        (_, "account") => pattern("^[0-9]{12}$", 12),
        (Part::Target, _) | (Part::Reference, "name") => needed(),
        (Part::Source, "spec") => named(Part::SourceSpec),
        (Part::SourceSpec, "ecr") => named(Part::Ecr),
        (Part::SourceSpec, "webhook") => named(Part::Webhook),
        (Part::SourceSpec, "images") => list(&needed(), 1),
        (Part::SourceSpec, "tags") => list(&named(Part::SourceTag), 0),
        (Part::Ecr, "repository") => pattern("^[a-z0-9]([a-z0-9._/-]*[a-z0-9])$", 256),
        (Part::Webhook, "secret") => name(253),
        (Part::SourceTag, "name") => pattern("^[A-Za-z0-9_][A-Za-z0-9_.-]*$", 128),
        (Part::SourceTag, "pattern") => pattern("^[A-Za-z0-9_.*?-]+$", 1000),
        _ => any(),
    }
}
