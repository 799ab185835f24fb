//! Bodies that no type of the code reads or writes as a whole: what they look like.

use keelway_wire::http::deployments::{DeploymentConfigRollback, RollbackAnswer, RollbackRequest};
use keelway_wire::http::{BatchAccepted, Decided};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// An object without members.
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct Empty {}

/// What a control request does.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(default = Self::default)]
#[serde(rename_all = "camelCase")]
pub struct ControlAnswer {
    /// The context.
    pub keptn_context: String,
    /// How many executions were open there, of the first 1,000 of the context.
    pub open: usize,
    /// The same in words.
    pub detail: String,
}

/// A retry: the execution that repeats another one.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(default = Self::default)]
#[serde(rename_all = "camelCase")]
pub struct RetryAnswer {
    /// The context.
    pub keptn_context: String,
    /// The new execution.
    pub execution: String,
    /// The execution that it repeats.
    pub retry_of: String,
    /// The stage.
    pub stage: String,
    /// The sequence.
    pub sequence: String,
    /// The task it begins with.
    pub from: String,
    /// The same in words.
    pub detail: String,
    /// Only with 202: the path that will show it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub look: Option<String>,
}

/// What an override lets begin.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(default = Self::default)]
#[serde(rename_all = "camelCase")]
pub struct OverrideAnswer {
    /// The context.
    pub keptn_context: String,
    /// The stage that is closed.
    pub stage: String,
    /// How many executions waited for it to open.
    pub held: usize,
    /// When it opens by itself, as far as is known now.
    pub until: Option<String>,
    /// The same in words.
    pub detail: String,
}

/// How many entries were deleted.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(default = Self::default)]
pub struct LogsDeleted {
    /// So many.
    pub deleted: usize,
}

/// A CloudEvent in structured JSON. Further attributes are taken and ignored.
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct CloudEvent {
    /// `1.0`
    #[schema(required = false)]
    pub specversion: Option<String>,
    /// Identifies the event together with `source` in its context.
    pub id: Option<String>,
    /// `sh.keptn.event.<stage>.<sequence>.triggered`, `sh.keptn.event.<task>.started`, `.status.changed` or `.finished`, or that of
    /// a domain event.
    #[serde(rename = "type")]
    pub ty: String,
    /// Who sends it; ASCII.
    pub source: Option<String>,
    /// When it happened, RFC 3339.
    pub time: Option<String>,
    /// The context; any text.
    pub shkeptncontext: Option<String>,
    /// Of an answer to a task: the id of the task's trigger.
    pub triggeredid: Option<String>,
    /// What it is about.
    pub data: Option<EventData>,
}

/// What an event is about. Further members are handed on to the tasks.
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct EventData {
    /// The project.
    pub project: Option<String>,
    /// The stage.
    pub stage: Option<String>,
    /// The service.
    pub service: Option<String>,
    /// `pass`, `warning` or `fail`.
    pub result: Option<String>,
    /// `succeeded`, `errored` or `unknown`.
    pub status: Option<String>,
    /// A sentence for people.
    pub message: Option<String>,
    /// For filters and people.
    pub labels: Option<BTreeMap<String, String>>,
}

/// The answer to an event, or to a batch of events.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "the document shows its form")]
pub enum EventAnswer {
    /// To one event; `result` and `look` only if it decides an approval.
    One(Decided),
    /// To a batch: one entry for each event, in their order.
    Batch(BatchAccepted),
}

/// A fact about a target, or an object of Kubernetes, or a list of them as `items`.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObservedObject {
    /// Of the object.
    pub api_version: Option<String>,
    /// Of the object.
    pub kind: Option<String>,
    /// Of a fact: the object's name.
    pub name: Option<String>,
    /// Of a fact: the object's namespace.
    pub namespace: Option<String>,
    /// Of a fact: what runs.
    pub revision: Option<String>,
    /// Of a fact: whether it is healthy.
    pub ready: Option<bool>,
    /// Of an object of Kubernetes.
    #[schema(value_type = Option<Object>)]
    pub metadata: Option<Value>,
    /// Of an object of Kubernetes.
    #[schema(value_type = Option<Object>)]
    pub spec: Option<Value>,
    /// Of an object of Kubernetes.
    #[schema(value_type = Option<Object>)]
    pub status: Option<Value>,
    /// Of a list.
    #[schema(value_type = Option<Vec<Object>>)]
    pub items: Option<Vec<Value>>,
}

/// A `DeploymentConfig`: as the JSON Schema `docs/schemas/deploymentconfig.json` says, and in answers with
/// `metadata.resourceVersion` and `status`.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DeploymentConfig)]
pub struct DeploymentConfigObject {
    /// `apps.openshift.io/v1`
    pub api_version: Option<String>,
    /// `DeploymentConfig`
    pub kind: String,
    /// Its name, namespace, labels and annotations.
    #[schema(value_type = Object)]
    pub metadata: Value,
    /// What is deployed, how, and which changes trigger it.
    #[schema(value_type = Object)]
    pub spec: Value,
    /// Only in answers: how it is.
    #[schema(value_type = Option<Object>)]
    pub status: Option<Value>,
}

/// The config, or what a rollback did to it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "the document shows its form")]
pub enum ConfigOrRollback {
    /// The config.
    Config(Box<DeploymentConfigObject>),
    /// What the rollback did.
    Rollback(Box<RollbackAnswer>),
}

/// A rollback in Keelway's form, or in OpenShift's.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "the document shows its form")]
pub enum AnyRollback {
    /// Keelway's.
    Keelway(RollbackRequest),
    /// OpenShift's.
    OpenShift(Box<DeploymentConfigRollback>),
}
