//! The state of a deployment config: the numbers of its versions, its latest deployment, and what prevents the next one. Snapshots
//! and deployments that have ended are separate items, and never change.

use super::deployment::{Deployment, Why};
use super::drift::Watch;
use super::facts::{Order, With};
use super::template::Images;
use crate::address::Address;
use crate::condition::Condition;
use crate::ids::{RecordId, SubjectId, hash64};
use crate::level::{Level, Marks};
use crate::note::Note;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A deployment config.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The project it belongs to.
    pub namespace: String,
    /// Its name there.
    pub name: String,
    /// When it was first applied.
    pub began: Timestamp,
    /// The version of the definition that was last evaluated.
    pub observed: i64,
    /// The number of the latest version; 0: there is none.
    pub latest: u64,
    /// Versions below this one were pruned.
    pub oldest: u64,
    /// The latest version's deployment.
    pub last: Option<Deployment>,
    /// The version that starts when the last deployment has ended. A trigger's version is not stored: the next evaluation finds it
    /// again.
    pub pending: Option<Deployment>,
    /// The newest complete version.
    pub active: Option<Version>,
    /// The newest complete version below it that deploys something else.
    pub previous: Option<Version>,
    /// Who paused the config, and why. Nothing new is deployed until it is resumed.
    pub paused: Option<Note>,
    /// `spec.paused` of the manifest at the last evaluation.
    pub spec_paused: bool,
    /// Why the triggers do not fire.
    pub suspended: Option<Suspension>,
    /// Images from commands, by container. They apply while the manifest names the same image as then.
    pub pins: BTreeMap<String, Pin>,
    /// The state of the drift.
    pub watch: Watch,
    /// A change that is about to become a version.
    pub settling: Option<Settling>,
    /// The change that was cancelled before it became a version.
    pub dismissed: Option<Dismissed>,
    /// The last reported state of each alarm in the definition, and since when. Older reports change nothing.
    pub alarms: BTreeMap<String, (bool, Timestamp)>,
    /// The ids of the last commands that were obeyed, oldest first. A copy of one of them does nothing.
    pub obeyed: Vec<u64>,
    /// What the last evaluation found, for people; empty: nothing is left to do.
    pub condition: Condition,
    /// Whether it was deleted: running deployments are cancelled, then the config ends.
    pub deleted: bool,
    /// The one pending wake-up.
    pub wake: Option<Timestamp>,
    /// The message that set it ([`crate::cause::Cause::id`]).
    pub armed_by: u64,
    /// The record of the last transition that had one.
    pub record: Option<RecordId>,
}

impl Level for Config {
    type Order = Order;
    type With = With;

    fn id(&self) -> SubjectId {
        SubjectId(hash64(&[b"deployment config", self.namespace.as_bytes(), self.name.as_bytes()]))
    }
    fn address(&self) -> Address {
        Address::new(&self.namespace, &self.name)
    }
    fn marks(&mut self) -> Marks<'_> {
        let Self { wake, armed_by, record, obeyed, .. } = self;
        Marks { wake, armed_by, record, obeyed }
    }
    fn obeyed(&self) -> &[u64] {
        &self.obeyed
    }
}

impl Config {
    /// A config without versions.
    pub fn new(namespace: &str, name: &str, now: Timestamp) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            began: now,
            observed: 0,
            latest: 0,
            oldest: 1,
            last: None,
            pending: None,
            active: None,
            previous: None,
            paused: None,
            spec_paused: false,
            suspended: None,
            pins: BTreeMap::new(),
            watch: Watch::default(),
            settling: None,
            dismissed: None,
            alarms: BTreeMap::new(),
            obeyed: vec![],
            condition: Condition::default(),
            deleted: false,
            wake: None,
            armed_by: 0,
            record: None,
        }
    }

    /// The deployment that has not ended.
    pub fn in_flight(&self) -> Option<&Deployment> {
        self.last.as_ref().filter(|last| !last.status.is_final())
    }

    /// Whether it is deleted, and nothing runs any more.
    pub fn over(&self) -> bool {
        self.deleted && self.in_flight().is_none()
    }

    /// The name of a version.
    pub fn version_name(&self, n: u64) -> String {
        format!("{}-{n}", self.name)
    }
}

/// A complete version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// The number of the version.
    #[serde(rename = "n")]
    pub n: u64,
    /// The hash of the snapshot.
    #[serde(rename = "h")]
    pub snapshot: u64,
    /// When it was complete.
    #[serde(rename = "t")]
    pub at: Timestamp,
    /// The hash of the template with its images. 0: the version was complete before hashes were stored.
    #[serde(rename = "c", default, skip_serializing_if = "is_zero")]
    pub content: u64,
    /// The images by container. Empty: the version was complete before images were stored.
    #[serde(rename = "i", default, skip_serializing_if = "Images::is_empty")]
    pub images: Images,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// An image that a command has resolved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// The image that the manifest named then.
    #[serde(rename = "w", default)]
    pub was: String,
    /// The image that the command has named.
    #[serde(rename = "i")]
    pub image: String,
}

/// A change that is about to become a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settling {
    /// The hash of what would be deployed.
    #[serde(rename = "h")]
    pub template: u64,
    /// When the first change happened.
    #[serde(rename = "s")]
    pub since: Timestamp,
    /// When it becomes a version, if nothing else changes. 0: that time has passed, and it waits for what runs.
    #[serde(rename = "d")]
    pub due: Timestamp,
    /// The causes of the version.
    #[serde(rename = "c", default)]
    pub causes: Vec<Why>,
}

/// A change that was cancelled before it became a version. No trigger deploys it until something else changes or somebody asks for
/// a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dismissed {
    /// The hash of what would be deployed.
    #[serde(rename = "h", default)]
    pub template: u64,
    /// The version of the definition then. The version that it asked for is cancelled, too.
    #[serde(rename = "v", default)]
    pub definition: i64,
}

/// Why the triggers do not fire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspension {
    /// Who suspended the triggers, when and why.
    #[serde(rename = "n")]
    pub note: Note,
    /// The version of the rollback that suspended them. 0: a person did.
    #[serde(rename = "v", default)]
    pub version: u64,
    /// The hash of the last change that did not become a version.
    #[serde(rename = "s", default)]
    pub suppressed: u64,
}
