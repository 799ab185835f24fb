//! The gate `evaluation`: a revision moves on when what was measured over its soak time meets the objectives. The pipeline orders
//! the evaluation when that time is over; the engine of evaluations makes it, and tells what it came to.

use super::advance::Step;
use super::definition::{Definition, EnvironmentSpec};
use super::facts::{Decision, Facts, Order};
use super::gates::{Gate, healthy_since};
use super::state::{Environment, Pipeline};
use crate::evaluation::Period;
use crate::evaluation::readable;
use crate::evaluations::{Answer, Violation};
use crate::event::{Status, TaskResult};
use crate::ids::event_id;
use crate::level::Level as _;
use crate::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};

/// The reason of a promotion that waits for the answer.
pub const EVALUATING: &str = "Evaluating";
/// The reason of a promotion that the answer keeps waiting.
pub const EVALUATION_FAILED: &str = "EvaluationFailed";
/// How long the first answer is waited for before the evaluation is ordered again: longer than one takes whose source is busy or
/// is a service on the bus. The time doubles, up to four times as long.
pub const ANSWER_WITHIN: Span = Span::minutes(15);

/// The evaluation of the revision that an environment is healthy on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Its id, which follows from all that is asked.
    #[serde(rename = "i")]
    pub id: String,
    /// The revision.
    #[serde(rename = "r")]
    pub revision: String,
    /// What is measured: so much time as `soak` says.
    #[serde(rename = "p")]
    pub period: Period,
    /// The stage with the files.
    #[serde(rename = "g")]
    pub stage: String,
    #[expect(missing_docs, reason = "the name says it")]
    #[serde(rename = "v")]
    pub service: String,
    /// How often a person has ordered another one.
    #[serde(rename = "n", default, skip_serializing_if = "is_zero")]
    pub again: u32,
    /// How often it was ordered.
    #[serde(rename = "t", default, skip_serializing_if = "is_zero")]
    pub times: u32,
    /// When it is ordered (again).
    #[serde(rename = "d")]
    pub due: Timestamp,
    /// What it came to.
    #[serde(rename = "a", default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
}

/// The order of an evaluation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "named as the members of the evaluation are")]
pub struct Evaluate {
    pub id: String,
    /// The environment that is evaluated.
    pub environment: String,
    pub revision: String,
    pub period: Period,
    pub stage: String,
    pub service: String,
    /// Which time it is ordered, from 1.
    pub time: u32,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

impl Evaluation {
    /// The evaluation of this revision in a period. It is due at once.
    fn of(x: &Pipeline, environment: &EnvironmentSpec, (revision, period): (&str, Period), again: u32) -> Option<Self> {
        let (stage, service) = environment.evaluation.as_ref()?.place(&environment.name);
        let Period { start, end } = period;
        let asked = [&environment.name, revision, stage, service].map(|text| format!("{}:{text}", text.len())).join("/");
        Some(Self {
            id: event_id(x.id(), &format!("evaluation/{asked}/{}/{}/{again}", start.0, end.0)).to_string(),
            revision: revision.to_owned(),
            period,
            stage: stage.to_owned(),
            service: service.to_owned(),
            again,
            times: 0,
            due: end,
            answer: None,
        })
    }

    /// Whether it is what the environment asks for, about the revision that has been healthy there since the period began.
    fn is_of(&self, environment: &EnvironmentSpec, healthy: Option<&(String, Timestamp)>) -> bool {
        let asked = environment.evaluation.as_ref().map(|spec| spec.place(&environment.name));
        asked == Some((&self.stage, &self.service))
            && environment.soak == Some(self.period.end - self.period.start)
            && healthy.is_some_and(|(on, since)| *on == self.revision && *since <= self.period.start)
    }

