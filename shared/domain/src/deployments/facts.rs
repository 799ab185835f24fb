//! The inputs and the results of a decision.

#![expect(missing_docs, reason = "names that say what they are need no documentation")]

use super::definition::Definition;
use super::deployment::{Deployment, Progress, Why};
use super::drift::Sight;
use super::origin::Task;
use super::registry::Heads;
use super::state::Config;
use crate::cause::Cause;
use crate::level::{self, Refused};
use crate::note::Note;
use crate::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};

/// A change becomes a version when nothing else has changed for this long, so that a change of the configuration and of an image
/// become one.
pub const QUIET: Span = Span::seconds(2);
/// The longest time for which further changes can delay a version.
pub const QUIET_MOST: Span = Span::seconds(20);
/// The longest time after which a deployer that Keelway starts is started again, if nobody has claimed the version.
pub const OFFER_AGAIN: Span = Span::minutes(2);
/// The time within which Keelway's own deployer must take up an order to continue. Then it is ordered again.
pub const TAKE_UP: Span = Span::seconds(30);
/// The time within which a deployer must stop after it was told to.
pub const STOP: Span = Span::minutes(10);
/// The largest difference between the clocks of alarms and of the functions.
pub const ALARM_SKEW: Span = Span::seconds(60);
/// The duration of a claim, unless the deployer asks for another one.
pub const LEASE: Span = Span::seconds(60);
/// The longest lease a deployer may ask for.
pub const LEASE_MOST: Span = Span::minutes(60);

/// A definition in force.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Applied {
    #[serde(rename = "d")]
    pub definition: Definition,
    /// The number of changes so far.
    #[serde(rename = "v")]
    pub version: i64,
    /// Who changed it last.
    #[serde(rename = "b", default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// The version that the definition itself asks for, as a generated definition does.
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Request>,
    /// The API request that replaced a definition in a version that it named. 0: the definition was not replaced in that way.
    #[serde(rename = "q", default, skip_serializing_if = "is_zero")]
    pub asked: u64,
}

crate::stored!(Applied);

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Applied {
    /// The definition after one more change.
    pub fn after(&self) -> Self {
        Self { version: self.version + 1, asked: 0, ..self.clone() }
    }
}

/// The request for a version in a definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The number of the version: one above the latest. Any other number asks for nothing.
    #[serde(rename = "n")]
    pub version: u64,
    #[serde(rename = "c", default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Why>,
}

/// The content of a version. It never changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The definition, with every image resolved.
    #[serde(rename = "d")]
    pub definition: Definition,
    /// The version's number.
    #[serde(rename = "n")]
    pub n: u64,
    /// Why it was cut.
    #[serde(rename = "c", default)]
    pub causes: Vec<Why>,
    /// When it was cut.
    #[serde(rename = "t")]
    pub at: Timestamp,
}

crate::stored!(Snapshot);

impl Snapshot {
    /// The hash of the snapshot, which is a part of its key.
    pub fn hash(&self) -> u64 {
        super::template::hash(&serde_json::to_value(self).unwrap_or_default())
    }
}

/// A deployment that has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Past {
    /// The last state of the deployment.
    #[serde(rename = "d")]
    pub deployment: Deployment,
    /// When it ended.
    #[serde(rename = "t")]
    pub at: Timestamp,
}

crate::stored!(Past);

/// A call of a deployer.
#[derive(Debug, Clone, PartialEq)]
pub enum Call {
    /// The deployer claims the version.
    Claim {
        /// The name that the deployer gives itself.
        by: String,
        /// Identifies the claim.
        id: u64,
        /// The SHA-256 of the token that the deployer gets, in hexadecimal.
        token: String,
        /// How long the claim is valid without a heartbeat.
        lease: Span,
    },
    /// The deployer is alive.
    Heartbeat {
        /// The SHA-256 of the deployer's token.
        token: String,
        /// Whether the deployer has begun.
        running: bool,
        /// How long the claim is valid from now on.
        lease: Span,
        /// The deployer's progress.
        progress: Progress,
    },
    /// The deployer orders Keelway to carry a part of the strategy out.
    Carry {
        /// The SHA-256 of the deployer's token.
        token: String,
        /// The share of the requests to reach, in percent: see [`super::Part::until`].
        until: u8,
    },
    /// The deployer has ended.
    End {
        /// The SHA-256 of the deployer's token.
        token: String,
        /// The exit code. Absent: the deployer never ran.
        exit: Option<i64>,
        /// The deployer's last message.
        message: String,
        /// The deployer's last progress.
        progress: Progress,
    },
}

/// The reply to a deployer's call.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// What the deployer must do.
    Desired(Desired),
    /// The call does not count: it is a repetition, or the claim has ended.
    Refused(Refused),
}

/// What a deployer must do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Desired {
    /// Continue.
    Run,
    /// Stop at a point from which it can continue later.
    Pause,
    /// Stop and report the end.
    Cancel,
}

