//! The definition of a deployment config: its manifest as valid types. Definitions and snapshots are stored in this form.

#![expect(missing_docs, reason = "names that say what they are need no documentation")]

use super::analysis::Analysis;
use crate::time::Span;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The annotation that names the container whose digest is the version's revision. Default: the first one.
const REVISION_OF: &str = "keelway.dev/revision-container";

/// Names and values, of labels for example.
pub type Texts = BTreeMap<String, String>;

/// A deployment config: what is deployed, how, and when a new version is cut.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Definition {
    /// Labels of the config. `app` groups the configs of one application.
    #[serde(default, skip_serializing_if = "Texts::is_empty")]
    pub labels: Texts,
    /// Annotations of the config.
    #[serde(default, skip_serializing_if = "Texts::is_empty")]
    pub annotations: Texts,
    /// What is deployed: a pod template, a task definition, or any other document. [`super::template`] finds its containers.
    pub template: Value,
    /// How many copies run, if the deployer cares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u32>,
    /// The labels that select the pods of the config.
    #[serde(default, skip_serializing_if = "Texts::is_empty")]
    pub selector: Texts,
    /// The places to deploy to. Empty: the deployer knows them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<Target>,
    /// How the config is deployed.
    pub strategy: Strategy,
    /// Which changes cut a new version. Empty: only commands do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<Trigger>,
    /// Whether the manifest pauses the config. A command may override it later ([`super::Config::paused`]).
    #[serde(default, skip_serializing_if = "is_false")]
    pub paused: bool,
    /// How many versions below the active one are kept; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<u32>,
    /// What happens to a running deployment when a new version is wanted.
    #[serde(default)]
    pub concurrency: Concurrency,
    /// When triggers that a rollback suspended fire again.
    #[serde(default)]
    pub resume: Resume,
    /// When a failed version is rolled back without being asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_rollback: Option<AutoRollback>,
    /// What happens when a target serves something that Keelway did not deploy there.
    #[serde(default, skip_serializing_if = "OnDrift::is_tell")]
    pub on_drift: OnDrift,
    /// The deployer that Keelway starts, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployer: Option<Starter>,
    /// Other fields of the manifest's `spec`: stored, and passed on to deployers (`test`, `minReadySeconds`).
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub other: Map<String, Value>,
    /// Whether an administrator of the installation applied it ([`crate::border::Vouched`]). No manifest can set this.
    #[serde(default, skip_serializing_if = "is_false")]
    pub vouched: bool,
}

crate::stored!(Definition);

fn is_false(flag: &bool) -> bool {
    !flag
}

/// One place to deploy to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// Unique in the config. Progress is reported under this name.
    pub name: String,
    /// `lambda-alias`, `ecs-service`, or a kind that only the deployer knows.
    pub kind: String,
    /// The identity of the target: `<function>:<alias>` of a `lambda-alias`.
    pub id: String,
    /// Absent: the installation's region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Absent: the installation's account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
}

/// The kind of targets that Keelway deploys to itself.
pub const LAMBDA_ALIAS: &str = "lambda-alias";

/// How a version is deployed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Strategy {
    #[serde(rename = "type")]
    pub kind: StrategyKind,
    /// How long a deployment waits for a deployer, and how long one step of the deployer may take. Zero: no limit.
    pub timeout: Span,
    /// How long a deployment may take in total.
    pub deadline: Span,
    /// The deployer's image, command and environment: required for `Custom`, and wraps the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom: Option<Custom>,
    /// The parameters of the kind, with their defaults, as the manifest names them; handed to deployers.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub params: Map<String, Value>,
    /// The weights of a canary, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Weight>,
    /// How the new version is judged by metrics while it shares the traffic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analysis: Option<Analysis>,
    /// The hooks before, during and after the deployment.
    #[serde(default, skip_serializing_if = "Hooks::is_empty")]
    pub hooks: Hooks,
    /// Labels of the pod, task or build that carries the deployment out.
    #[serde(default, skip_serializing_if = "Texts::is_empty")]
    pub labels: Texts,
    /// Annotations of that pod, task or build.
    #[serde(default, skip_serializing_if = "Texts::is_empty")]
    pub annotations: Texts,
    /// Resources of that pod, task or build.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub resources: Value,
}

/// The kinds of strategies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StrategyKind {
    /// The old version ends before the new one starts.
    Recreate,
    /// The new version replaces the old one step by step.
    Rolling,
    /// The new version gets a growing share of the traffic.
    Canary,
    /// The deployer decides.
    Custom,
}

/// A step of a canary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Weight {
    /// The new version's share of the traffic, 1 to 100 percent.
    pub weight: u8,
    /// How long the new version keeps that share. Absent: until a person says `proceed` (A/B).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bake: Option<Span>,
}

/// A deployer that the user provides.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Custom {
    /// The image. Empty: the deployer that claims the version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub image: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// The environment. It takes precedence over the variables that Keelway sets.
    #[serde(default, skip_serializing_if = "Texts::is_empty")]
    pub environment: Texts,
}

/// The hooks of a deployment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hooks {
    /// Before anything changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre: Option<Hook>,
    /// When the old version is gone and the new one is not there yet (`Recreate`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mid: Option<Hook>,
    /// When everything has changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post: Option<Hook>,
}

impl Hooks {
    /// Whether no hook is defined.
    pub fn is_empty(&self) -> bool {
        self.pre.is_none() && self.mid.is_none() && self.post.is_none()
    }
}

/// An action at one point of a deployment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hook {
    /// The effect of a failure on the deployment.
    pub failure_policy: FailurePolicy,
    /// What it does.
    pub action: Action,
}

