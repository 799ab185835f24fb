//! The analysis of a version while it shares the requests of an alias with the version before: objectives of a quality gate, judged
//! in windows one after another, with the other version in the same window as what is compared with.
//!
//! Windows follow each other without gaps. A window that does not tell enough grows until it does, or until the deadline; so each
//! request counts once, and a function with few requests is judged by longer windows.

use super::definition::Strategy;
pub use super::part::WHOLE;
use crate::evaluation::mann_whitney::{Comparison, Direction, Settings, Verdict as Difference, compare};
use crate::evaluation::{
    Earlier, Finished, Indicator, Judgement, Measured, Period, Provided, QueryError, Slo, Target, judge, shown,
};
use crate::event::{Status, TaskResult};
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
/// The most objectives that are reported.
const SHOWN: usize = 20;
/// As in every evaluation.
const ALONE: &str = "no value for the version before: criteria that compare hold";
/// The longest text of a report, in characters.
const TEXT: usize = 200;

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

    /// When a window ends that begins or grows now. A rest of the bake time that is shorter than half a window belongs to the one
    /// before: in a few seconds, some sources have no value at all.
    fn next_end(&self, now: Timestamp, analysis: &Analysis, bake: Option<Span>) -> Timestamp {
        let whole = now + analysis.interval;
        let baked = bake.map(|bake| self.shifted + bake).filter(|baked| *baked > now);
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

/// What a source has said about the two versions of an alias in one window.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// The target.
    pub target: String,
    /// How many requests the new version had; `None`: nobody asked.
    pub samples: Option<Measured>,
    /// How many the version before had.
    pub baseline_samples: Option<Measured>,
    /// The indicators of the new version.
    pub canary: Vec<Measured>,
    /// Those of the version before; empty if nothing is compared with it.
    pub baseline: Vec<Measured>,
    /// Values over time, in the order of [`Analysis::mann_whitney`].
    pub spreads: Vec<Spread>,
}

/// Values of an indicator over time, or why there are none.
#[derive(Debug, Clone, PartialEq)]
pub struct Spread {
    /// Those of the new version.
    pub canary: Result<Vec<f64>, String>,
    /// Those of the version before.
    pub baseline: Result<Vec<f64>, String>,
}

/// A window and what it came to: the newest one is shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The window.
    pub window: Period,
    /// `pass`, `warning`, `fail` or `inconclusive`.
    pub result: String,
    /// The reason, in words and numbers.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// How many windows of the attempt have failed.
    #[serde(default)]
    pub failures: u32,
    /// The requests of the new version, of the target that had fewest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<f64>,
    /// The score, of 100, of the target that had the lowest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// The objectives, those that failed first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objectives: Vec<Objective>,
}

/// An objective in a window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Objective {
    /// The target.
    pub target: String,
    /// The indicator.
    pub sli: String,
    /// `pass`, `warning`, `fail` or `info`.
    pub result: String,
    /// Its value for the new version; `None`: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// Its value for the version before, if they are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<f64>,
    /// The criteria of `pass`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<Limit>,
    /// Why there is no value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// A criterion and what it came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Limit {
    /// As written.
    pub criteria: String,
    /// The number that the value is compared with.
    pub target_value: f64,
    /// Whether it does not hold.
    pub violated: bool,
}

/// Judges the targets of a config by one window. The worst of them counts: one that failed, then one that does not tell enough.
pub fn conclude(slo: &Slo, analysis: &Analysis, window: Period, seen: &[Seen]) -> (Verdict, Report) {
    let mut report = Report {
        window,
        result: String::new(),
        message: String::new(),
        failures: 0,
        samples: None,
        score: None,
        objectives: vec![],
    };
    let (mut few, mut failed, mut warned) = (None, None, false);
    for of in seen {
        let samples = of.samples.iter().filter(|samples| samples.success).map(|samples| samples.value);
        report.samples = samples.chain(report.samples).reduce(f64::min);
        if let Some(why) = too_few(of, analysis) {
            few.get_or_insert(why);
            continue;
        }
        let finished = judged(slo, of);
        if finished.status != Status::Succeeded {
            few.get_or_insert((finished.message, true));
            continue;
        }
        report.score = [Some(finished.evaluation.score), report.score].into_iter().flatten().reduce(f64::min);
        let objectives = objectives(slo, of, &finished);
        if finished.result == TaskResult::Fail {
            failed.get_or_insert_with(|| why_failed(&objectives, &finished));
        }
        warned |= finished.result == TaskResult::Warning;
        report.objectives.extend(objectives);
        for (what, spread) in analysis.mann_whitney.iter().zip(&of.spreads) {
            match compared(&of.target, what, spread) {
                Ok(objective) => {
                    if objective.result == Judgement::Fail.as_str() {
                        failed.get_or_insert_with(|| objective.why());
                    }
                    report.objectives.push(objective);
                }
                Err(why) => drop(few.get_or_insert((why, false))),
            }
        }
    }
    report
        .objectives
        .sort_by_key(|objective| ["fail", "warning", "pass"].iter().position(|word| *word == objective.result).unwrap_or(3));
    report.objectives.truncate(SHOWN);
    let (verdict, result, message) = match (failed, few) {
        (Some(why), _) => (Verdict::Fail, "fail", why),
        (None, Some((why, hopeless))) => (Verdict::Inconclusive { hopeless }, "inconclusive", why),
        (None, None) => (Verdict::Pass, if warned { "warning" } else { "pass" }, String::new()),
    };
    (report.result, report.message) = (result.to_owned(), cut(&message));
    (verdict, report)
}

