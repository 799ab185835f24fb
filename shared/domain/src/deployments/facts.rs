//! The inputs and the results of a decision.

use super::definition::Definition;
use super::deployment::{Deployment, Progress, Task, Why};
use super::drift::Sight;
use super::registry::Heads;
use super::state::Config;
use crate::cause::Cause;
use crate::level::{self, Refused};
use crate::note::Note;
use crate::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};

/// A change becomes a version when nothing else has changed for so long, so that a change of the configuration and of an image become one.
pub const QUIET: Span = Span::seconds(2);
/// It becomes a version after this time even if more keeps changing.
pub const QUIET_MOST: Span = Span::seconds(20);
/// A deployer that Keelway starts is started again after this time at the latest, if nobody has claimed the work.
pub const OFFER_AGAIN: Span = Span::minutes(2);
/// Keelway's own deployer, told to go on where it was, has so long to take the work up. Then it is told again.
pub const TAKE_UP: Span = Span::seconds(30);
/// A deployer that was told to stop has so long to do it.
pub const STOP: Span = Span::minutes(10);
/// The clocks of whoever tells of alarms and of functions differ by less than this.
pub const ALARM_SKEW: Span = Span::seconds(60);
/// How long a claim lasts if the deployer says nothing else.
pub const LEASE: Span = Span::seconds(60);
/// The longest lease a deployer may ask for.
pub const LEASE_MOST: Span = Span::minutes(60);

/// A definition in force.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Applied {
    /// What it says.
    #[serde(rename = "d")]
    pub definition: Definition,
    /// How often it was changed.
    #[serde(rename = "v")]
    pub version: i64,
    /// Who changed it last.
    #[serde(rename = "b", default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// The version that whoever wrote it asks for, as the generator does.
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Request>,
    /// The request of the API that wrote it in place of a version that it named; 0: none did.
    #[serde(rename = "q", default, skip_serializing_if = "is_zero")]
    pub asked: u64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Applied {
    /// The same, changed once more.
    pub fn after(&self) -> Self {
        Self { version: self.version + 1, asked: 0, ..self.clone() }
    }
}

/// A version that is asked for by writing the config.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Its number: one above the latest, or nothing is asked for.
    #[serde(rename = "n")]
    pub version: u64,
    /// Why.
    #[serde(rename = "c", default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Why>,
}

/// What was deployed as a version. It never changes.
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
    /// When.
    #[serde(rename = "t")]
    pub at: Timestamp,
}

impl Snapshot {
    /// Its hash, a part of its key.
    pub fn hash(&self) -> u64 {
        super::template::hash(&serde_json::to_value(self).unwrap_or_default())
    }
}

/// A version that has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Past {
    /// As it was last.
    #[serde(rename = "d")]
    pub deployment: Deployment,
    /// When it ended.
    #[serde(rename = "t")]
    pub at: Timestamp,
}

/// What a deployer says.
#[derive(Debug, Clone, PartialEq)]
pub enum Call {
    /// It takes the work.
    Claim {
        /// Who.
        by: String,
        /// Identifies the claim.
        id: u64,
        /// The SHA-256 of the token it gets, in hexadecimal.
        token: String,
        /// How long it keeps the work without being heard of.
        lease: Span,
    },
    /// It is still there.
    Heartbeat {
        /// The SHA-256 of its token.
        token: String,
        /// Whether it is at work, and not only about to be.
        running: bool,
        /// As in a claim.
        lease: Span,
        /// How far it is.
        progress: Progress,
    },
    /// It has Keelway carry out a part of the strategy.
    Carry {
        /// The SHA-256 of its token.
        token: String,
        /// How far, in percent of the requests: see [`super::Part::until`].
        until: u8,
    },
    /// It has ended.
    End {
        /// The SHA-256 of its token.
        token: String,
        /// Its exit code; absent: it never ran.
        exit: Option<i64>,
        /// What it says.
        message: String,
        /// How far it came.
        progress: Progress,
    },
}

