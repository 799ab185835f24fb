//! The definition of a pipeline: its manifest as valid types. Definitions are stored in this form.

use crate::access::approver;
use crate::time::Span;
use crate::windows::Window;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A pipeline: carries a revision that is healthy in the first environment through the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Definition {
    /// The application that all targets run.
    pub app: App,
    /// In the order of promotion; at least one, each with at least one target.
    pub environments: Vec<EnvironmentSpec>,
    /// The default for environments without a promotion of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promotion: Option<PromotionSpec>,
    /// What happens to a run when the first environment is healthy on another revision.
    #[serde(default)]
    pub in_flight: InFlight,
    /// What makes two revisions the same.
    #[serde(default)]
    pub compare: Compare,
    /// Whether an administrator of the installation applied it ([`crate::border::Vouched`]). No manifest can set this.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub vouched: bool,
}

crate::stored!(Definition);

impl Definition {
    /// The promotion into an environment. The environment's own settings replace the pipeline's as a whole.
    pub fn promotion<'a>(&'a self, environment: &'a EnvironmentSpec) -> Option<&'a PromotionSpec> {
        environment.promotion.as_ref().or(self.promotion.as_ref())
    }

    /// An environment and its index.
    pub fn environment(&self, name: &str) -> Option<(usize, &EnvironmentSpec)> {
        self.environments.iter().enumerate().find(|(_, environment)| environment.name == name)
    }

    /// All targets, without duplicates.
    pub fn targets(&self) -> impl Iterator<Item = &Target> {
        self.environments.iter().flat_map(|environment| &environment.targets)
    }
}

/// The Kubernetes object whose revision and health are observed in every target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct App {
    /// For example `helm.toolkit.fluxcd.io/v2`.
    pub api_version: String,
    /// For example `HelmRelease`.
    pub kind: String,
    /// The name of the object in the namespace of each target.
    pub name: String,
}

/// An environment of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvironmentSpec {
    /// Unique in its pipeline.
    pub name: String,
    /// Where the application runs.
    pub targets: Vec<Target>,
    /// Replaces the pipeline's promotion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promotion: Option<PromotionSpec>,
    /// How long a revision must be healthy here before it moves on to the next environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soak: Option<Span>,
    /// How the revision is judged by what was measured over that time. Only with `soak`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<EvaluationSpec>,
}

/// The evaluation of a revision over its soak time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EvaluationSpec {
    /// The service whose objectives count.
    pub service: String,
    /// The stage with their files. Absent: the name of the environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// Whether a revision with a warning does not move on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub strict: bool,
}

impl EvaluationSpec {
    /// Stage and service, for this environment.
    pub fn place<'a>(&'a self, environment: &'a str) -> (&'a str, &'a str) {
        (self.stage.as_deref().unwrap_or(environment), &self.service)
    }
}

/// One place where the application runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Target {
    /// `<namespace>/<name>` of a registered cluster. Absent: the cluster whose reports name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// The namespace in that cluster.
    pub namespace: String,
}

impl Target {
    /// The other namespace that must consent to the observation of this target, and the name of what is observed there: a
    /// registered cluster, or a deployment config. Reports that name no cluster belong to nobody.
    pub fn beyond<'a>(&'a self, app: &'a App, own: &str) -> Option<(&'a str, &'a str)> {
        let (namespace, name) = match &self.cluster {
            Some(cluster) => cluster.split_once('/')?,
            None if app.kind == "DeploymentConfig" => (self.namespace.as_str(), app.name.as_str()),
            None => return None,
        };
        (namespace != own).then_some((namespace, name))
    }

    /// Whether the target is a deployment config of Keelway. Only the deployments engine reports what runs there.
    pub fn is_keelways(&self, app: &App) -> bool {
        self.cluster.is_none() && app.kind == "DeploymentConfig" && app.api_version.starts_with("keelway.dev/")
    }
}