    /// Why the revision does not move on by this answer. `None`: it does.
    fn failure(&self, EnvironmentSpec { name, evaluation, .. }: &EnvironmentSpec) -> Option<String> {
        let Self { revision, stage, service, answer, .. } = self;
        let (answer, strict) = (answer.as_ref()?, evaluation.as_ref()?.strict);
        let why = if answer.message.is_empty() { String::new() } else { format!(": {}", answer.message) };
        if answer.status != Status::Succeeded {
            return Some(format!("the evaluation of {revision} in {name} could not be made{why}: mend that and retry"));
        }
        if !answer.evaluated && answer.result != TaskResult::Fail {
            let write = format!("write slo.yaml for service {service} in stage {stage}, declare a MetricsSource, and retry");
            return Some(format!("{revision} was not evaluated in {name}{why}: {write}, or take `evaluation` out of the pipeline"));
        }
        let word = match answer.result {
            TaskResult::Pass => return None,
            TaskResult::Warning if !strict => return None,
            TaskResult::Warning => "is a warning",
            TaskResult::Fail => "failed",
        };
        let score = readable(answer.score);
        let violated: Vec<String> = answer.violated.iter().map(Violation::to_string).collect();
        let more = if answer.more > 0 { format!(" and {} more", answer.more) } else { String::new() };
        let what = if violated.is_empty() { why } else { format!(": {}{more}", violated.join("; ")) };
        Some(format!("the evaluation of {revision} in {name} {word} with a score of {score}{what}"))
    }
}

impl Environment {
    /// Forgets an evaluation that was asked about another revision, another time or another service.
    pub(super) fn forget_other_evaluation(&mut self, environment: &EnvironmentSpec) {
        let healthy = self.healthy.as_ref();
        if self.evaluation.as_ref().is_some_and(|evaluation| !evaluation.is_of(environment, healthy)) {
            self.evaluation = None;
        }
    }
}

impl Step<'_> {
    /// Orders the evaluation that the promotion into an environment waits for, as soon as the soak time of the environment before
    /// is over; and again if nobody answers. What other gates wait for does not matter: whoever approves can see what it came to.
    pub fn evaluate(&mut self, place: usize) {
        let Some(definition) = self.facts.definition else { return };
        let Some(before) = place.checked_sub(1).and_then(|before| definition.environments.get(before)) else { return };
        let (Some(_), Some(soak)) = (&before.evaluation, before.soak) else { return };
        let Some(start) = healthy_since(&self.next, definition, before) else { return };
        let (now, end) = (self.facts.now, start + soak);
        if end > now {
            return self.wake_at(end);
        }
        let Some((revision, _)) = self.next.environments.get(&before.name).and_then(|state| state.healthy.clone()) else { return };
        let new = Evaluation::of(&self.next, before, (&revision, Period { start, end }), 0);
        let Some(state) = self.next.environments.get_mut(&before.name) else { return };
        let Some(evaluation) = state.evaluation.take().or(new) else { return };
        let evaluation = state.evaluation.insert(evaluation);
        if evaluation.answer.is_some() {
            return;
        }
        if evaluation.times == 0 || evaluation.due <= now {
            evaluation.due = now + Span(ANSWER_WITHIN.0 << evaluation.times.min(2));
            evaluation.times = evaluation.times.saturating_add(1);
            self.orders.push(Order::Evaluate(Evaluate {
                id: evaluation.id.clone(),
                environment: before.name.clone(),
                revision,
                period: evaluation.period,
                stage: evaluation.stage.clone(),
                service: evaluation.service.clone(),
                time: evaluation.times,
            }));
        }
        let due = evaluation.due;
        self.wake_at(due);
    }

    /// A person has the promotion into an environment tried again. If an evaluation holds it up, the soak time that ends now is
    /// evaluated instead: what was measured before does not change. Returns whether one does.
    pub fn evaluate_again(&mut self, definition: &Definition, place: usize) -> bool {
        let Some((before, failed)) = failed(&self.next, definition, place) else { return false };
        let (now, soak) = (self.facts.now, before.soak.unwrap_or_default());
        let period = Period { start: now - soak, end: now };
        let next = Evaluation::of(&self.next, before, (&failed.revision, period), failed.again.saturating_add(1));
        if let Some(state) = self.next.environments.get_mut(&before.name) {
            state.evaluation = next;
        }
        true
    }
}

/// What an evaluation came to.
pub(super) fn answered(x: &Pipeline, environment: &str, id: &str, answer: &Answer, facts: &Facts<'_>) -> Decision {
    let mut step = Step::new(x, facts);
    let known = step.next.environments.get_mut(environment).and_then(|state| state.evaluation.as_mut());
    match known.filter(|evaluation| evaluation.id == id) {
        Some(evaluation) if evaluation.answer.is_none() => evaluation.answer = Some(answer.clone()),
        // The first answer counts.
        Some(_) => return Decision::Settle,
        None => return Decision::Late,
    }
    step.advance()
}

/// The environment before, and its evaluation if that keeps its revision from moving on.
fn failed<'x, 'd>(x: &'x Pipeline, definition: &'d Definition, place: usize) -> Option<(&'d EnvironmentSpec, &'x Evaluation)> {
    let before = definition.environments.get(place.checked_sub(1)?)?;
    let state = x.environments.get(&before.name)?;
    let evaluation = state.evaluation.as_ref().filter(|evaluation| evaluation.is_of(before, state.healthy.as_ref()))?;
    healthy_since(x, definition, before)?;
    evaluation.failure(before).map(|_| (before, evaluation))
}

/// Whether the evaluation in the environment before keeps the revision of the run from moving on, unless a person helps.
pub(super) fn has_failed(x: &Pipeline, definition: &Definition, place: usize) -> bool {
    failed(x, definition, place).is_some()
}

/// The gate into the environment with this index. The soak time before it is over.
pub(super) fn gate(x: &Pipeline, definition: &Definition, place: usize) -> Option<Gate> {
    let before = definition.environments.get(place.checked_sub(1)?)?;
    let spec = before.evaluation.as_ref()?;
    let (stage, service) = spec.place(&before.name);
    let state = x.environments.get(&before.name)?;
    let evaluation = state.evaluation.as_ref().filter(|evaluation| evaluation.is_of(before, state.healthy.as_ref()));
    let what = format!("{} in {}", x.run.as_ref()?.revision, before.name);
    match evaluation {
        Some(evaluation) if evaluation.answer.is_some() => Gate::new(EVALUATION_FAILED, evaluation.failure(before)?, None),
        Some(Evaluation { period, times, .. }) => {
            let (start, end) = (period.start.rfc3339(), period.end.rfc3339());
            let times = if *times > 1 { format!("; asked {times} times") } else { String::new() };
            let message = format!("{what} is being evaluated from {start} to {end}, by {service} in stage {stage}{times}");
            Gate::new(EVALUATING, message, None)
        }
        None => Gate::new(EVALUATING, format!("{what} is about to be evaluated, by {service} in stage {stage}"), None),
    }
}
