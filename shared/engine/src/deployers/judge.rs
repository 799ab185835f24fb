//! Judges the new version by metrics while it shares the requests with the one before.

use super::step::{Done, Step};
use super::{Deployers, aliases};
use crate::aliases::Aliases;
use crate::evaluations::{Shown, Versions, Window};
use crate::metrics::Metrics;
use crate::ports::{PortError, Ports};
use crate::runners::Runners;
use keelway_domain::deployments::analysis::{self, Judging, Next, Report, Verdict};
use keelway_domain::deployments::definition::{Target, Weight};
use keelway_domain::deployments::plan;
use keelway_domain::evaluation::shown;
use keelway_domain::time::{Span, Timestamp};

impl<P: Ports, C: Aliases + Runners, M: Metrics> Deployers<P, C, M> {
    /// Judges a window at the weight with this index. `held`: the hold in which the deployment was.
    pub(super) async fn judge(&self, step: &mut Step, n: usize, held: Option<u32>) -> Result<Done, PortError> {
        // Told to proceed: a person has decided.
        if held.is_some_and(|told| step.deployment.proceeds > told) {
            return Ok(Done::Go);
        }
        let weights = plan::weights(&step.definition.strategy, step.at_once());
        let weight = weights.get(n).copied().unwrap_or(Weight { weight: analysis::WHOLE, bake: None });
        let Some(analysis) = step.definition.strategy.judged(weight.weight).cloned() else { return Ok(Done::Go) };
        let versions = versions(step);
        if versions.is_empty() {
            return Ok(Done::Go);
        }
        let mut judging = step.point.judging.clone().unwrap_or_default();
        if judging.commit.is_none() {
            judging.commit = self.evaluations.commit_of(&step.of.namespace).await?;
        }
        let window = Window {
            namespace: &step.of.namespace,
            analysis: &analysis,
            commit: judging.commit.as_deref(),
            since: judging.shifted,
            from: judging.from,
            until: judging.until,
        };
        let (verdict, mut report) = match self.evaluations.look_at(&window, &versions).await? {
            Shown::NotBefore(at) => return Ok(wait(step, judging, at, held)),
            Shown::Nothing { period, why, hopeless } => (Verdict::Inconclusive { hopeless }, analysis::inconclusive(period, &why)),
            Shown::Measured { slo, period, seen } => analysis::conclude(&slo, &analysis, period, &seen),
        };
        // Another deployer proceeds by asking for more; without one, a step without an end holds until a person says so.
        let open = weight.bake.is_none() && step.deployment.part.is_none();
        let bake = if open { None } else { Some(weight.bake.unwrap_or(Span(0))) };
        let next = judging.after(verdict, report.window.end, &analysis, bake);
        report.failures = judging.failures;
        step.tell(sentence(&report, weight.weight, next));
        let why = format!("the analysis failed at {} %: {}", weight.weight, report.message);
        step.progress.analysis = Some(Box::new(report));
        let until = judging.until;
        Ok(match next {
            Next::Go => {
                step.point.judging = Some(judging);
                Done::Go
            }
            Next::Fail => Done::Fail(why),
            Next::Again => wait(step, judging, until, held.filter(|_| open)),
            Next::Ask => {
                let told = held.unwrap_or(step.deployment.proceeds);
                wait(step, judging, until, Some(told))
            }
        })
    }
}

/// The versions of the aliases that two versions share.
fn versions(step: &Step) -> Vec<Versions> {
    let shared = |(target, function, alias): (Target, plan::Function, String)| {
        let place = step.point.aliases.get(&target.name)?;
        let before = aliases::shares(place).then(|| place.from.clone()).flatten()?;
        // Metrics name a function by its name alone.
        let function = function.name.rsplit(':').next().unwrap_or_default().to_owned();
        Some(Versions { target: target.name, function, alias, version: place.to.clone(), before })
    };
    aliases::targets(step).into_iter().filter_map(shared).collect()
}

fn wait(step: &mut Step, judging: Judging, due: Timestamp, hold: Option<u32>) -> Done {
    (step.point.judging, step.point.due, step.point.hold) = (Some(judging), due, hold);
    Done::Wait
}

/// What the log says of a window.
fn sentence(report: &Report, weight: u8, next: Next) -> String {
    let counted =
        report.samples.map(|n| format!(", {n} request{}", if (n - 1.0).abs() < 0.5 { "" } else { "s" })).unwrap_or_default();
    let score = report.score.map(|score| format!(", score {}", shown(score))).unwrap_or_default();
    let why = if report.message.is_empty() { String::new() } else { format!(": {}", report.message) };
    let then = match next {
        Next::Ask => "; it holds until it is told to proceed",
        Next::Again if report.result == "fail" => "; it is looked at again",
        _ => "",
    };
    format!("analysis at {weight} %: {}{counted}{score}{why}{then}", report.result)
}
