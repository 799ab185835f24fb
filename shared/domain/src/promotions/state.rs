//! The state of a pipeline: its run, and one current promotion per environment. Closed promotions are history, kept as items of
//! their own.

use super::definition::Strategy;
use super::facts::{Order, With};
use crate::address::Address;
use crate::condition::Condition;
use crate::ids::{RecordId, SubjectId, hash64};
use crate::level::{Level, Marks};
use crate::note::Note;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// At most this many revisions are remembered as abandoned; the oldest are forgotten first.
pub const MAX_ABANDONED: usize = 50;

/// At most this many attempts of an environment are being taken back; the oldest ones become history ([`NOT_TAKEN_BACK`]).
pub const MAX_CLOSING: usize = 20;
/// Why a promotion is abandoned whose pull request was closed, or whose sequence was aborted.
pub const CLOSED: &str = "Closed";
/// Why a promotion waits whose pull request is open.
pub const REQUEST_OPEN: &str = "PullRequestOpen";
/// Why a promotion is abandoned whose repository has been gone for a while.
pub const MISSING: &str = "Missing";
/// Why a promotion is history although what it has open could not be closed.
pub const NOT_TAKEN_BACK: &str = "NotTakenBack";

/// A pipeline.
#[derive(Debug, Clone, PartialEq)]
pub struct Pipeline {
    /// The project it belongs to.
    pub namespace: String,
    /// Its name there.
    pub name: String,
    /// When it was first applied.
    pub began: Timestamp,
    /// The run: the revision that is carried through.
    pub run: Option<Run>,
    /// The number of the last run before the pipeline was deleted.
    pub past_runs: u64,
    /// By environment; the first one has no promotion.
    pub environments: BTreeMap<String, Environment>,
    /// Nobody promotes anything until it is resumed.
    pub suspended: Option<Note>,
    /// Revisions that are not promoted in any run.
    pub abandoned: Vec<String>,
    /// The ids of the last commands that were obeyed ([`Note::id`]), oldest first. A copy of one of them does nothing.
    pub obeyed: Vec<u64>,
    /// What the last evaluation found, for people.
    pub condition: Condition,
    /// It was deleted: what is open is closed, then it ends.
    pub deleted: bool,
    /// The one pending wake-up.
    pub wake: Option<Timestamp>,
    /// The message that set it ([`crate::cause::Cause::id`]): only a redelivery of that message schedules it again.
    pub armed_by: u64,
    /// The record of the last transition that had one.
    pub record: Option<RecordId>,
}

impl Level for Pipeline {
    type Order = Order;
    type With = With;

    fn id(&self) -> SubjectId {
        SubjectId(hash64(&[b"pipeline", self.namespace.as_bytes(), self.name.as_bytes()]))
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

impl Pipeline {
    /// A pipeline that has observed nothing.
    pub fn new(namespace: &str, name: &str, now: Timestamp) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            began: now,
            run: None,
            past_runs: 0,
            environments: BTreeMap::new(),
            suspended: None,
            abandoned: vec![],
            obeyed: vec![],
            condition: Condition::default(),
            deleted: false,
            wake: None,
            armed_by: 0,
            record: None,
        }
    }

    /// The environments with a target that cannot be read, and why.
    pub fn unreadable(&self) -> impl Iterator<Item = (&str, &str)> {
        self.environments.iter().filter_map(|(name, state)| Some((name.as_str(), state.unreadable.as_deref()?)))
    }

    /// Whether it is deleted, and nothing is left to close.
    pub fn over(&self) -> bool {
        self.deleted && self.environments.values().all(|environment| environment.closing.is_empty())
    }
}

/// A revision on its way through the pipeline. A run begins each time the revision changes, so a revision that comes back is promoted
/// again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// 1, 2, 3, …
    #[serde(rename = "n")]
    pub number: u64,
    /// What is carried through.
    #[serde(rename = "r")]
    pub revision: String,
    /// When it began.
    #[serde(rename = "t")]
    pub since: Timestamp,
    /// Who set the revision; empty: that is not known.
    #[serde(rename = "b", default, skip_serializing_if = "Vec::is_empty")]
    pub authors: Vec<String>,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

fn is_none(n: &u32) -> bool {
    *n == 0
}

/// An environment of a pipeline.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// The promotion into it that is current.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub promotion: Option<Promotion>,
    /// Attempts that are being taken back.
    #[serde(rename = "c", default, skip_serializing_if = "Vec::is_empty")]
    pub closing: Vec<Closing>,
    /// The revision it stays on.
    #[serde(rename = "h", default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<(String, Note)>,
    /// It was removed from the pipeline in this run; how often its next promotion counts as attempted anew.
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    pub removed: Option<(u64, u32)>,
    /// The last run whose revision all its targets ran and were healthy on.
    #[serde(rename = "ps", default, skip_serializing_if = "Option::is_none")]
    pub passed: Option<u64>,
    /// Why one of its targets cannot be read.
    #[serde(rename = "ur", default, skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
    /// The revision on which all its targets are healthy, and since when.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub healthy: Option<(String, Timestamp)>,
}

