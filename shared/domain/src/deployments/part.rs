//! The strategy on behalf of another deployer. `customParams` beside `Recreate`, `Rolling` or `Canary` name a deployer of one's own for
//! that strategy. It holds the claim, and may ask Keelway for a part of the way: until the new version gets a share of the requests, or to
//! the strategy's end. Keelway's own deployer takes its steps then as it does otherwise, with a claim of its own inside the other one's.
//!
//! What Keelway has changed, it takes back if the deployment fails afterwards, for whatever reason. Only then has the deployment failed.

use super::deployment::{Cancel, Claim, MAX_CHECKPOINT, Report};
use super::facts::TAKE_UP;
use crate::level::Refused;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// All requests; as far as a strategy goes.
pub const WHOLE: u8 = 100;

/// What Keelway carries out of a strategy for the deployer that holds the claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// It goes so far: the share of the requests that the new version gets, in percent. [`WHOLE`]: to the strategy's end.
    #[serde(rename = "u")]
    pub until: u8,
    /// When Keelway's own deployer was last told to go on; `None`: it was not told yet.
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    pub ordered: Option<Timestamp>,
    /// The claim of Keelway's own deployer.
    #[serde(rename = "k", default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    /// Where it is.
    #[serde(rename = "c", default, skip_serializing_if = "String::is_empty")]
    pub checkpoint: String,
    /// How far it is, for people.
    #[serde(rename = "m", default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// How it ended. Unless it failed, more may be asked for.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Report>,
    /// The deployment is to fail, and this is why: what was changed is taken back first.
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    pub back: Option<Cancel>,
}

impl Part {
    /// Asks for a part of the way, or for more of it.
    pub(super) fn ask(known: &mut Option<Self>, until: u8) {
        let until = until.min(WHOLE);
        match known {
            // What was asked for before, or less, is on its way or done; after a failure, nothing more follows.
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

    /// Keelway's own deployer is told anew. Steps that it took before count no more: what they say was about something else.
    fn open(&mut self) {
        (self.ordered, self.claim, self.report) = (None, None, None);
    }

    /// The deployment is to fail: what was changed is taken back first.
    pub(super) fn go_back(&mut self, why: Cancel) {
        self.open();
        self.back = Some(why);
    }

    /// Whether Keelway is at it.
    pub fn is_open(&self) -> bool {
        self.report.is_none()
    }

    /// Whether it ended without success. Then everything is back where it was, as far as that was possible.
    pub fn has_failed(&self) -> bool {
        self.report.as_ref().is_some_and(|report| report.exit != Some(0))
    }

    /// Whether an evaluation has something to do for it.
    pub(super) fn is_untold(&self) -> bool {
        if self.is_open() { self.ordered.is_none() } else { self.back.is_some() }
    }

    /// Keelway's own deployer takes its next step: the same claim again has a new token, so that earlier steps count no more.
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

    /// Keelway's own deployer says where it is.
    pub(super) fn keep(&mut self, checkpoint: &str, message: &str) {
        if !checkpoint.is_empty() && checkpoint.len() <= MAX_CHECKPOINT {
            checkpoint.clone_into(&mut self.checkpoint);
        }
        if !message.is_empty() {
            message.clone_into(&mut self.message);
        }
    }

    /// When Keelway's own deployer must be told again, if nothing is heard of it.
    pub(super) fn overdue_at(&self) -> Timestamp {
        let ordered = self.ordered.map(|at| at + TAKE_UP);
        let lease = self.claim.as_ref().map(|claim| claim.lease).filter(|_| ordered.is_some());
        ordered.max(lease).unwrap_or_default()
    }
}