/// A command of a person or a tool to a config.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Command {
    /// Cut a new version.
    Latest(Latest),
    /// Stop the running deployment.
    Cancel,
    /// Stop the running deployment, and drop the version that waits for its end.
    CancelAll,
    /// Start the latest version again, if it failed.
    Retry,
    /// Deploy nothing new until the config is resumed.
    Pause,
    /// Resume the config.
    Resume,
    /// Roll back, by a new version.
    Rollback(Back),
    /// Let no trigger fire until the triggers are resumed.
    SuspendTriggers,
    /// Let the triggers fire again.
    ResumeTriggers,
    /// Let a waiting canary take its next step.
    Proceed,
}

/// Options of a new version that is cut by command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Latest {
    /// Deploy the images of the latest version.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
    /// Cancel a running deployment first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub supersede: bool,
    /// Resume a paused config first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resume: bool,
    /// Let suspended triggers fire again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resume_triggers: bool,
    /// Do nothing if nothing has changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub if_changed: bool,
    /// The image of the main container.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// Suspend the triggers with it, so that the image stays.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspend: bool,
    /// The task of a sequence that it carries out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Box<Task>>,
}

/// Options of a rollback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Back {
    /// The version to go back to. Absent: the newest complete one below the latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<u64>,
    /// Restore labels, triggers and strategy.
    pub config: bool,
    /// Restore template, replicas and selector.
    pub application: bool,
    /// Restore exactly these parts, as OpenShift's request names them. It takes precedence over `config` and `application`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<Parts>,
    /// Allow a version that failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_failed: bool,
    /// Take the steps of the strategy. Otherwise the rollback is immediate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_steps: bool,
    /// Roll back even if nothing changes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
    /// An id that configs share which are rolled back together.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The task of a sequence that it carries out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Box<Task>>,
}

/// The parts of a definition that a rollback restores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Parts {
    pub template: bool,
    /// Replicas and selector.
    pub replication: bool,
    pub triggers: bool,
    pub strategy: bool,
    /// The labels. OpenShift's request cannot name them.
    pub labels: bool,
}

impl Parts {
    /// Whether nothing is restored.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }
}

impl Back {
    /// The parts that the rollback restores.
    pub fn parts(&self) -> Parts {
        let Self { config, application, .. } = *self;
        let both = Parts { template: application, replication: application, triggers: config, strategy: config, labels: config };
        self.parts.unwrap_or(both)
    }
}

/// An input to a config.
#[derive(Debug, Clone, Copy)]
pub enum Input<'a> {
    /// Something that the config depends on may have changed: the definition, a tag, a report, the time.
    Evaluate,
    /// The wake-up for this time.
    Wake(Timestamp),
    /// An alarm went on (`true`) or off at that time.
    Alarm(&'a str, bool, Timestamp),
    /// A command of a person or a tool.
    Command(&'a Command, &'a Note),
    /// The sequence no longer waits for the task with this trigger.
    Over(&'a str),
    /// A check of what the targets serve.
    Saw(&'a Sight),
}

/// The inputs of a decision besides the state.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The time of the decision.
    pub now: Timestamp,
    /// The message at hand.
    pub cause: Cause,
    /// The definition in force. `None`: the config was deleted.
    pub applied: Option<&'a Applied>,
    /// What the watched tags point to.
    pub heads: &'a Heads,
    /// The version to go back to, if the input or the state names one and it exists.
    pub target: Option<&'a (Past, Snapshot)>,
    /// Why that version cannot be used, although it is kept.
    pub damaged: Option<&'a str>,
}

/// What a commit has done by somebody else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Order {
    /// Start a deployer for this attempt, or go on with it.
    Start {
        /// The version.
        n: u64,
        /// The attempt.
        attempt: u32,
        /// When it was ordered: a later order for the same attempt is another one.
        at: Timestamp,
    },
    /// Look at what the targets of a version serve.
    Look {
        /// The version.
        n: u64,
        /// When it was ordered.
        at: Timestamp,
    },
}

crate::recorded!(Order);

/// What a commit writes beside the state.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct With {
    /// Snapshots of new versions.
    pub snapshots: Vec<Snapshot>,
    /// Attempts that have ended.
    pub past: Vec<Past>,
    /// The definition, if a rollback changed it.
    pub rewritten: Option<Definition>,
    /// The command that led to it.
    pub obeyed: Option<Obeyed>,
    /// The drift that was seen: an entry of the audit.
    pub drifted: Option<String>,
}

/// A command that was obeyed: an entry of the audit.
pub type Obeyed = level::Obeyed<Command>;

crate::stored!(Obeyed);

/// The decision about an input.
pub type Decision = level::Decision<Config>;
/// A commit.
pub type Transition = level::Transition<Config>;