/// The promotion of a revision into an environment, in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Promotion {
    /// The run.
    #[serde(rename = "n")]
    pub run: u64,
    /// What is promoted.
    #[serde(rename = "r")]
    pub revision: String,
    /// Where it is in its life.
    #[serde(rename = "s")]
    pub phase: Phase,
    /// When it was found to be needed.
    #[serde(rename = "t")]
    pub since: Timestamp,
    /// How often it was attempted; the number of the present or last attempt.
    #[serde(rename = "a", default)]
    pub attempt: u32,
    /// How often a person had it attempted anew: part of the identity of what an attempt makes.
    #[serde(rename = "g", default)]
    pub again: u32,
    /// When it was last attempted.
    #[serde(rename = "at", default, skip_serializing_if = "Option::is_none")]
    pub attempted: Option<Timestamp>,
    /// Until then the attempt belongs to whoever carries it out; after a failure, when it is attempted again.
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
    /// How many attempts in a row got nowhere: the pause after each is longer.
    #[serde(rename = "fl", default, skip_serializing_if = "is_none")]
    pub fruitless: u32,
    /// Somebody carries out the attempt.
    #[serde(rename = "k", default)]
    pub claimed: bool,
    /// All targets have been healthy on it in this run.
    #[serde(rename = "ok", default)]
    pub completed: bool,
    /// All targets run it and are healthy, although the promotion failed: that alone does not make it succeed.
    #[serde(rename = "cf", default, skip_serializing_if = "std::ops::Not::not")]
    pub contested: bool,
    /// The hash of what was told last about looks that fail: a copy of it tells nothing.
    #[serde(rename = "uo", default, skip_serializing_if = "is_zero")]
    pub unseen: u64,
    /// Its host was asked since whether it was merged late.
    #[serde(rename = "aq", default, skip_serializing_if = "std::ops::Not::not")]
    pub asked: bool,
    /// Who approved it.
    #[serde(rename = "ap", default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<Note>,
    /// It does not need (any more) approval.
    #[serde(rename = "y", default)]
    pub approved: bool,
    /// When people were last reminded that it waits for approval.
    #[serde(rename = "re", default, skip_serializing_if = "Option::is_none")]
    pub reminded: Option<Timestamp>,
    /// How the present attempt is carried out; a changed definition applies to the next one.
    #[serde(rename = "st", default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Strategy>,
    /// What the attempt made.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Made>,
    /// Why it is as it is: a word for machines, a sentence for people.
    #[serde(rename = "w", default)]
    pub why: Condition,
}

impl Promotion {
    /// A promotion that was found to be needed just now.
    pub(super) fn needed(run: &Run, approved: bool, now: Timestamp) -> Self {
        Self {
            run: run.number,
            revision: run.revision.clone(),
            phase: Phase::Waiting,
            since: now,
            attempt: 0,
            again: 0,
            attempted: None,
            due: None,
            fruitless: 0,
            claimed: false,
            completed: false,
            contested: false,
            asked: false,
            unseen: 0,
            approvals: vec![],
            approved,
            reminded: None,
            strategy: None,
            effect: None,
            why: Condition::default(),
        }
    }
}

impl Promotion {
    /// Whether what it made ended badly: its sequence failed, its pull request was closed. A person who gave it up has decided otherwise.
    pub fn ended_badly(&self) -> bool {
        match self.phase {
            Phase::Failed => self.due.is_none() && self.effect.is_some(),
            Phase::Abandoned => self.why.reason == CLOSED,
            _ => false,
        }
    }

    /// Whether its pull request is open, and has not been looked at for a while because the host refuses.
    pub fn is_unobserved(&self) -> bool {
        let request = matches!(self.effect, Some(Made::PullRequest { .. }));
        self.phase == Phase::Created && request && self.why.reason != REQUEST_OPEN
    }

    /// Whether what it made is looked at: it is open, or it may have been merged late. The host is asked about that once.
    pub fn is_watched(&self) -> bool {
        self.phase == Phase::Created || self.contested && self.ended_badly() && !self.asked
    }
}

/// Where a promotion is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Phase {
    /// A gate is closed: approval, soak, window, hold, suspension.
    Waiting,
    /// An attempt is on its way.
    Attempting,
    /// The attempt made something that takes its time: a pull request is open, a sequence runs.
    Created,
    /// The attempt failed; it is repeated when due.
    Failed,
    /// Done.
    Succeeded,
    /// The pull request was closed, or a person gave it up: no further attempt in this run.
    Abandoned,
    /// A person rejected it: no further attempt in this run.
    Rejected,
}

impl Phase {
    /// Whether it never changes again, unless a person asks for another attempt.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Abandoned | Self::Rejected)
    }
}

/// What an attempt made outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Made {
    /// A pull request.
    PullRequest {
        /// Its number at the host.
        number: u64,
        /// Where people find it.
        url: String,
        /// Its branch.
        branch: String,
        /// The newest commit of the branch, as Keelway wrote it.
        head: String,
        /// Whether the host could merge it, as far as it says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mergeable: Option<bool>,
    },
    /// A delivery.
    Sequence {
        /// Its context.
        context: String,
    },
    /// A notification.
    Notification {
        /// Its id.
        id: String,
    },
}

/// An attempt that is being taken back: its pull request is closed, once nobody can be working on it any more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Closing {
    /// As it was when it was given up.
    #[serde(rename = "p")]
    pub promotion: Promotion,
    /// Not before: until then, somebody may still be making the pull request.
    #[serde(rename = "d")]
    pub due: Timestamp,
    /// How often closing was tried.
    #[serde(rename = "n", default)]
    pub tries: u32,
    /// It was ordered, and nobody has told how it went yet.
    #[serde(rename = "o", default, skip_serializing_if = "std::ops::Not::not")]
    pub ordered: bool,
    /// Since when it has failed.
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    pub failing: Option<Timestamp>,
    /// What the comment says.
    #[serde(rename = "m")]
    pub comment: String,
    /// The promotion has left the state like this: it becomes history when it is known what became of what it has open.
    #[serde(rename = "g", default, skip_serializing_if = "Option::is_none")]
    pub gone: Option<(Phase, Condition)>,
}
