//! A numbered version of a config: what it deploys, why it was cut, and how its deployment goes.

use super::definition::ImageTag;
use super::facts::OFFER_AGAIN;
use super::part::Part;
use super::template::Images;
use crate::access::known;
use crate::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// At most this many causes of one version are kept; the oldest are.
pub const MAX_CAUSES: usize = 20;
/// The last so many bytes of a deployer's log are kept.
pub const MAX_TAIL: usize = 2048;

/// The longest checkpoint, in bytes. A longer one is not kept.
pub const MAX_CHECKPOINT: usize = 8192;

/// A numbered version of a config, and how its deployment goes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Deployment {
    /// Its number.
    #[serde(rename = "n")]
    pub n: u64,
    /// The hash of its snapshot, and a part of the snapshot's key.
    #[serde(rename = "h")]
    pub snapshot: u64,
    /// Where it is in its life.
    #[serde(rename = "s")]
    pub status: Status,
    /// How often it was started: 1, and one more for each retry.
    #[serde(rename = "a")]
    pub attempt: u32,
    /// What it deploys.
    #[serde(rename = "f")]
    pub content: Content,
    /// Why it was cut.
    #[serde(rename = "c", default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Why>,
    /// The causes, or what became of it, in a few words.
    #[serde(rename = "m", default)]
    pub message: String,
    /// A word for machines: why it failed.
    #[serde(rename = "r", default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// When it was cut.
    #[serde(rename = "t")]
    pub since: Timestamp,
    /// How long nobody may claim it, and the one who has may take.
    #[serde(rename = "l")]
    pub limits: TimeLimits,
    /// Until then somebody must claim it; afterwards: until then it must have ended. Moves while it is paused.
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
    /// Since when the clock of `due` has been stopped.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Timestamp>,
    /// When the deployer that Keelway starts was last told.
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    pub offered: Option<Timestamp>,
    /// Who carries it out.
    #[serde(rename = "k", default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    /// How the deployer said that it ended.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Report>,
    /// It is to stop.
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    pub cancel: Option<Cancel>,
    /// How far it is.
    #[serde(rename = "g", default)]
    pub progress: Progress,
    /// What Keelway carries out for the deployer.
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    /// The statuses that were published, one bit each.
    #[serde(rename = "b", default)]
    pub told: u8,
    /// How often a canary that holds was told to go on.
    #[serde(rename = "pr", default)]
    pub proceeds: u32,
    /// It failed, or its alarm went off, and Keelway is to roll it back.
    #[serde(rename = "un", default, skip_serializing_if = "String::is_empty")]
    pub undo: String,
    /// When it ended.
    #[serde(rename = "z", default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
    /// The rollback it carries out.
    #[serde(rename = "rb", default, skip_serializing_if = "Option::is_none")]
    pub rollback: Option<Rollback>,
    /// The task of a sequence that it answers.
    #[serde(rename = "tk", default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Task>,
}

impl Deployment {
    /// Whether a deployer has said something that no evaluation has told yet.
    pub fn is_untold(&self) -> bool {
        let untold = |status: Status| self.told & status.bit() == 0;
        let running = self.claim.as_ref().is_some_and(|claim| claim.running.is_some());
        let ended = self.report.is_some() && !self.status.is_final();
        let part = !self.status.is_final() && self.part.as_ref().is_some_and(Part::is_untold);
        ended || part || self.claim.is_some() && untold(Status::Pending) || running && untold(Status::Running)
    }
}

/// What a version deploys, as far as it decides about the next one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// The hash of the template with its images.
    #[serde(rename = "h")]
    pub template: u64,
    /// The images by container.
    #[serde(rename = "i", default)]
    pub images: Images,
    /// The image whose digest is the version's revision to pipelines.
    #[serde(rename = "p", default, skip_serializing_if = "String::is_empty")]
    pub revision: String,
    /// Whether Keelway starts the deployer.
    #[serde(rename = "s", default)]
    pub starts: bool,
    /// Whether the deployer may have Keelway carry the strategy out.
    #[serde(rename = "w", default, skip_serializing_if = "std::ops::Not::not")]
    pub wraps: bool,
    /// Whether Keelway claims it itself, and nobody else may.
    #[serde(rename = "o", default, skip_serializing_if = "std::ops::Not::not")]
    pub ours: bool,
}

/// How long a deployment may wait, and run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeLimits {
    /// Unclaimed. Zero: for ever.
    #[serde(rename = "s")]
    pub start: Span,
    /// Claimed.
    #[serde(rename = "r")]
    pub run: Span,
}

impl TimeLimits {
    /// A deployer that Keelway starts is started again after this time if nobody has claimed the work: several times before the
    /// deadline, so that an invocation that was lost fails no deployment.
    pub fn offer_again(&self) -> Span {
        if self.start.0 <= 0 { OFFER_AGAIN } else { Span(self.start.0 / 4).clamp(Span::seconds(5), OFFER_AGAIN) }
    }
}

/// Where a deployment is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Status {
    /// Nobody has claimed it.
    New,
    /// A deployer has claimed it, or it is known that none will.
    Pending,
    /// The deployer is at work.
    Running,
    /// The deployer said that it succeeded.
    Complete,
    /// It did not succeed. It may be retried.
    Failed,
}

