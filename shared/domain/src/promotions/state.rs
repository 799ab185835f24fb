//! The state of a pipeline: its run, and one current promotion for each environment. Promotions that have ended are separate items.

use super::definition::Strategy;
use super::evaluation::Evaluation;
use super::facts::{Order, With};
use crate::address::Address;
use crate::condition::Condition;
use crate::ids::{RecordId, SubjectId, hash64};
use crate::level::{Level, Marks};
use crate::note::Note;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The most abandoned revisions that are remembered. The oldest are forgotten first.
pub const MAX_ABANDONED: usize = 50;

/// The most attempts of an environment that are being taken back. The oldest become history ([`NOT_TAKEN_BACK`]).
pub const MAX_CLOSING: usize = 20;
/// A pipeline whose runs return so often in succession to the revision before the last is suspended: two pipelines that promote
/// back what the other one has promoted would exchange two revisions for ever.
pub const MAX_RETURNS: u32 = 10;
/// The reason of a promotion that was abandoned because its pull request was closed or its sequence aborted.
pub const CLOSED: &str = "Closed";
/// The reason of a promotion that waits for its open pull request.
pub const REQUEST_OPEN: &str = "PullRequestOpen";
/// The reason of a promotion that was abandoned because its repository is missing.
pub const MISSING: &str = "Missing";
/// The reason of a promotion in the history whose pull request could not be closed.
pub const NOT_TAKEN_BACK: &str = "NotTakenBack";

/// The state of a pipeline.
#[derive(Debug, Clone, PartialEq)]
pub struct Pipeline {
    /// The project it belongs to.
    pub namespace: String,
    /// Its name there.
    pub name: String,
    /// When it was first applied.
    pub began: Timestamp,
    /// The present run.
    pub run: Option<Run>,
    /// The number of the last run before the pipeline was deleted.
    pub past_runs: u64,
    /// The environments by name. The first one has no promotion.
    pub environments: BTreeMap<String, Environment>,
    /// Who suspended the pipeline, and why. No attempts begin until it is resumed.
    pub suspended: Option<Note>,
    /// Revisions that no run promotes.
    pub abandoned: Vec<String>,
    /// The ids of the last commands that were obeyed ([`Note::id`]), oldest first. A copy of one of them does nothing.
    pub obeyed: Vec<u64>,
    /// What the last evaluation found, for people.
    pub condition: Condition,
    /// Whether it was deleted: what is open is closed, then the pipeline ends.
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
    /// A pipeline without observations.
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

/// A revision on its way through the pipeline. Each change of the revision begins a new run, so a revision that comes back is
/// promoted again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// 1, 2, 3, …
    #[serde(rename = "n")]
    pub number: u64,
    /// The revision that is promoted.
    #[serde(rename = "r")]
    pub revision: String,
    /// When it began.
    #[serde(rename = "t")]
    pub since: Timestamp,
    /// The identities of the revision's authors. Empty: they are not known.
    #[serde(rename = "b", default, skip_serializing_if = "Vec::is_empty")]
    pub authors: Vec<String>,
    /// The revision of the run before. Empty: there was none.
    #[serde(rename = "p", default, skip_serializing_if = "String::is_empty")]
    pub before: String,
    /// How many runs in succession, up to this one, returned to the revision of the run before the last.
    #[serde(rename = "k", default, skip_serializing_if = "is_none")]
    pub returns: u32,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

fn is_none(n: &u32) -> bool {
    *n == 0
}

/// The state of an environment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// The current promotion into it.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub promotion: Option<Promotion>,
    /// Attempts that are being taken back.
    #[serde(rename = "c", default, skip_serializing_if = "Vec::is_empty")]
    pub closing: Vec<Closing>,
    /// The revision that it is held on, with the command.
    #[serde(rename = "h", default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<(String, Note)>,
    /// The environment was removed from the pipeline in this run; and how many new attempts its next promotion counts.
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    pub removed: Option<(u64, u32)>,
    /// The last run whose revision all targets were healthy on.
    #[serde(rename = "ps", default, skip_serializing_if = "Option::is_none")]
    pub passed: Option<u64>,
    /// Why a target cannot be read.
    #[serde(rename = "ur", default, skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
    /// The revision that all targets are healthy on, and since when.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub healthy: Option<(String, Timestamp)>,
    /// The evaluation of that revision over its soak time.
    #[serde(rename = "ev", default, skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<Evaluation>,
}

