//! The inputs and results of a decision.

#![expect(missing_docs, reason = "names that say what they are need no documentation")]

use super::definition::{Definition, Strategy};
use super::evaluation::Evaluate;
use super::observe::Observations;
use super::state::{Made, Phase, Pipeline, Promotion};
use crate::cause::Cause;
use crate::condition::Condition;
use crate::evaluations::Answer;
use crate::ids::hash64;
use crate::level;
use crate::note::Note;
use crate::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};

/// How long an attempt belongs to its worker after the last heartbeat.
pub const LEASE: Span = Span::seconds(45);
/// The interval of a worker's heartbeats.
pub const HEARTBEAT: Span = Span::seconds(15);
/// The pause before an attempt that has made progress continues.
pub const SOON: Span = Span::seconds(1);
/// How long an ordered closing is waited for before it counts as failed.
pub const CLOSING: Span = Span::seconds(60);
/// How long the message of an attempt may go without a worker before it counts as lost.
pub const PICK_UP: Span = Span::minutes(5);
/// The pause after the first failure. It doubles with each further one.
pub const BACKOFF: Span = Span::seconds(30);
/// The longest pause between attempts that fail.
pub const BACKOFF_MOST: Span = Span::minutes(60);
/// The pause after a failure that only a changed repository or definition can mend.
pub const PATIENCE: Span = Span::minutes(6 * 60);

/// After this time without success, taking back is tried only once in this time.
pub const DAILY: Span = Span::minutes(24 * 60);
/// How long Keelway tries to take back what a deleted pipeline has open.
pub const DELETED_PATIENCE: Span = Span::minutes(7 * 24 * 60);

/// An attempt: the number of a try to promote a revision into an environment in a run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Attempt {
    pub environment: String,
    pub run: u64,
    pub revision: String,
    pub attempt: u32,
    /// How often a person has ordered a new attempt after an end.
    #[serde(default)]
    pub again: u32,
}

crate::stored!(Attempt);

impl Attempt {
    /// The present or last attempt of a promotion.
    pub fn of(environment: &str, promotion: &Promotion) -> Self {
        Self {
            environment: environment.to_owned(),
            run: promotion.run,
            revision: promotion.revision.clone(),
            attempt: promotion.attempt,
            again: promotion.again,
        }
    }

    /// Whether the attempt is one of this promotion.
    pub fn is_of(&self, promotion: &Promotion) -> bool {
        (self.run, self.again, &self.revision) == (promotion.run, promotion.again, &promotion.revision)
    }

    /// The identity of its effect, which is the same for all attempts of a promotion: an effect is searched for before it is made
    /// again.
    pub fn identity(&self, namespace: &str, name: &str) -> u64 {
        let parts = [namespace, name, self.environment.as_str(), self.revision.as_str()].map(str::as_bytes);
        hash64(&[b"promotion", parts[0], parts[1], parts[2], parts[3], &self.run.to_be_bytes(), &self.again.to_be_bytes()])
    }
}

/// The end of an attempt, as its worker reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AttemptResult {
    /// The effect is complete.
    Done(Made),
    /// The effect exists and takes its time.
    Created(Made),
    /// There was nothing to do: the repository already has the revision.
    Nothing(Condition),
    /// The attempt failed.
    Failed {
        /// The reason of the failure.
        why: Condition,
        /// When the next attempt may begin.
        retry: Retry,
    },
}

/// Why an attempt cannot be carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub why: Condition,
    /// When the next attempt may begin.
    pub retry: Retry,
}

impl From<Failure> for AttemptResult {
    fn from(Failure { why, retry }: Failure) -> Self {
        Self::Failed { why, retry }
    }
}

/// When a failed attempt may be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Retry {
    /// After a pause that grows with each failure.
    Backoff,
    /// At once: the attempt has made progress, and the next one continues there.
    Soon,
    /// Not before this time, which the host has set.
    At(Timestamp),
    /// After a change of the repository or the definition.
    Patience,
    /// When a person asks for it.
    Never,
}