/// The effect of a failed hook on the deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailurePolicy {
    /// The deployment fails.
    Abort,
    /// The hook is repeated until the deployment's deadline.
    Retry,
    /// The deployment goes on.
    Ignore,
}

/// What a hook does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// Runs a command in a container: for deployers that run containers.
    ExecNewPod(Value),
    /// Points more tags to the deployed images.
    TagImages(Vec<Tagged>),
    /// Calls a Lambda function with the deployment as its input. The hook fails if the function does.
    Invoke(String),
}

/// A tag that a hook points to a deployed image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tagged {
    /// The container that runs the image.
    pub container: String,
    pub to: ImageTag,
}

/// A tag of an artifact source: `<namespace>/<name>:<tag>`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ImageTag {
    /// The namespace of the artifact source.
    pub namespace: String,
    /// The name of the artifact source.
    pub name: String,
    pub tag: String,
}

impl std::fmt::Display for ImageTag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}:{}", self.namespace, self.name, self.tag)
    }
}

/// A change that cuts a new version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Trigger {
    /// A change of the template.
    ConfigChange,
    /// A tag that points to another image.
    ImageChange(ImageChange),
    /// None: a placeholder.
    Manual,
}

/// A tag, and the containers that run its image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageChange {
    /// Whether a new image is deployed without a command, after the first version.
    pub automatic: bool,
    /// The tag that is watched.
    pub from: ImageTag,
    /// The containers; names that the template does not have are ignored.
    pub containers: Vec<String>,
}

/// What a new version does to a running deployment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Concurrency {
    /// It cancels the deployment, and waits for its end.
    #[default]
    Supersede,
    /// It waits for the end of the deployment. Only the newest version waits.
    Queue,
}

/// When triggers that a rollback suspended fire again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Resume {
    /// When a person resumes them.
    #[default]
    Explicit,
    /// When the tag of an automatic trigger gets an image that is newer than the suspension.
    OnNewerImage,
}

/// The reaction to drift: a target serves something that Keelway did not deploy there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnDrift {
    /// Report it.
    #[default]
    Tell,
    /// Cut a version that restores what was deployed.
    Restore,
    /// Take what is served for what is deployed.
    Adopt,
}

impl OnDrift {
    /// Whether drift is only reported.
    pub fn is_tell(&self) -> bool {
        *self == Self::Tell
    }
}

/// When Keelway rolls back without a command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AutoRollback {
    /// When a deployer reports a failure.
    #[serde(default, skip_serializing_if = "is_false")]
    pub on_failure: bool,
    /// When one of these CloudWatch alarms goes off during a deployment or its bake time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alarms: Vec<String>,
    /// How long the alarms of a complete version are watched.
    #[serde(default)]
    pub bake: Span,
}

/// What Keelway starts to carry a deployment out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Starter {
    /// An ECS task: the parameters of `RunTask`.
    Ecs(Map<String, Value>),
    /// A CodeBuild build: the parameters of `StartBuild`.
    CodeBuild(Map<String, Value>),
}

/// Keelway's own parameter of a task. With `exit`, the end of the task is the end of the deployment.
pub const WAIT_FOR: &str = "waitFor";

impl Starter {
    /// Whether Keelway claims the version for what it starts, and takes its end for the end of the deployment. Otherwise the task
    /// claims it.
    pub fn waits(&self) -> bool {
        match self {
            Starter::Ecs(parameters) => parameters.contains_key(WAIT_FOR),
            Starter::CodeBuild(_) => true,
        }
    }
}

impl Definition {
    /// The tags that the triggers watch, without duplicates.
    pub fn watched(&self) -> std::collections::BTreeSet<&ImageTag> {
        self.image_changes().map(|change| &change.from).collect()
    }

    /// The image triggers.
    pub fn image_changes(&self) -> impl Iterator<Item = &ImageChange> {
        self.triggers.iter().filter_map(|trigger| match trigger {
            Trigger::ImageChange(change) => Some(change),
            Trigger::ConfigChange | Trigger::Manual => None,
        })
    }

    /// Whether a change of the template cuts a new version.
    pub fn on_config_change(&self) -> bool {
        self.triggers.contains(&Trigger::ConfigChange)
    }

    /// The container that stands for the whole version (the annotated one, or the first), and its image.
    pub fn main_container(&self) -> Option<(&str, &str)> {
        let named = self.annotations.get(REVISION_OF);
        let mut containers = super::template::containers(&self.template);
        containers.find(|(name, _)| named.is_none_or(|named| named == name)).map(|(name, image)| (name, image.trim()))
    }

    /// The image of the main container.
    pub fn main_image(&self) -> Option<&str> {
        self.main_container().map(|(_, image)| image)
    }

    /// Whether Keelway starts the deployer itself.
    pub fn starts(&self) -> bool {
        self.deployer.is_some() || self.deploys_to_aliases()
    }

    /// Whether Keelway deploys to the aliases itself: it supports the strategy, and the manifest names no other deployer.
    pub fn deploys_to_aliases(&self) -> bool {
        self.has_known_strategy() && self.strategy.custom.is_none() && self.deployer.is_none()
    }

    /// Whether Keelway claims the versions itself, because it carries them out or waits for what it starts.
    pub fn claims(&self) -> bool {
        self.deploys_to_aliases() || self.deployer.as_ref().is_some_and(Starter::waits)
    }

    /// Whether another deployer may order Keelway to carry the strategy out.
    pub fn wraps(&self) -> bool {
        self.has_known_strategy() && !self.deploys_to_aliases()
    }

    /// Whether Keelway supports the strategy: all targets are Lambda aliases.
    fn has_known_strategy(&self) -> bool {
        let aliases = !self.targets.is_empty() && self.targets.iter().all(|target| target.kind == LAMBDA_ALIAS);
        aliases && self.strategy.kind != StrategyKind::Custom
    }
}
