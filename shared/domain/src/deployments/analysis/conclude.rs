//! A window is judged: what a source has said about it, and what that comes to.

use super::report::{Limit, Objective, Report, cut};
use super::{Analysis, Distribution, Verdict};
use crate::evaluation::mann_whitney::{Comparison, Settings, Verdict as Difference, compare};
use crate::evaluation::{
    Earlier, Finished, Indicator, Judgement, Measured, Period, Provided, QueryError, Slo, Target, judge, shown,
};
use crate::event::{Status, TaskResult};

/// The most objectives that are reported.
const SHOWN: usize = 20;
/// As in every evaluation.
const ALONE: &str = "no value for the version before: criteria that compare hold";

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
    if failed.is_empty() { finished.message.clone() } else { failed.join("; ") }
}