impl Status {
    /// Whether the deployment has ended.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Complete | Self::Failed)
    }

    /// Whether one status may follow another. A retry, from `Failed` to `New`, is the one exception.
    pub fn leads_to(self, next: Self) -> bool {
        match self {
            Self::New => next != Self::New,
            Self::Pending => matches!(next, Self::Running | Self::Complete | Self::Failed),
            Self::Running => matches!(next, Self::Complete | Self::Failed),
            Self::Complete | Self::Failed => false,
        }
    }

    /// Its bit in [`Deployment::told`].
    pub(super) fn bit(self) -> u8 {
        1 << (self as u8)
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self:?}")
    }
}

/// Why a version was cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "type")]
pub enum Why {
    /// The template changed.
    #[serde(rename = "ConfigChange")]
    ConfigChange {
        /// Who applied it.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        by: String,
    },
    /// A tag points to another image.
    #[serde(rename = "ImageChange")]
    ImageChange {
        /// The tag.
        from: ImageTag,
        /// The image.
        image: String,
        /// When it was pushed.
        at: Timestamp,
        /// Who pushed it; empty: that is not known.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        by: String,
    },
    /// Somebody asked for it.
    #[serde(rename = "Manual")]
    Manual {
        /// Who.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        by: String,
    },
    /// It is a rollback.
    #[serde(rename = "Rollback")]
    Rollback {
        /// To which version.
        release: u64,
        /// Who asked.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        by: String,
        /// Why.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        notes: String,
    },
    /// Keelway rolls back by itself.
    #[serde(rename = "AutoRollback")]
    AutoRollback {
        /// The version that failed.
        of: u64,
        /// To which version.
        release: u64,
        /// Why.
        reason: String,
    },
    /// Keelway brings back what was deployed, because a target served something else.
    #[serde(rename = "Drift")]
    Drift {
        /// The version that is deployed again.
        of: u64,
        /// What was served.
        found: String,
    },
}

impl Why {
    /// Who is behind it, without what they say about themselves; `None`: that is not known, or nobody is.
    pub fn author(&self) -> Option<&str> {
        let by = match self {
            Self::ConfigChange { by } | Self::ImageChange { by, .. } | Self::Manual { by } | Self::Rollback { by, .. } => known(by),
            Self::AutoRollback { .. } | Self::Drift { .. } => "",
        };
        (!by.is_empty()).then_some(by)
    }
}

/// Who carries an attempt out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Who, as it calls itself.
    #[serde(rename = "b", default)]
    pub by: String,
    /// Identifies the claim: the same one again gets the same work.
    #[serde(rename = "i")]
    pub id: u64,
    /// The SHA-256 of the attempt's token, in hexadecimal.
    #[serde(rename = "k")]
    pub token: String,
    /// When it claimed.
    #[serde(rename = "t")]
    pub at: Timestamp,
    /// Until then it must be heard of again.
    #[serde(rename = "u")]
    pub lease: Timestamp,
    /// When it was first said to run.
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub running: Option<Timestamp>,
}

/// How a deployer said that it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Its exit code; absent: it has none, because it never ran.
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i64>,
    /// What it says.
    #[serde(rename = "m", default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When it was accepted.
    #[serde(rename = "t")]
    pub at: Timestamp,
}

/// Why a deployment is to stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cancel {
    /// A word for machines: `Cancelled`, `Superseded`, `DeadlineExceeded`, `Alarm`, `Deleted`.
    #[serde(rename = "r")]
    pub reason: String,
    /// A sentence for people.
    #[serde(rename = "m")]
    pub message: String,
    /// When it was said.
    #[serde(rename = "t")]
    pub at: Timestamp,
    /// Until then the deployer must have ended.
    #[serde(rename = "u")]
    pub due: Timestamp,
}

/// How far a deployment is, as the deployer says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// A sentence for people.
    #[serde(rename = "m", default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// By target.
    #[serde(rename = "t", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub targets: BTreeMap<String, TargetProgress>,
    /// The end of its log.
    #[serde(rename = "l", default, skip_serializing_if = "String::is_empty")]
    pub tail: String,
    /// What the deployer wants to be told if it, or another one, goes on with this attempt.
    #[serde(rename = "c", default, skip_serializing_if = "String::is_empty")]
    pub checkpoint: String,
    /// Where the whole log is.
    #[serde(rename = "u", default, skip_serializing_if = "String::is_empty")]
    pub log: String,
}

/// How far a deployment is at one of its targets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetProgress {
    /// Where the target is.
    #[serde(rename = "s")]
    pub status: Status,
    /// A sentence for people.
    #[serde(rename = "m", default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// The rollback that a version carries out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rollback {
    /// To which version.
    #[serde(rename = "v")]
    pub release: u64,
    /// Whether Keelway rolled back by itself.
    #[serde(rename = "a", default)]
    pub automatic: bool,
    /// What configs that are rolled back together have in common.
    #[serde(rename = "g", default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// By the steps of the strategy, and not at once.
    #[serde(rename = "s", default, skip_serializing_if = "std::ops::Not::not")]
    pub by_steps: bool,
}

/// The task of a sequence that a deployment carries out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// The task's name.
    #[serde(rename = "t")]
    pub name: String,
    /// Its context.
    #[serde(rename = "c")]
    pub context: String,
    /// The id of its `.triggered` event.
    #[serde(rename = "i")]
    pub triggered: String,
    /// Its project, stage and service.
    #[serde(rename = "p")]
    pub place: [String; 3],
}
