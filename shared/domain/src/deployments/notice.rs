//! Notices: the events of AWS services, in Keelway's terms. They arrive at least once and in any order, and concern everything in
//! the account: those that belong to no config are ignored.

use super::registry::Repository;
use super::runner::Became;
use crate::address::Address;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// The event of an AWS service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Notice {
    /// An image was pushed or deleted.
    Image(Image),
    /// An alarm went on or off.
    Alarm(Alarm),
    /// A task or build that carries out a deployment runs, or has ended.
    Run(Run),
    /// An event that no config needs.
    Other,
}

/// An image was pushed or deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// The repository.
    pub repository: Repository,
    /// The image.
    pub digest: String,
    /// The tag that was added or deleted; `None`: the image has no tag.
    pub tag: Option<String>,
    /// Whether the image or the tag was deleted: of an image with several tags, one may be deleted alone.
    pub deleted: bool,
    /// The time of the event.
    pub at: Timestamp,
}

/// An alarm went on or off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alarm {
    /// The name of the alarm.
    pub name: String,
    /// Whether the alarm is on.
    pub on: bool,
    /// The time of the change.
    pub at: Timestamp,
}

/// The state of a task or build, whose environment names the attempt that it carries out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Of which config.
    pub of: Address,
    /// Which version.
    pub n: u64,
    /// Which attempt.
    pub attempt: u32,
    /// The ARN of the task or build.
    pub arn: String,
    /// The state.
    pub became: Became,
    /// The address of its log.
    pub log: String,
}
