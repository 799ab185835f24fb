//! Bodies of requests that only Keptn's clients send, in Keptn's words. Members that they send and nothing here needs are ignored.

use crate::http::page::page;
use serde::{Deserialize, Serialize};

/// A file of a project, a stage or a service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Resource {
    /// Its path in its scope.
    #[serde(rename = "resourceURI")]
    pub resource_uri: String,
    /// Its content in base64; not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_content: Option<String>,
    /// Its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Version>,
}

/// Which version a resource has, or a write made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ResourceVersion))]
#[serde(default)]
pub struct Version {
    /// The commit: 40 hexadecimal digits. Of `shipyard.yaml`, the shipyard's revision.
    pub version: String,
}

/// The body of `POST` and `PUT …/resource`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct Resources {
    /// At most 30.
    pub resources: Vec<Resource>,
}

page! {
    /// A page of resources: `GET …/resource`.
    ResourcePage of Resource;
    /// By URI, without contents.
    "resources"
}

/// The body of `PUT …/resource/{uri}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceContent {
    /// In base64.
    pub resource_content: String,
}

/// The answer to a write of resources.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(default)]
pub struct Committed {
    /// The commit that holds what was written.
    #[serde(rename = "commitID")]
    pub commit_id: String,
    /// The same, where Keptn has it.
    pub metadata: Version,
    /// The same, where Keptn's Go library looks for it.
    pub version: String,
}

/// The body of `POST` and `PUT /v1/project`. Credentials of a repository are ignored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct NewProject {
    /// Its name.
    pub name: String,
    /// The shipyard in base64.
    pub shipyard: Option<String>,
}

/// The body of `POST …/service`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct NewService {
    /// Its name.
    pub service_name: String,
}

/// What was done, for people.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(default)]
pub struct Message {
    /// In a sentence.
    pub message: String,
}

/// The id of what was registered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(default)]
pub struct Identified {
    /// The id.
    pub id: String,
}

/// An executor that registers itself: the body of `POST /v1/uniform/registration`, and how it is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct IntegrationState {
    /// Its id; ignored in requests.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What else it tells about itself.
    pub metadata: Metadata,
    /// What it subscribes to.
    pub subscriptions: Option<Vec<SubscriptionState>>,
}

/// What an executor tells about itself. The names are Keptn's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = IntegrationMetadata))]
#[serde(default)]
pub struct Metadata {
    /// The host it runs on.
    pub hostname: String,
    /// Its version.
    pub integrationversion: String,
    /// The version of what connects it.
    pub distributorversion: String,
    /// Where it runs, for example `control-plane`.
    pub location: String,
    /// Where it runs in Kubernetes.
    pub kubernetesmetadata: KubernetesMetadata,
    /// When it was last heard of, RFC 3339, to the minute; ignored in requests.
    pub lastseen: String,
}

/// Where an executor runs in Kubernetes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct KubernetesMetadata {
    /// The namespace.
    pub namespace: String,
    /// The pod.
    pub podname: String,
    /// The deployment.
    pub deploymentname: String,
}

/// What an executor subscribes to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct SubscriptionState {
    /// Its id; ignored in requests.
    pub id: String,
    /// The full type of the events.
    pub event: String,
    /// Of which projects, stages and services.
    pub filter: SubscriptionFilter,
}

/// An empty list, or none, means all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct SubscriptionFilter {
    /// Of these projects.
    pub projects: Option<Vec<String>>,
    /// Of these stages.
    pub stages: Option<Vec<String>>,
    /// Of these services.
    pub services: Option<Vec<String>>,
}

/// The body of `POST /v1/log`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct Logs {
    /// At most 100.
    pub logs: Option<Vec<LogEntry>>,
}

/// What an executor logs. The names are Keptn's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct LogEntry {
    /// Of which integration.
    pub integrationid: String,
    /// What happened.
    pub message: String,
    /// When, by the executor's clock, RFC 3339.
    pub time: String,
    /// In which context.
    pub shkeptncontext: String,
    /// In which task.
    pub task: String,
    /// The task's trigger.
    pub triggeredid: String,
    /// The commit of the trigger.
    pub gitcommitid: String,
}

page! {
    /// A page of logs, newest first: `GET /v1/log`.
    LogPage of LogEntry, by i64;
    /// The entries.
    "logs"
}
