//! The analysis of a version while it shares the requests of an alias with the version before: objectives of a quality gate, judged
//! in windows one after another, with the other version in the same window as what is compared with.
//!
//! Windows follow each other without gaps. A window that does not tell enough grows until it does, or until the deadline; so each
//! request counts once, and a function with few requests is judged by longer windows.

mod conclude;
mod report;

pub use super::part::WHOLE;
pub use conclude::{Seen, Spread, conclude};
pub use report::{Limit, Objective, Report, inconclusive};

use super::definition::Strategy;
use crate::evaluation::mann_whitney::Direction;
use crate::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};

/// The file of objectives, if the manifest names none.
pub const OBJECTIVES: &str = "slo.yaml";
/// The indicator that counts requests, if the manifest names none.
pub const SAMPLES: &str = "invocations";
/// How many requests a window needs, if the manifest does not say.
pub const MIN_SAMPLES: u64 = 50;
/// The length of a window, if the manifest does not say.
pub const INTERVAL: Span = Span::minutes(1);
/// How long a window may grow, if the manifest does not say.
pub const DEADLINE: Span = Span::minutes(10);

/// How a version is judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Analysis {
    /// The file of objectives, a resource of the project or of a service in a stage. `sli.yaml` is beside it.
    pub slo: String,
    /// The stage and the service whose files are read. Absent: those of the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<(String, String)>,
    /// The `MetricsSource`. Absent: the one that the project evaluates by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The length of a window.
    pub interval: Span,
    /// The indicator that counts requests.
    pub samples: String,
    /// How many of them a window needs, of each version that is looked at. 0: any number will do.
    pub min_samples: u64,
    /// How many windows may fail. One more, and the deployment fails.
    #[serde(default)]
    pub failure_limit: u32,
    /// How long a window may grow because it does not tell enough.
    pub deadline: Span,
    /// What happens then.
    #[serde(default)]
    pub on_inconclusive: OnInconclusive,
    /// Indicators whose values over time are compared with those of the version before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mann_whitney: Vec<Distribution>,
}

/// An indicator whose values since the version got its share are compared, minute by minute, by the Mann–Whitney U test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Distribution {
    /// The indicator.
    pub sli: String,
    /// Which change fails.
    #[serde(default)]
    pub direction: Direction,
}

/// The time of one value of a [`Distribution`].
pub const STEP: Span = Span::minutes(1);

/// What a window means that does not tell enough.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnInconclusive {
    /// The deployment holds, and a person decides. It goes on by itself if the window tells enough after all.
    #[default]
    Pause,
    /// The window passes.
    Pass,
    /// The deployment fails.
    Fail,
}

impl Strategy {
    /// The analysis, at a step that is judged: while the version before gets requests, too.
    pub fn judged(&self, weight: u8) -> Option<&Analysis> {
        self.analysis.as_ref().filter(|_| weight < WHOLE)
    }
}

/// Where the analysis of an attempt is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judging {
    /// When the new version got its present share.
    #[serde(rename = "s")]
    pub shifted: Timestamp,
    /// The beginning of the window.
    #[serde(rename = "f")]
    pub from: Timestamp,
    /// Its end.
    #[serde(rename = "u")]
    pub until: Timestamp,
    /// How many windows of the attempt have failed.
    #[serde(rename = "x", default)]
    pub failures: u32,
    /// The commit at which the attempt reads its files. `None`: nothing was read yet.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// What follows a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The next window, or more of this one.
    Again,
    /// The same, while a person is asked.
    Ask,
    /// The next step of the strategy.
    Go,
    /// The deployment fails.
    Fail,
}

impl Judging {
    /// A step begins. `bake`: how long it lasts at least.
    pub fn begin(&mut self, now: Timestamp, analysis: &Analysis, bake: Option<Span>) {
        (self.shifted, self.from) = (now, now);
        let whole = now + analysis.interval;
        self.until = self.next_end(now, analysis, bake).max(whole);
    }

    /// When a window ends that begins or grows now, while the step bakes. A rest of the bake time that is shorter than half a
    /// window belongs to the one before: in a few seconds, some sources have no value at all.
    fn next_end(&self, now: Timestamp, analysis: &Analysis, bake: Option<Span>) -> Timestamp {
        let whole = now + analysis.interval;
        let baked = bake.map(|bake| self.shifted + bake);
        baked.filter(|baked| *baked - whole < Span(analysis.interval.0 / 2)).unwrap_or(whole)
    }

    /// What follows a window that ended at this time. `bake`: how long the step lasts at least; `None`: until a person says so.
    pub fn after(&mut self, verdict: Verdict, end: Timestamp, analysis: &Analysis, bake: Option<Span>) -> Next {
        self.until = end + analysis.interval;
        let verdict = match verdict {
            Verdict::Inconclusive { hopeless } if hopeless || end - self.from >= analysis.deadline => {
                match analysis.on_inconclusive {
                    OnInconclusive::Pause => return Next::Ask,
                    OnInconclusive::Pass => Verdict::Pass,
                    OnInconclusive::Fail => return Next::Fail,
                }
            }
            verdict => verdict,
        };
        match verdict {
            Verdict::Inconclusive { .. } => Next::Again,
            Verdict::Fail => {
                self.failures = self.failures.saturating_add(1);
                self.from = end;
                if self.failures > analysis.failure_limit { Next::Fail } else { Next::Again }
            }
            Verdict::Pass => {
                self.from = end;
                match bake.map(|bake| self.shifted + bake) {
                    Some(baked) if baked <= end => Next::Go,
                    _ => {
                        self.until = self.next_end(end, analysis, bake);
                        Next::Again
                    }
                }
            }
        }
    }
}

/// What a window came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It passed, perhaps with a warning.
    Pass,
    /// It failed.
    Fail,
    /// It does not tell enough. `hopeless`: nor will a longer one, because a file or a query is wrong.
    Inconclusive {
        /// See above.
        hopeless: bool,
    },
}

#[cfg(test)]
mod tests;
