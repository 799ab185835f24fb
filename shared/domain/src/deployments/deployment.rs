//! A numbered version of a config: what it deploys, why it was cut, and the progress of its deployment.

#![expect(missing_docs, reason = "names that say what they are need no documentation")]

use super::analysis;
use super::definition::ImageTag;
use super::facts::OFFER_AGAIN;
use super::origin::{Delivery, Rollback, Task};
use super::part::Part;
use super::state::Pin;
use super::template::Images;
use crate::access::known;
use crate::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The most causes that a version keeps, oldest first.
pub const MAX_CAUSES: usize = 20;
/// The end of a deployer's log that is kept, in bytes.
pub const MAX_TAIL: usize = 2048;

/// The longest checkpoint that is kept, in bytes.
pub const MAX_CHECKPOINT: usize = 8192;

/// A numbered version of a config, and its deployment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Deployment {
    /// The number of the version.
    #[serde(rename = "n")]
    pub n: u64,
    /// The hash of its snapshot, and a part of the snapshot's key.
    #[serde(rename = "h")]
    pub snapshot: u64,
    #[serde(rename = "s")]
    pub status: Status,
    /// The number of the present attempt: 1, and one more with each retry.
    #[serde(rename = "a")]
    pub attempt: u32,
    /// What it deploys.
    #[serde(rename = "f")]
    pub content: Content,
    /// Why it was cut.
    #[serde(rename = "c", default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Why>,
    /// The causes or, at the end, the result, in a few words.
    #[serde(rename = "m", default)]
    pub message: String,
    /// Why it failed, in one word for machines.
    #[serde(rename = "r", default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// When it was cut.
    #[serde(rename = "t")]
    pub since: Timestamp,
    /// How long it may wait for a claim, and how long it may run.
    #[serde(rename = "l")]
    pub limits: TimeLimits,
    /// The deadline for a claim, and after the claim, the deadline for the end. It moves while the deployment is paused.
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
    /// When the clock of `due` was stopped.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Timestamp>,
    /// When the deployer that Keelway starts was last ordered to start.
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    pub offered: Option<Timestamp>,
    /// The deployer's claim.
    #[serde(rename = "k", default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    /// The result that the deployer has reported.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Report>,
    /// The request to stop it.
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    pub cancel: Option<Cancel>,
    /// The progress that the deployer has reported.
    #[serde(rename = "g", default)]
    pub progress: Progress,
    /// The part of the strategy that Keelway carries out for the deployer.
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    /// The statuses that were published, one bit each.
    #[serde(rename = "b", default)]
    pub told: u8,
    /// How often a canary was told to proceed.
    #[serde(rename = "pr", default)]
    pub proceeds: u32,
    /// Why Keelway must roll it back: it failed, or one of its alarms went off. Empty: it need not.
    #[serde(rename = "un", default, skip_serializing_if = "String::is_empty")]
    pub undo: String,
    /// When it ended.
    #[serde(rename = "z", default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
    /// The rollback that this version is, if it is one.
    #[serde(rename = "rb", default, skip_serializing_if = "Option::is_none")]
    pub rollback: Option<Rollback>,
    /// The task of a sequence that this deployment answers.
    #[serde(rename = "tk", default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Task>,
    /// While it waits: the images from commands that apply from its start on. `None`: it was stored before they were, or has begun.
    #[serde(rename = "pi", default, skip_serializing_if = "Option::is_none")]
    pub pins: Option<BTreeMap<String, Pin>>,
}

crate::stored!(Deployment);

impl Deployment {
    /// Whether a deployer has reported something that no evaluation has published yet.
    pub fn is_untold(&self) -> bool {
        let untold = |status: Status| self.told & status.bit() == 0;
        let running = self.claim.as_ref().is_some_and(|claim| claim.running.is_some());
        let ended = self.report.is_some() && !self.status.is_final();
        let part = !self.status.is_final() && self.part.as_ref().is_some_and(Part::is_untold);
        ended || part || self.claim.is_some() && untold(Status::Pending) || running && untold(Status::Running)
    }
}

/// The content of a version, by which the next one is compared.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// The hash of the template with its images.
    #[serde(rename = "h")]
    pub template: u64,
    /// The images by container.
    #[serde(rename = "i", default)]
    pub images: Images,
    /// The image whose digest pipelines take for the version's revision.
    #[serde(rename = "p", default, skip_serializing_if = "String::is_empty")]
    pub revision: String,
    /// Whether Keelway starts the deployer.
    #[serde(rename = "s", default)]
    pub starts: bool,
    /// Whether the deployer may order Keelway to carry the strategy out.
    #[serde(rename = "w", default, skip_serializing_if = "std::ops::Not::not")]
    pub wraps: bool,
    /// Whether only Keelway may claim the version.
    #[serde(rename = "o", default, skip_serializing_if = "std::ops::Not::not")]
    pub ours: bool,
}

/// The time limits of a deployment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeLimits {
    /// From its start to its claim. Zero: no limit.
    #[serde(rename = "s")]
    pub start: Span,
    /// From its claim to its end.
    #[serde(rename = "r")]
    pub run: Span,
}

impl TimeLimits {
    /// When a deployer that Keelway starts is started again if nobody has claimed the version. This happens several times before
    /// the deadline, so that one lost invocation does not fail a deployment.
    pub fn offer_again(&self) -> Span {
        if self.start.0 <= 0 { OFFER_AGAIN } else { Span(self.start.0 / 4).clamp(Span::seconds(5), OFFER_AGAIN) }
    }
}

/// The status of a deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Status {
    /// Nobody has claimed it.
    New,
    /// A deployer has claimed it, or it is certain that none will.
    Pending,
    /// The deployer has begun.
    Running,
    /// The deployer has reported success.
    Complete,
    /// It failed, and may be retried.
    Failed,
}

