//! Strategies that Keelway carries out for another deployer. `customParams` beside `Recreate`, `Rolling` or `Canary` name a
//! deployer of the user's for that strategy. That deployer holds the claim, and may order Keelway to carry the strategy out up to a
//! share of the requests, or to its end. Keelway's own deployer then takes its usual steps, with a claim of its own inside the
//! other one.
//!
//! If the deployment fails afterwards, for whatever reason, Keelway reverts its changes first; only then has the deployment failed.

use super::deployment::{Cancel, Claim, MAX_CHECKPOINT, Report};
use super::facts::TAKE_UP;
use crate::level::Refused;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// 100 percent of the requests: the end of every strategy.
pub const WHOLE: u8 = 100;

/// The part of a strategy that Keelway carries out for the deployer that holds the claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The share of the requests that the new version is to get, in percent. [`WHOLE`]: to the end of the strategy.
    #[serde(rename = "u")]
    pub until: u8,
    /// When Keelway's own deployer was last ordered to continue. `None`: not yet.
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    pub ordered: Option<Timestamp>,
    /// The claim of Keelway's own deployer.
    #[serde(rename = "k", default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    /// The checkpoint of Keelway's own deployer.
    #[serde(rename = "c", default, skip_serializing_if = "String::is_empty")]
    pub checkpoint: String,
    /// The progress, in words for people.
    #[serde(rename = "m", default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The result. After a success, the deployer may ask for more.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Report>,
    /// Why the deployment is to fail. Keelway's changes are reverted first.
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    pub back: Option<Cancel>,
}

impl Part {
    /// Asks for a share of the requests.
    pub(super) fn ask(known: &mut Option<Self>, until: u8) {
        let until = until.min(WHOLE);
        match known {
            // The same share or a smaller one was asked for before; after a failure, nothing more follows.
            Some(part) if part.has_failed() || until <= part.until => {}
            Some(part) => {
                part.until = until;
                part.open();
            }
            None => {
                let (ordered, claim, report, back) = (None, None, None, None);
                *known = Some(Self { until, ordered, claim, checkpoint: String::new(), message: String::new(), report, back });
            }
        }
    }

    /// Starts a new round of Keelway's own deployer. Reports of earlier steps do not count any more.
    fn open(&mut self) {
        (self.ordered, self.claim, self.report) = (None, None, None);
    }

    /// Makes the deployment fail, after Keelway's changes are reverted.
    pub(super) fn go_back(&mut self, why: Cancel) {
        self.open();
        self.back = Some(why);
    }

    /// Whether Keelway's own deployer has something to do.
    pub fn is_open(&self) -> bool {
        self.report.is_none()
    }

    /// Whether the part ended without success. The changes are reverted then, as far as possible.
    pub fn has_failed(&self) -> bool {
        self.report.as_ref().is_some_and(|report| report.exit != Some(0))
    }

    /// Whether an evaluation has something to do for this part.
    pub(super) fn is_untold(&self) -> bool {
        if self.is_open() { self.ordered.is_none() } else { self.back.is_some() }
    }

    /// Keelway's own deployer takes its next step. The same claim gets a new token each time, so reports of earlier steps do not
    /// count any more.
    pub(super) fn take(&mut self, claim: Claim) -> Result<(), Refused> {
        if !self.is_open() {
            return Err(Refused::Conflict("nothing more of the strategy is asked for".into()));
        }
        self.claim = Some(match self.claim.take() {
            Some(held) => Claim { at: held.at, running: held.running, ..claim },
            None => claim,
        });
        Ok(())
    }

    /// Stores the checkpoint of Keelway's own deployer.
    pub(super) fn keep(&mut self, checkpoint: &str, message: &str) {
        if !checkpoint.is_empty() && checkpoint.len() <= MAX_CHECKPOINT {
            checkpoint.clone_into(&mut self.checkpoint);
        }
        if !message.is_empty() {
            message.clone_into(&mut self.message);
        }
    }

    /// When Keelway's own deployer must be ordered again, unless it is heard of before.
    pub(super) fn overdue_at(&self) -> Timestamp {
        let ordered = self.ordered.map(|at| at + TAKE_UP);
        let lease = self.claim.as_ref().map(|claim| claim.lease).filter(|_| ordered.is_some());
        ordered.max(lease).unwrap_or_default()
    }
}