/// The promotion of a revision into an environment in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Promotion {
    /// The number of the run.
    #[serde(rename = "n")]
    pub run: u64,
    /// The revision that is promoted.
    #[serde(rename = "r")]
    pub revision: String,
    #[expect(missing_docs, reason = "the name says it")]
    #[serde(rename = "s")]
    pub phase: Phase,
    /// When it became necessary.
    #[serde(rename = "t")]
    pub since: Timestamp,
    /// The number of the present or last attempt.
    #[serde(rename = "a", default)]
    pub attempt: u32,
    /// How often a person has ordered a new attempt after an end: a part of the identity of the effect.
    #[serde(rename = "g", default)]
    pub again: u32,
    /// When the last attempt was ordered.
    #[serde(rename = "at", default, skip_serializing_if = "Option::is_none")]
    pub attempted: Option<Timestamp>,
    /// During an attempt: when its worker's lease ends. After a failure: when the next attempt is due.
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
    /// The number of attempts in a row without progress. The pause after each is longer.
    #[serde(rename = "fl", default, skip_serializing_if = "is_none")]
    pub fruitless: u32,
    /// Whether a worker has begun the attempt.
    #[serde(rename = "k", default)]
    pub claimed: bool,
    /// Whether all targets have been healthy on the revision in this run.
    #[serde(rename = "ok", default)]
    pub completed: bool,
    /// When it was over: all targets had been healthy on the revision, or it had ended otherwise.
    #[serde(rename = "dn", default, skip_serializing_if = "Option::is_none")]
    pub done: Option<Timestamp>,
    /// Whether all targets are healthy on the revision although the promotion failed. It then needs a success of its own.
    #[serde(rename = "cf", default, skip_serializing_if = "std::ops::Not::not")]
    pub contested: bool,
    /// The hash of the last report about failed looks. A copy of that report is not published again.
    #[serde(rename = "uo", default, skip_serializing_if = "is_zero")]
    pub unseen: u64,
    /// Whether the host was asked whether the pull request was merged late.
    #[serde(rename = "aq", default, skip_serializing_if = "std::ops::Not::not")]
    pub asked: bool,
    /// The approvals so far.
    #[serde(rename = "ap", default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<Note>,
    /// Whether it needs no (more) approval.
    #[serde(rename = "y", default)]
    pub approved: bool,
    /// When people were last reminded of the approval.
    #[serde(rename = "re", default, skip_serializing_if = "Option::is_none")]
    pub reminded: Option<Timestamp>,
    /// The strategy of the present attempt. A changed definition applies to the next one.
    #[serde(rename = "st", default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Strategy>,
    /// The effect of the attempt.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Made>,
    /// The reason of its state, for machines and for people.
    #[serde(rename = "w", default)]
    pub why: Condition,
}

impl Promotion {
    /// A promotion that has just become necessary.
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
            done: None,
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
    /// Whether its effect failed: the sequence failed, or the pull request was closed. A promotion that a person gave up is none of
    /// these.
    pub fn ended_badly(&self) -> bool {
        match self.phase {
            Phase::Failed => self.due.is_none() && self.effect.is_some(),
            Phase::Abandoned => self.why.reason == CLOSED,
            _ => false,
        }
    }

    /// Whether nothing more is done for it: its revision runs, or it ended otherwise. One that succeeded waits for the rollout.
    pub fn is_over(&self) -> bool {
        match self.phase {
            Phase::Succeeded => self.completed,
            Phase::Failed => self.due.is_none(),
            Phase::Abandoned | Phase::Rejected => true,
            Phase::Waiting | Phase::Attempting | Phase::Created => false,
        }
    }

    /// Whether its pull request is open, and could not be read for a while because the host refuses.
    pub fn is_unobserved(&self) -> bool {
        let request = matches!(self.effect, Some(Made::PullRequest { .. }));
        self.phase == Phase::Created && request && self.why.reason != REQUEST_OPEN
    }

    /// Whether the state of its effect is read: it is open, or it may have been merged late. The host is asked about the latter
    /// once.
    pub fn is_watched(&self) -> bool {
        self.phase == Phase::Created || self.contested && self.ended_badly() && !self.asked
    }
}

/// The phase of a promotion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Phase {
    /// A gate is closed: approval, soak, window, hold, suspension.
    Waiting,
    /// An attempt was ordered or is in progress.
    Attempting,
    /// The effect exists and takes its time: a pull request is open, or a sequence runs.
    Created,
    /// The attempt failed. Another one follows when it is due.
    Failed,
    /// The targets are healthy on the revision.
    Succeeded,
    /// The pull request was closed, or a person gave the promotion up: there are no more attempts in this run.
    Abandoned,
    /// A person rejected the revision: there are no more attempts in this run.
    Rejected,
}

impl Phase {
    /// Whether the phase is final unless a person orders another attempt.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Abandoned | Self::Rejected)
    }
}

/// The effect of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Made {
    /// A pull request.
    PullRequest {
        /// The number at the host.
        number: u64,
        /// The address for people.
        url: String,
        /// The name of the branch.
        branch: String,
        /// The newest commit of the branch that Keelway wrote.
        head: String,
        /// Whether the host could merge it. `None`: the host does not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mergeable: Option<bool>,
    },
    /// A sequence.
    Sequence {
        /// The context of the sequence.
        context: String,
    },
    /// A notification.
    Notification {
        /// The id of the notification.
        id: String,
    },
}

/// An attempt that is being taken back: its pull request is closed when no worker can be busy with it any more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Closing {
    /// The promotion at the time it was given up.
    #[serde(rename = "p")]
    pub promotion: Promotion,
    /// When it may be closed: a worker may create the pull request until then.
    #[serde(rename = "d")]
    pub due: Timestamp,
    /// The number of tries to close it.
    #[serde(rename = "n", default)]
    pub tries: u32,
    /// Whether a try was ordered whose result is not known yet.
    #[serde(rename = "o", default, skip_serializing_if = "std::ops::Not::not")]
    pub ordered: bool,
    /// Since when closing has failed.
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    pub failing: Option<Timestamp>,
    /// The text of the comment.
    #[serde(rename = "m")]
    pub comment: String,
    /// The final phase of a promotion that has left the state. It becomes history when the fate of its pull request is known.
    #[serde(rename = "g", default, skip_serializing_if = "Option::is_none")]
    pub gone: Option<(Phase, Condition)>,
}