/// The state of an attempt's effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Seen {
    /// It is open.
    Open(Made),
    /// It was merged, or its sequence passed.
    Succeeded(String),
    /// It was closed without a merge, or its sequence was aborted.
    Closed(String),
    /// It failed; only a person can order another attempt.
    Failed(String),
    /// The host has refused to say for a while.
    Unobserved(Condition),
    /// The repository has been missing for a while.
    Missing(String),
}

/// The result of taking an attempt back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Closed {
    /// It is closed, or nothing was open.
    Closed,
    /// It had been merged before.
    Merged(String),
    /// It could not be closed. The next try must not come before this time, if the host has set one.
    Failed(Option<Timestamp>),
}

/// A command of a person or a tool to a pipeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Command {
    /// Approve a revision for an environment.
    Approve(At),
    /// Reject a revision for an environment.
    Reject(At),
    /// Begin no attempts until the pipeline is resumed.
    Suspend,
    /// Resume the pipeline.
    Resume,
    /// Keep an environment on a revision.
    Hold(At),
    /// End the hold of an environment.
    Release(String),
    /// Promote a revision nowhere any more.
    Abandon(String),
    /// Do not promote a revision into an environment in this run.
    GiveUp(At),
    /// Order another attempt after a failure, an abandonment or an abort.
    Retry(String),
    /// Take the present attempt back.
    Abort(String),
    /// Accept a failed promotion as a success: its targets are healthy on the revision.
    Accept(At),
}

/// A revision in an environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct At {
    pub environment: String,
    pub revision: String,
}

/// An input to a pipeline.
#[derive(Debug, Clone, Copy)]
pub enum Input<'a> {
    /// Something that the pipeline depends on may have changed: an observation, the definition, the time.
    Evaluate,
    /// The wake-up for this time.
    Wake(Timestamp),
    /// A worker asks to begin an attempt.
    Begin(&'a Attempt),
    /// The heartbeat of an attempt's worker.
    Beat(&'a Attempt),
    /// An attempt has ended.
    Ended(&'a Attempt, &'a AttemptResult),
    /// The state of an attempt's effect was read.
    Seen(&'a Attempt, &'a Seen),
    /// A worker has tried to take an attempt back.
    Closed(&'a Attempt, &'a Closed),
    /// What the evaluation with this id came to, in this environment.
    Evaluated(&'a str, &'a str, &'a Answer),
    /// A command of a person or a tool.
    Command(&'a Command, &'a Note),
}

/// The inputs of a decision besides the state.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The time of the decision.
    pub now: Timestamp,
    /// The message at hand.
    pub cause: Cause,
    /// The definition in force. `None`: the pipeline was deleted.
    pub definition: Option<&'a Definition>,
    /// The newest fact about each target.
    pub observations: &'a Observations,
}

/// Work that a commit orders.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Order {
    /// Carry out this attempt.
    Attempt(Attempt),
    /// Take this attempt back, if its effect is still open.
    Close(Attempt),
    /// Evaluate an environment.
    Evaluate(Evaluate),
}

crate::recorded!(Order);

/// A promotion that is history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Past {
    pub environment: String,
    /// The last state of the promotion.
    pub promotion: Promotion,
    /// When it became history.
    pub at: Timestamp,
}

crate::stored!(Past);

/// What a commit writes beside the state.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct With {
    /// Promotions that left the state.
    pub past: Vec<Past>,
    /// The command that led to it.
    pub obeyed: Option<Obeyed>,
}

/// A command that was obeyed.
pub type Obeyed = level::Obeyed<Command>;

crate::stored!(Obeyed);

/// The decision about an input.
pub type Decision = level::Decision<Pipeline>;
/// A commit.
pub type Transition = level::Transition<Pipeline>;

/// Whether an attempt may have made something outside that takes its time, known or not.
pub(super) fn may_have_made(promotion: &Promotion) -> bool {
    let lasts = !matches!(promotion.strategy, Some(Strategy::Notification(_)) | None);
    lasts
        && match promotion.phase {
            // The message of the first attempt may still be on its way: nobody will begin that attempt any more.
            Phase::Attempting => promotion.claimed || promotion.attempt > 1,
            Phase::Waiting | Phase::Succeeded | Phase::Abandoned | Phase::Rejected => false,
            Phase::Created | Phase::Failed => true,
        }
}
