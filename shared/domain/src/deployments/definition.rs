//! What a deployment config says: the manifest as valid types. Applied definitions and snapshots are kept as they are here.

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
    /// The labels of what belongs to it.
    #[serde(default, skip_serializing_if = "Texts::is_empty")]
    pub selector: Texts,
    /// Where it is deployed. Empty: the deployer knows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<Target>,
    /// How it is deployed.
    pub strategy: Strategy,
    /// When a new version is cut without being asked for. Empty: only by hand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<Trigger>,
    /// Whether it is paused, as the manifest says. A person may say otherwise later ([`super::Config::paused`]).
    #[serde(default, skip_serializing_if = "is_false")]
    pub paused: bool,
    /// How many versions below the active one are kept; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<u32>,
    /// What happens to a deployment that runs when a new version is wanted.
    #[serde(default)]
    pub concurrency: Concurrency,
    /// When triggers that a rollback suspended fire again.
    #[serde(default)]
    pub resume: Resume,
    /// When a failed version is rolled back without being asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_rollback: Option<AutoRollback>,
    /// What happens when a target serves what Keelway did not put there.
    #[serde(default, skip_serializing_if = "OnDrift::is_tell")]
    pub on_drift: OnDrift,
    /// Who carries deployments out, if Keelway is to start it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployer: Option<Starter>,
    /// Fields of the manifest's `spec` that are kept, handed to deployers, and have no other meaning here (`test`, `minReadySeconds`).
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub other: Map<String, Value>,
    /// Whether an administrator of the installation applied it: no manifest says so. See [`crate::border::Vouched`].
    #[serde(default, skip_serializing_if = "is_false")]
    pub vouched: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// One place to deploy to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// Unique in its config; progress is told under it.
    pub name: String,
    /// `lambda-alias`, `ecs-service`, or a kind that only the deployer knows.
    pub kind: String,
    /// What it is there: `<function>:<alias>` of a `lambda-alias`.
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
    /// Which one.
    #[serde(rename = "type")]
    pub kind: StrategyKind,
    /// How long a deployment waits for a deployer, and how long the deployer lets one step take. Zero: for ever.
    pub timeout: Span,
    /// How long a deployer may take altogether.
    pub deadline: Span,
    /// The deployer's image, command and environment: required for `Custom`, and wraps the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom: Option<Custom>,
    /// The parameters of the kind, with their defaults, as the manifest names them; handed to deployers.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub params: Map<String, Value>,
    /// The weights of a canary, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Weight>,
    /// What runs before, between and after.
    #[serde(default, skip_serializing_if = "Hooks::is_empty")]
    pub hooks: Hooks,
    /// Labels of whatever carries the deployment out.
    #[serde(default, skip_serializing_if = "Texts::is_empty")]
    pub labels: Texts,
    /// Annotations of it.
    #[serde(default, skip_serializing_if = "Texts::is_empty")]
    pub annotations: Texts,
    /// The resources it needs.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub resources: Value,
}

/// The kinds of strategies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StrategyKind {
    /// The old version goes away before the new one comes.
    Recreate,
    /// The new one replaces the old one step by step.
    Rolling,
    /// The new one gets a part of the traffic, then more.
    Canary,
    /// The deployer decides.
    Custom,
}

/// A step of a canary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Weight {
    /// The new version's part of the traffic, 1 to 100 percent.
    pub weight: u8,
    /// How long it stays there. Absent: until a person says to go on (A/B).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bake: Option<Span>,
}

/// A deployer of the user's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Custom {
    /// Its image; empty: the deployer that claims the work.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// Its command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Its environment; it wins over what Keelway sets.
    #[serde(default, skip_serializing_if = "Texts::is_empty")]
    pub environment: Texts,
}

/// What runs around a deployment.
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
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.pre.is_none() && self.mid.is_none() && self.post.is_none()
    }
}

/// What runs at one point of a deployment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hook {
    /// What its failure means.
    pub failure_policy: FailurePolicy,
    /// What it does.
    pub action: Action,
}

/// What a failed hook means for the deployment.
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
    /// Points further tags to the deployed images.
    TagImages(Vec<Tagged>),
    /// Calls a Lambda function with the deployment; it fails if the function does.
    Invoke(String),
}

/// A tag that a hook points to a deployed image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tagged {
    /// The container whose image it is.
    pub container: String,
    /// The tag.
    pub to: ImageTag,
}

/// A tag of an artifact source: `<namespace>/<name>:<tag>`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ImageTag {
    /// The namespace of the source.
    pub namespace: String,
    /// The source.
    pub name: String,
    /// The tag.
    pub tag: String,
}

