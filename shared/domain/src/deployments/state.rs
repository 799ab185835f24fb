//! The state of a deployment config: its numbers, its latest deployment, and what keeps it from cutting another one. Snapshots and
//! deployments that have ended are items of their own, and never change.

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
    /// The version that follows as soon as the last deployment has ended. A trigger's is not here: it is found again.
    pub pending: Option<Deployment>,
    /// The newest complete version.
    pub active: Option<Version>,
    /// The newest complete version below it that deploys something else.
    pub previous: Option<Version>,
    /// Nothing new is deployed until it is resumed.
    pub paused: Option<Note>,
    /// What the manifest said about pausing when it was last evaluated.
    pub spec_paused: bool,
    /// Triggers do not fire until they are resumed.
    pub suspended: Option<Suspension>,
    /// Images that were resolved for a manual deployment, by container; they count while the manifest says what it said then.
    pub pins: BTreeMap<String, Pin>,
    /// What is known of drift.
    pub watch: Watch,
    /// A change that is about to become a version.
    pub settling: Option<Settling>,
    /// The change that was cancelled before it became a version.
    pub dismissed: Option<Dismissed>,
    /// What was last told of the definition's alarms: since when each is on, or off. What is older changes nothing.
    pub alarms: BTreeMap<String, (bool, Timestamp)>,
    /// The ids of the last commands that were obeyed, oldest first. A copy of one of them does nothing.
    pub obeyed: Vec<u64>,
    /// What the last evaluation found, for people; empty: nothing is left to do.
    pub condition: Condition,
    /// It was deleted: what runs is cancelled, then it ends.
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
    /// A config that has deployed nothing.
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

/// A version that is complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// Its number.
    #[serde(rename = "n")]
    pub n: u64,
    /// Its snapshot.
    #[serde(rename = "h")]
    pub snapshot: u64,
    /// When it was complete.
    #[serde(rename = "t")]
    pub at: Timestamp,
    /// The hash of its template with its images; 0: it was complete before that was kept.
    #[serde(rename = "c", default, skip_serializing_if = "is_zero")]
    pub content: u64,
    /// Its images by container; empty: it was complete before they were kept.
    #[serde(rename = "i", default, skip_serializing_if = "Images::is_empty")]
    pub images: Images,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// An image that was resolved by hand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// What the manifest said then.
    #[serde(rename = "w", default)]
    pub was: String,
    /// The image.
    #[serde(rename = "i")]
    pub image: String,
}

/// A change that is about to become a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settling {
    /// The hash of what would be deployed.
    #[serde(rename = "h")]
    pub template: u64,
    /// When anything changed first.
    #[serde(rename = "s")]
    pub since: Timestamp,
    /// When it becomes a version, if nothing else changes.
    #[serde(rename = "d")]
    pub due: Timestamp,
    /// What changed; a version tells all of it.
    #[serde(rename = "c", default)]
    pub causes: Vec<Why>,
}

/// A change that somebody cancelled before it became a version: no trigger deploys it, until something else changes or somebody
/// asks for a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dismissed {
    /// The hash of what would be deployed.
    #[serde(rename = "h", default)]
    pub template: u64,
    /// The version of the definition then: what it asks for is cancelled, too.
    #[serde(rename = "v", default)]
    pub definition: i64,
}

/// Why triggers do not fire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspension {
    /// Who, when, and why.
    #[serde(rename = "n")]
    pub note: Note,
    /// The version that a rollback made; 0: a person suspended them.
    #[serde(rename = "v", default)]
    pub version: u64,
    /// The hash of the last change that did not become a version.
    #[serde(rename = "s", default)]
    pub suppressed: u64,
}