impl Status {
    /// Whether the deployment has ended.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Complete | Self::Failed)
    }

    /// Whether `next` may follow this status. A retry, from `Failed` to `New`, is the one exception.
    pub fn leads_to(self, next: Self) -> bool {
        match self {
            Self::New => next != Self::New,
            Self::Pending => matches!(next, Self::Running | Self::Complete | Self::Failed),
            Self::Running => matches!(next, Self::Complete | Self::Failed),
            Self::Complete | Self::Failed => false,
        }
    }

    /// The bit of this status in [`Deployment::told`].
    pub(super) fn bit(self) -> u8 {
        1 << (self as u8)
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self:?}")
    }
}

/// A cause of a version.
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
        /// The tag that moved.
        from: ImageTag,
        /// The image that it points to.
        image: String,
        /// When it was pushed.
        at: Timestamp,
        /// Who pushed it; empty: that is not known.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        by: String,
    },
    /// A command.
    #[serde(rename = "Manual")]
    Manual {
        /// Who gave the command.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        by: String,
        /// The task that gave it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delivery: Option<Box<Delivery>>,
    },
    /// A command to roll back.
    #[serde(rename = "Rollback")]
    Rollback {
        /// The version to go back to.
        release: u64,
        /// Who gave the command.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        by: String,
        /// The reason that was given.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        notes: String,
        /// The task that gave it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delivery: Option<Box<Delivery>>,
    },
    /// A rollback by Keelway itself.
    #[serde(rename = "AutoRollback")]
    AutoRollback {
        /// The version that failed.
        of: u64,
        /// The version to go back to.
        release: u64,
        /// Why version `of` failed.
        reason: String,
    },
    /// A target served something else, and this version restores what was deployed.
    #[serde(rename = "Drift")]
    Drift {
        /// The version that is restored.
        of: u64,
        /// What the target served.
        found: String,
    },
}

impl Why {
    /// By a command, of a person or for the task of a sequence.
    pub(super) fn command(by: &str, task: Option<&Task>) -> Self {
        Self::Manual { by: by.to_owned(), delivery: task.map(|task| Box::new(task.delivery())) }
    }

    /// The verified identity of the person behind it. `None`: it is not known, or there is no such person.
    pub fn author(&self) -> Option<&str> {
        let by = match self {
            Self::ConfigChange { by } | Self::ImageChange { by, .. } | Self::Manual { by, .. } | Self::Rollback { by, .. } => {
                known(by)
            }
            Self::AutoRollback { .. } | Self::Drift { .. } => "",
        };
        (!by.is_empty()).then_some(by)
    }
}

/// A deployer's claim of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The name that the deployer gives itself.
    #[serde(rename = "b", default)]
    pub by: String,
    /// Identifies the claim. The same claim again succeeds again.
    #[serde(rename = "i")]
    pub id: u64,
    /// The SHA-256 of the attempt's token, in hexadecimal.
    #[serde(rename = "k")]
    pub token: String,
    /// When it claimed.
    #[serde(rename = "t")]
    pub at: Timestamp,
    /// When the claim ends, unless the deployer is heard of before.
    #[serde(rename = "u")]
    pub lease: Timestamp,
    /// When the deployer first reported that it had begun.
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub running: Option<Timestamp>,
    /// When it last prolonged the claim; absent: it has only claimed.
    #[serde(rename = "h", default, skip_serializing_if = "Option::is_none")]
    pub heard: Option<Timestamp>,
}

impl Claim {
    /// The claim, after a heartbeat. One that does not prolong it changes nothing, so it costs no write.
    pub fn prolonged(self, lease: Timestamp, now: Timestamp) -> Self {
        if lease > self.lease { Self { lease, heard: Some(now), ..self } } else { self }
    }

    /// When the deployer was last heard of.
    pub fn heard(&self) -> Timestamp {
        self.heard.unwrap_or(self.at)
    }
}

/// The result that a deployer reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The exit code. Absent: the deployer never ran.
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i64>,
    #[serde(rename = "m", default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When it was accepted.
    #[serde(rename = "t")]
    pub at: Timestamp,
}

/// The request to stop a deployment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cancel {
    /// A word for machines: `Cancelled`, `Superseded`, `DeadlineExceeded`, `Alarm`, `Deleted`.
    #[serde(rename = "r")]
    pub reason: String,
    /// A sentence for people.
    #[serde(rename = "m")]
    pub message: String,
    /// When it was requested.
    #[serde(rename = "t")]
    pub at: Timestamp,
    /// The deadline for the deployer to stop.
    #[serde(rename = "u")]
    pub due: Timestamp,
}

/// The progress of a deployment, as the deployer reports it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// A sentence for people.
    #[serde(rename = "m", default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The progress at each target.
    #[serde(rename = "t", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub targets: BTreeMap<String, TargetProgress>,
    /// The end of the log.
    #[serde(rename = "l", default, skip_serializing_if = "String::is_empty")]
    pub tail: String,
    /// What the deployer needs in order to continue this attempt, or to let another deployer continue it.
    #[serde(rename = "c", default, skip_serializing_if = "String::is_empty")]
    pub checkpoint: String,
    /// The address of the whole log.
    #[serde(rename = "u", default, skip_serializing_if = "String::is_empty")]
    pub log: String,
    /// The newest window of the analysis.
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    pub analysis: Option<Box<analysis::Report>>,
}

/// The progress of a deployment at one target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetProgress {
    #[serde(rename = "s")]
    pub status: Status,
    /// A sentence for people.
    #[serde(rename = "m", default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}
