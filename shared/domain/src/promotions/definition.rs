//! What a pipeline is to do: the manifest as valid types. Applied definitions are kept as they are here.

use crate::access::approver;
use crate::time::Span;
use crate::windows::Window;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A pipeline: a revision that is healthy in the first environment is carried through the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Definition {
    /// The application that all targets run.
    pub app: App,
    /// In the order of promotion; at least one, each with at least one target.
    pub environments: Vec<EnvironmentSpec>,
    /// How revisions are promoted into environments that do not say it themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promotion: Option<PromotionSpec>,
    /// What happens to a run when another revision is healthy in the first environment.
    #[serde(default)]
    pub in_flight: InFlight,
    /// What makes two revisions the same.
    #[serde(default)]
    pub compare: Compare,
    /// Whether an administrator of the installation applied it: no manifest says so. See [`crate::border::Vouched`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub vouched: bool,
}

impl Definition {
    /// How a revision is promoted into an environment: the environment's own settings replace the pipeline's as a whole.
    pub fn promotion<'a>(&'a self, environment: &'a EnvironmentSpec) -> Option<&'a PromotionSpec> {
        environment.promotion.as_ref().or(self.promotion.as_ref())
    }

    /// An environment and its place.
    pub fn environment(&self, name: &str) -> Option<(usize, &EnvironmentSpec)> {
        self.environments.iter().enumerate().find(|(_, environment)| environment.name == name)
    }

    /// All targets, each once.
    pub fn targets(&self) -> impl Iterator<Item = &Target> {
        self.environments.iter().flat_map(|environment| &environment.targets)
    }
}

/// The object whose revision and health are observed, in every target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct App {
    /// For example `helm.toolkit.fluxcd.io/v2`.
    pub api_version: String,
    /// For example `HelmRelease`.
    pub kind: String,
    /// Its name in each target's namespace.
    pub name: String,
}

/// A step of a pipeline.
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
}

/// One place where the application runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Target {
    /// `<namespace>/<name>` of a registered cluster; absent: the cluster that reports without naming one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// The namespace in that cluster.
    pub namespace: String,
}

impl Target {
    /// The namespace beside the pipeline's own whose consent observing this target takes, and what in it is observed: a cluster that is
    /// registered there, or a deployment config. What a cluster or somebody else reports without naming one belongs to nobody.
    pub fn beyond<'a>(&'a self, app: &'a App, own: &str) -> Option<(&'a str, &'a str)> {
        let (namespace, name) = match &self.cluster {
            Some(cluster) => cluster.split_once('/')?,
            None if app.kind == "DeploymentConfig" => (self.namespace.as_str(), app.name.as_str()),
            None => return None,
        };
        (namespace != own).then_some((namespace, name))
    }

    /// Whether this is one of Keelway's own deployment configs. Only the deployments engine tells what runs there.
    pub fn is_keelways(&self, app: &App) -> bool {
        self.cluster.is_none() && app.kind == "DeploymentConfig" && app.api_version.starts_with("keelway.dev/")
    }
}

/// How a revision is promoted into an environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PromotionSpec {
    /// A person must approve each revision.
    #[serde(default)]
    pub manual: bool,
    /// What an attempt does.
    pub strategy: Strategy,
    /// Who must approve.
    #[serde(default)]
    pub approval: Approval,
    /// When attempts may begin; empty: at any time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<Window>,
}

impl PromotionSpec {
    /// Whether so many approvals are enough.
    pub(super) fn approves(&self, approvals: usize) -> bool {
        !self.manual || approvals >= usize::try_from(self.approval.quorum.max(1)).unwrap_or(usize::MAX)
    }
}

/// Who must approve.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Approval {
    /// So many different people.
    pub quorum: u32,
    /// Only these, as they are written; empty: everybody who may approve. See [`Self::people`].
    pub approvers: Vec<String>,
    /// Who set the revision may not approve it; nobody may if that is not known.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub separate: bool,
    /// A reminder is published each time so long while an approval waits.
    pub remind: Option<Span>,
    /// Name of the secret with the keys that sign approvals; absent: only tokens of the API approve.
    pub secret: Option<String>,
}

impl Approval {
    /// Whom the approvers stand for. One who stands for nobody is shown as it is written, and is nobody.
    pub fn people(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.approvers.iter().map(|written| approver(written).unwrap_or(Cow::Borrowed(written.as_str())))
    }
}

impl Default for Approval {
    fn default() -> Self {
        Self { quorum: 1, approvers: vec![], separate: false, remind: None, secret: None }
    }
}

/// What an attempt does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Strategy {
    /// Tells the bus, and the URL if there is one.
    Notification(Notification),
    /// Opens a pull request that changes the marked values.
    PullRequest(PullRequest),
    /// Triggers a sequence of a shipyard.
    Sequence(Sequence),
}

/// Whom to tell.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notification {
    /// An `https` URL that gets a signed request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Name of the secret that signs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// Where to open pull requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PullRequest {
    /// `github`, `gitlab`, `gitea` or `bitbucket-server`.
    pub host: String,
    /// The repository's `https` URL.
    pub url: String,
    /// The branch that pull requests are to be merged into.
    pub base_branch: String,
    /// Name of the secret with the credentials; empty: those of the registered host ([`super::registry::GitHost::secret`]).
    pub secret: String,
    /// Keelway merges the pull request itself when the host allows it.
    #[serde(default)]
    pub merge: bool,
}

/// Which sequence carries out a promotion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sequence {
    /// Absent: the pipeline's namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Absent: the environment's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// The service.
    pub service: String,
    /// The sequence.
    pub name: String,
}

impl Sequence {
    /// The project and the stage, for a pipeline of this namespace and one of its environments.
    pub fn place<'a>(&'a self, own: &'a str, environment: &'a str) -> (&'a str, &'a str) {
        (self.project.as_deref().unwrap_or(own), self.stage.as_deref().unwrap_or(environment))
    }
}

/// What happens to a run when another revision is healthy in the first environment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum InFlight {
    /// A new run begins at once, and what is open is closed.
    #[default]
    Restart,
    /// The run goes on to its end first, unless it cannot go on by itself.
    Finish,
}

/// What makes two revisions the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Compare {
    /// The same text.
    #[default]
    Exact,
    /// The same digest: `main@sha1:abc` and `staging@sha1:abc` are the same.
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
