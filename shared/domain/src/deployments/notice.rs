//! Notices: what AWS tells the account of itself, in Keelway's words. They come at least once and in any order, and about
//! everything in the account: what belongs to no config is passed over.

use super::registry::Repository;
use super::runner::Became;
use crate::address::Address;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// What is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Notice {
    /// An image was pushed or deleted.
    Image(Image),
    /// An alarm went on or off.
    Alarm(Alarm),
    /// A task or build that carries out a deployment runs, or has ended.
    Run(Run),
    /// Nothing that matters to a config.
    Other,
}

/// An image was pushed or deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// The repository.
    pub repository: Repository,
    /// The image.
    pub digest: String,
    /// The tag that was put on it, or deleted; `None`: the image has none.
    pub tag: Option<String>,
    /// It was deleted: of an image with several tags, one may be deleted alone.
    pub deleted: bool,
    /// When.
    pub at: Timestamp,
}

/// An alarm went on or off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alarm {
    /// Which.
    pub name: String,
    /// On, or off.
    pub on: bool,
    /// Since when.
    pub at: Timestamp,
}

/// What became of a task or build. It says in its environment which attempt it carries out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Of which config.
    pub of: Address,
    /// Which version.
    pub n: u64,
    /// Which attempt.
    pub attempt: u32,
    /// Its name where it runs: an ARN.
    pub arn: String,
    /// What became of it.
    pub became: Became,
    /// Where its log is.
    pub log: String,
}