/// What a deployer is told.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// What it is to do.
    Desired(Desired),
    /// It said that already, or it no longer counts.
    Refused(Refused),
}

/// What a deployer is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Desired {
    /// Go on.
    Run,
    /// Stop where it can go on later.
    Pause,
    /// Stop, and end.
    Cancel,
}

/// What a person or a tool asks of a config.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Command {
    /// Cut a new version.
    Latest(Latest),
    /// Stop the deployment that is on its way.
    Cancel,
    /// The same, and do not deploy the change that waits for its end.
    CancelAll,
    /// Start the latest version again, which failed.
    Retry,
    /// Deploy nothing new until resumed.
    Pause,
    /// Go on.
    Resume,
    /// Cut a version that goes back.
    Rollback(Back),
    /// No trigger fires until they are resumed.
    SuspendTriggers,
    /// Triggers fire again.
    ResumeTriggers,
    /// A canary that holds goes on with its next step.
    Proceed,
}

/// How a new version is cut by hand.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Latest {
    /// Images stay as they are.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
    /// A deployment on its way is cancelled first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub supersede: bool,
    /// A paused config is resumed first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resume: bool,
    /// Suspended triggers fire again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resume_triggers: bool,
    /// Only if something changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub if_changed: bool,
    /// The image of the first container.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// Triggers are suspended with it, so that the image stays.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspend: bool,
    /// The task of a sequence that it carries out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Box<Task>>,
}

/// How a config goes back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Back {
    /// To which version; absent: the newest complete one below the latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<u64>,
    /// Labels, triggers and strategy go back.
    pub config: bool,
    /// Template, replicas and selector go back.
    pub application: bool,
    /// Exactly these parts go back, as OpenShift's request names them; wins over the two above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<Parts>,
    /// Also to a version that failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_failed: bool,
    /// By the steps of the strategy, and not at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_steps: bool,
    /// Also if it changes nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
    /// What configs that are rolled back together have in common.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The task of a sequence that it carries out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Box<Task>>,
}

/// What goes back in a rollback.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Parts {
    /// The template.
    pub template: bool,
    /// Replicas and selector.
    pub replication: bool,
    /// The triggers.
    pub triggers: bool,
    /// The strategy.
    pub strategy: bool,
    /// The labels. OpenShift's request cannot name them.
    pub labels: bool,
}

impl Parts {
    /// Whether nothing goes back.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }
}

impl Back {
    /// What goes back.
    pub fn parts(&self) -> Parts {
        let Self { config, application, .. } = *self;
        let both = Parts { template: application, replication: application, triggers: config, strategy: config, labels: config };
        self.parts.unwrap_or(both)
    }
}

/// An input to a config.
#[derive(Debug, Clone, Copy)]
pub enum Input<'a> {
    /// Something it depends on may have changed: the definition, a tag, a report, the time.
    Evaluate,
    /// The wake-up armed for this time.
    Wake(Timestamp),
    /// An alarm went on (`true`) or off, at that time.
    Alarm(&'a str, bool, Timestamp),
    /// A person or a tool asks.
    Command(&'a Command, &'a Note),
    /// The sequence does not wait any more for the task with this trigger.
    Over(&'a str),
    /// Somebody looked at the targets.
    Saw(&'a Sight),
}

/// What a decision reads in addition to the state.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// Now.
    pub now: Timestamp,
    /// The message at hand.
    pub cause: Cause,
    /// The definition in force; none: the config was deleted.
    pub applied: Option<&'a Applied>,
    /// What the tags that it watches point to.
    pub heads: &'a Heads,
    /// The version to go back to, if the input or the state asks for one and it exists.
    pub target: Option<&'a (Past, Snapshot)>,
    /// Why that version is of no use although it is kept.
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
/// The decision about an input.
pub type Decision = level::Decision<Config>;
/// A commit.
pub type Transition = level::Transition<Config>;