impl std::fmt::Display for ImageTag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}:{}", self.namespace, self.name, self.tag)
    }
}

/// When a new version is cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Trigger {
    /// When the template changes.
    ConfigChange,
    /// When a tag points to another image.
    ImageChange(ImageChange),
    /// Never; a placeholder.
    Manual,
}

/// A tag, and the containers that run its image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageChange {
    /// Whether a new image is deployed without being asked for, once the first version is.
    pub automatic: bool,
    /// The tag.
    pub from: ImageTag,
    /// The containers; names that the template does not have are ignored.
    pub containers: Vec<String>,
}

/// What a new version does to one that runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Concurrency {
    /// Cancels it, and waits until it has ended.
    #[default]
    Supersede,
    /// Waits until it has ended; only the newest waits.
    Queue,
}

/// When suspended triggers fire again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Resume {
    /// When a person says so.
    #[default]
    Explicit,
    /// When an automatic trigger's tag gets an image that is newer than the suspension.
    OnNewerImage,
}

/// What happens when a target serves what Keelway did not put there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnDrift {
    /// It is shown and told.
    #[default]
    Tell,
    /// A new version brings back what was deployed.
    Restore,
    /// What is served counts as deployed.
    Adopt,
}

impl OnDrift {
    /// Whether nothing is done about it.
    pub fn is_tell(&self) -> bool {
        *self == Self::Tell
    }
}

/// When Keelway rolls back by itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AutoRollback {
    /// When a deployer fails.
    #[serde(default, skip_serializing_if = "is_false")]
    pub on_failure: bool,
    /// When one of these CloudWatch alarms goes off while a version is deployed, or bakes afterwards.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alarms: Vec<String>,
    /// How long a complete version bakes.
    #[serde(default)]
    pub bake: Span,
}

/// What Keelway starts to have a deployment carried out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Starter {
    /// A task of ECS: the parameters of `RunTask`.
    Ecs(Map<String, Value>),
    /// A build of CodeBuild: the parameters of `StartBuild`.
    CodeBuild(Map<String, Value>),
}

/// Keelway's own parameter of a task: `exit` makes its end the deployment's.
pub const WAIT_FOR: &str = "waitFor";

impl Starter {
    /// Whether Keelway claims for what it starts, and takes its end for the deployment's. Otherwise the task claims by itself.
    pub fn waits(&self) -> bool {
        match self {
            Starter::Ecs(parameters) => parameters.contains_key(WAIT_FOR),
            Starter::CodeBuild(_) => true,
        }
    }
}

impl Definition {
    /// The tags that its triggers watch, each once.
    pub fn watched(&self) -> std::collections::BTreeSet<&ImageTag> {
        self.image_changes().map(|change| &change.from).collect()
    }

    /// Its image triggers.
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

    /// The container that stands for the whole version, the annotated one or the first, and its image.
    pub fn main_container(&self) -> Option<(&str, &str)> {
        let named = self.annotations.get(REVISION_OF);
        let mut containers = super::template::containers(&self.template);
        containers.find(|(name, _)| named.is_none_or(|named| named == name)).map(|(name, image)| (name, image.trim()))
    }

    /// The image of that container.
    pub fn main_image(&self) -> Option<&str> {
        self.main_container().map(|(_, image)| image)
    }

    /// Whether Keelway starts the deployer itself.
    pub fn starts(&self) -> bool {
        self.deployer.is_some() || self.deploys_to_aliases()
    }

    /// Whether Keelway is the deployer: it knows the strategy, and nobody else is named.
    pub fn deploys_to_aliases(&self) -> bool {
        self.has_known_strategy() && self.strategy.custom.is_none() && self.deployer.is_none()
    }

    /// Whether Keelway claims its versions itself: it carries them out, or waits for what it starts.
    pub fn claims(&self) -> bool {
        self.deploys_to_aliases() || self.deployer.as_ref().is_some_and(Starter::waits)
    }

    /// Whether somebody else is the deployer, and may have Keelway carry the strategy out.
    pub fn wraps(&self) -> bool {
        self.has_known_strategy() && !self.deploys_to_aliases()
    }

    /// Whether Keelway can carry the strategy out: the targets are Lambda aliases.
    fn has_known_strategy(&self) -> bool {
        let aliases = !self.targets.is_empty() && self.targets.iter().all(|target| target.kind == LAMBDA_ALIAS);
        aliases && self.strategy.kind != StrategyKind::Custom
    }
}