/// How revisions are promoted into an environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PromotionSpec {
    /// Whether people must approve each revision.
    #[serde(default)]
    pub manual: bool,
    /// What an attempt does.
    pub strategy: Strategy,
    /// The rules for approvals.
    #[serde(default)]
    pub approval: Approval,
    /// The windows in which attempts may begin. Empty: at any time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<Window>,
}

impl PromotionSpec {
    /// Whether this number of approvals suffices.
    pub(super) fn approves(&self, approvals: usize) -> bool {
        !self.manual || approvals >= usize::try_from(self.approval.quorum.max(1)).unwrap_or(usize::MAX)
    }
}

/// The rules for approvals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Approval {
    /// How many different people must approve.
    pub quorum: u32,
    /// The people who may approve, as in the manifest ([`Self::people`]). Empty: everybody with the permission.
    pub approvers: Vec<String>,
    /// Whether the author of a revision may not approve it. If the author is not known, nobody may.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub separate: bool,
    /// The interval of reminders while an approval waits.
    pub remind: Option<Span>,
    /// The name of the secret with the keys that sign approvals. Absent: approvals need a token of the API.
    pub secret: Option<String>,
}

impl Approval {
    /// The identities of the approvers. An approver that is not an identity is returned as written, and matches nobody.
    pub fn people(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.approvers.iter().map(|written| approver(written).unwrap_or(Cow::Borrowed(written.as_str())))
    }
}

impl Default for Approval {
    fn default() -> Self {
        Self { quorum: 1, approvers: vec![], separate: false, remind: None, secret: None }
    }
}

/// The effect of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Strategy {
    /// Publishes an event, and sends a request to the URL if there is one.
    Notification(Notification),
    /// Opens a pull request that changes the marked values.
    PullRequest(PullRequest),
    /// Triggers a sequence of a shipyard.
    Sequence(Sequence),
}

/// A receiver of notifications.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notification {
    /// An `https` URL that receives signed requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The name of the secret that signs them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// A repository, and how pull requests are made there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PullRequest {
    /// `github`, `gitlab`, `gitea` or `bitbucket-server`.
    pub host: String,
    /// The repository's `https` URL.
    pub url: String,
    /// The branch to merge into.
    pub base_branch: String,
    /// The name of the secret with the credentials. Empty: those of the registered host ([`super::registry::GitHost::secret`]).
    pub secret: String,
    /// Whether Keelway merges the pull request as soon as the host allows it.
    #[serde(default)]
    pub merge: bool,
}

/// The sequence that carries a promotion out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sequence {
    /// Absent: the namespace of the pipeline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Absent: the name of the environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    #[expect(missing_docs, reason = "the name says it")]
    pub service: String,
    /// The name of the sequence.
    pub name: String,
}

impl Sequence {
    /// Project and stage, for a pipeline in this namespace and one of its environments.
    pub fn place<'a>(&'a self, own: &'a str, environment: &'a str) -> (&'a str, &'a str) {
        (self.project.as_deref().unwrap_or(own), self.stage.as_deref().unwrap_or(environment))
    }
}

/// What happens to a run when the first environment is healthy on another revision.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum InFlight {
    /// A new run begins at once, and open pull requests are closed.
    #[default]
    Restart,
    /// The run continues to its end first, unless it needs a person.
    Finish,
}

/// When two revisions are the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Compare {
    /// When their texts are equal.
    #[default]
    Exact,
    /// When their digests are equal, as those of `main@sha1:abc` and `staging@sha1:abc`.
    Digest,
}

impl Compare {
    /// Whether two revisions are the same.
    pub fn same(self, a: &str, b: &str) -> bool {
        let digest = |revision: &'_ str| revision.rsplit_once('@').map_or(revision.to_owned(), |(_, digest)| digest.to_owned());
        match self {
            Self::Exact => a == b,
            Self::Digest => digest(a) == digest(b),
        }
    }
}