/// A window that could not be judged, and why.
pub fn inconclusive(window: Period, why: &str) -> Report {
    let (result, message) = ("inconclusive".to_owned(), cut(why));
    Report { window, result, message, failures: 0, samples: None, score: None, objectives: vec![] }
}

fn cut(text: &str) -> String {
    text.chars().take(TEXT).collect()
}

/// Why a target does not tell enough, and whether it never will.
fn too_few(of: &Seen, analysis: &Analysis) -> Option<(String, bool)> {
    let (target, samples, least) = (&of.target, &analysis.samples, analysis.min_samples);
    let counted = [("the new version", &of.samples), ("the version before", &of.baseline_samples)];
    counted.into_iter().find_map(|(who, count)| {
        let count = count.as_ref()?;
        match count.success {
            true if count.value >= least as f64 => None,
            true => Some((format!("{target}: {samples} of {who} is {}, and {least} are needed", shown(count.value)), false)),
            false => {
                let why = &count.message;
                Some((format!("{target}: {samples} of {who}, which counts its requests, has no value: {why}"), is_unknown(count)))
            }
        }
    })
}

/// Whether an indicator has no query: values carry only the message.
fn is_unknown(of: &Measured) -> bool {
    of.message == QueryError::Unsupported.to_string()
}

/// The objectives' judgement, with the version before as the only earlier evaluation.
fn judged(slo: &Slo, of: &Seen) -> Finished {
    let provided =
        Provided { status: Status::Succeeded, result: TaskResult::Pass, message: String::new(), values: of.canary.clone() };
    let before = Earlier { id: String::new(), result: TaskResult::Pass, invalidated: false, values: of.baseline.clone() };
    let earlier = if of.baseline.is_empty() { vec![] } else { vec![before] };
    judge(slo, &provided, &earlier).finished
}

fn objectives(slo: &Slo, of: &Seen, finished: &Finished) -> Vec<Objective> {
    let results = finished.evaluation.indicator_results.iter().flatten();
    slo.objectives.iter().zip(results).map(|(objective, result)| shown_objective(&objective.sli, of, result)).collect()
}

fn shown_objective(sli: &str, of: &Seen, result: &Indicator) -> Objective {
    let found = |values: &[Measured]| values.iter().find(|value| value.metric == sli && value.success).map(|value| value.value);
    let limit =
        |target: &Target| Limit { criteria: target.criteria.clone(), target_value: target.target_value, violated: target.violated };
    let (value, baseline) = (found(&of.canary), found(&of.baseline));
    let alone = value.is_some() && baseline.is_none() && !of.baseline.is_empty();
    let message = match alone {
        true => ALONE.to_owned(),
        false => result.value.as_ref().map(|value| cut(&value.message)).unwrap_or_default(),
    };
    let targets = result.pass_targets.iter().flatten().map(limit).collect();
    let (target, result) = (of.target.clone(), result.status.as_str().to_owned());
    Objective { target, sli: sli.to_owned(), result, value, baseline, targets, message }
}

/// Compares an indicator's values over time; or says why that tells nothing yet.
fn compared(target: &str, of: &Distribution, spread: &Spread) -> Result<Objective, String> {
    let sli = &of.sli;
    let missing = |who: &str, why: &String| format!("{target}: {sli} of {who} has no values over time: {why}");
    let canary = spread.canary.as_ref().map_err(|why| missing("the new version", why))?;
    let baseline = spread.baseline.as_ref().map_err(|why| missing("the version before", why))?;
    let settings = Settings { direction: of.direction, ..Settings::default() };
    let Comparison { verdict, shift } = compare(baseline, canary, &settings);
    let by = shift.map(|shift| {
        let [estimate, lower, upper] = [shift.estimate, shift.lower, shift.upper].map(shown);
        format!(" by {estimate} ({lower} to {upper} at 98 %)")
    });
    let (result, message) = match verdict {
        Difference::Pass => (Judgement::Pass, String::new()),
        Difference::High => (Judgement::Fail, format!("is higher than before{}", by.unwrap_or_default())),
        Difference::Low => (Judgement::Fail, format!("is lower than before{}", by.unwrap_or_default())),
        Difference::NoData => return Err(format!("{target}: {sli} has no values over time yet")),
    };
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (value, baseline) =
        (Some(mean(canary)).filter(|mean| mean.is_finite()), Some(mean(baseline)).filter(|mean| mean.is_finite()));
    let (target, sli, result) = (target.to_owned(), sli.clone(), result.as_str().to_owned());
    Ok(Objective { target, sli, result, value, baseline, targets: vec![], message: cut(&message) })
}

/// The reason for people: the objectives that failed, with their numbers.
fn why_failed(objectives: &[Objective], finished: &Finished) -> String {
    let failed: Vec<String> =
        objectives.iter().filter(|objective| objective.result == Judgement::Fail.as_str()).map(Objective::why).collect();
    match failed.is_empty() {
        false => failed.join("; "),
        true if finished.message.is_empty() => format!("the score is {}", shown(finished.evaluation.score)),
        true => finished.message.clone(),
    }
}

impl Objective {
    /// Why it failed, in numbers.
    fn why(&self) -> String {
        let Some(value) = self.value else { return format!("{}: {} has no value: {}", self.target, self.sli, self.message) };
        if self.targets.is_empty() {
            return format!("{}: {} {}", self.target, self.sli, self.message);
        }
        let before = self.baseline.map(|before| format!(", {} before", shown(before))).unwrap_or_default();
        let limits = self.targets.iter().filter(|limit| limit.violated);
        let limits: Vec<String> = limits.map(|limit| format!("{} allows {}", limit.criteria, shown(limit.target_value))).collect();
        format!("{}: {} is {}{before}; {}", self.target, self.sli, shown(value), limits.join(", "))
    }
}
