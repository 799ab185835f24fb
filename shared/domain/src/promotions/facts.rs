//! The inputs and the results of a decision.

use super::definition::{Definition, Strategy};
use super::observe::Observations;
use super::state::{Made, Phase, Pipeline, Promotion};
use crate::cause::Cause;
use crate::condition::Condition;
use crate::ids::hash64;
use crate::level;
use crate::note::Note;
use crate::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};

/// So long whoever carries out an attempt keeps it after the last heartbeat.
pub const LEASE: Span = Span::seconds(45);
/// So often whoever carries out an attempt says that it goes on.
pub const HEARTBEAT: Span = Span::seconds(15);
/// The pause before an attempt that got somewhere goes on.
pub const SOON: Span = Span::seconds(1);
/// So long a closing that was ordered is waited for, until it counts as one that failed.
pub const CLOSING: Span = Span::seconds(60);
/// After this time without anybody who began it, an attempt's message is taken for lost.
pub const PICK_UP: Span = Span::minutes(5);
/// The first pause after a failure; it doubles with each further one.
pub const BACKOFF: Span = Span::seconds(30);
/// The longest pause between failures.
pub const BACKOFF_MOST: Span = Span::minutes(60);
/// The pause after a failure that only a changed repository or definition ends.
pub const PATIENCE: Span = Span::minutes(6 * 60);

/// What has not been taken back for so long is tried again once in so long only.
pub const DAILY: Span = Span::minutes(24 * 60);
/// For so long is tried to take back what a deleted pipeline has open.
pub const DELETED_PATIENCE: Span = Span::minutes(7 * 24 * 60);

/// An attempt: the promotion of a revision into an environment in a run, and how often it has been tried.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Attempt {
    /// Into which environment.
    pub environment: String,
    /// In which run.
    pub run: u64,
    /// Which revision.
    pub revision: String,
    /// Which attempt.
    pub attempt: u32,
    /// How often a person had it attempted anew.
    #[serde(default)]
    pub again: u32,
}

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

    /// Whether it belongs to this promotion.
    pub fn is_of(&self, promotion: &Promotion) -> bool {
        (self.run, self.again, &self.revision) == (promotion.run, promotion.again, &promotion.revision)
    }

    /// What its effect is known by outside: the same for all its attempts, so that an effect is found before it is made again.
    pub fn identity(&self, namespace: &str, name: &str) -> u64 {
        let parts = [namespace, name, self.environment.as_str(), self.revision.as_str()].map(str::as_bytes);
        hash64(&[b"promotion", parts[0], parts[1], parts[2], parts[3], &self.run.to_be_bytes(), &self.again.to_be_bytes()])
    }
}

/// How an attempt ended, as the one who carried it out says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// It did what there was to do at once.
    Done(Made),
    /// It made something that takes its time.
    Created(Made),
    /// There was nothing to do: the repository already has the revision.
    Nothing(Condition),
    /// It failed.
    Failed {
        /// Why.
        why: Condition,
        /// When it may be repeated.
        retry: Retry,
    },
}

/// When a failed attempt may be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Retry {
    /// Soon, then less and less often.
    Backoff,
    /// At once: it got somewhere, and goes on where it stopped.
    Soon,
    /// Not before this time: the host said so.
    At(Timestamp),
    /// Somebody must change something first.
    Patience,
    /// Only when a person asks.
    Never,
}

/// The state of what an attempt made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Seen {
    /// It is open.
    Open(Made),
    /// It was merged, or it passed.
    Succeeded(String),
    /// It was closed without being merged, or aborted.
    Closed(String),
    /// It ended badly; only a person has it attempted again.
    Failed(String),
    /// It could not be looked at for a while.
    Unobserved(Condition),
    /// Its repository has been gone for a while.
    Missing(String),
}

/// How taking an attempt back went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Closed {
    /// It is closed, or there was nothing to close.
    Closed,
    /// It was merged before.
    Merged(String),
    /// It could not be closed now; not again before this time, if the host said one.
    Failed(Option<Timestamp>),
}

/// What a person or a tool asks of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Command {
    /// Approve a revision for an environment.
    Approve(At),
    /// Reject it there.
    Reject(At),
    /// Begin no attempt until resumed.
    Suspend,
    /// Go on.
    Resume,
    /// Keep an environment on a revision.
    Hold(At),
    /// Let it go on.
    Release(String),
    /// Promote a revision nowhere any more.
    Abandon(String),
    /// Promote a revision into one environment no more in this run.
    GiveUp(At),
    /// Attempt once more what failed, was abandoned or was taken back.
    Retry(String),
    /// Take the present attempt back.
    Abort(String),
    /// Take a promotion that failed for a success: its targets run the revision and are healthy.
    Accept(At),
}

/// A revision in an environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct At {
    /// The environment.
    pub environment: String,
    /// The revision.
    pub revision: String,
}

/// An input to a pipeline.
#[derive(Debug, Clone, Copy)]
pub enum Input<'a> {
    /// Something it depends on may have changed: an observation, the definition, the time.
    Evaluate,
    /// The wake-up armed for this time.
    Wake(Timestamp),
    /// Somebody is about to carry out an attempt.
    Begin(&'a Attempt),
    /// Whoever carries it out goes on with it.
    Beat(&'a Attempt),
    /// Somebody has carried it out.
    Ended(&'a Attempt, &'a Outcome),
    /// Somebody looked at what it made.
    Seen(&'a Attempt, &'a Seen),
    /// Somebody tried to take it back.
    Closed(&'a Attempt, &'a Closed),
    /// A person or a tool asks.
    Command(&'a Command, &'a Note),
}

/// What a decision reads in addition to the state.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// Now.
    pub now: Timestamp,
    /// The message at hand.
    pub cause: Cause,
    /// The definition in force; none: the pipeline was deleted.
    pub definition: Option<&'a Definition>,
    /// The newest fact about each target.
    pub observations: &'a Observations,
}

/// What a commit has done by somebody else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Order {
    /// Carry out this attempt.
    Attempt(Attempt),
    /// Take it back, if it is still open.
    Close(Attempt),
}

/// A promotion that has left the state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Past {
    /// Of which environment.
    pub environment: String,
    /// As it was last.
    pub promotion: Promotion,
    /// When it left.
    pub at: Timestamp,
}

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
