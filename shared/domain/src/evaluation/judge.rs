//! The judgement: objectives, measured values and earlier evaluations make results, a score and a message.

use super::number::shown;
use super::{Aggregate, Details, Earlier, Finished, Indicator, Judged, Judgement, Measured, Provided, Target, Value};
use super::{CompareWith, Comparison, Criteria, Criterion, CriterionError, Kind, Note, Objective, Slo};
use crate::event::{Status, TaskResult};

const NO_VALUE: &str = "no value received from SLI provider";
/// As the Prometheus service says it of what is not a number.
const NO_NUMBER: &str = "query did not return valid values";

/// Judges what a provider has sent. `earlier` are the evaluations before, newest first.
pub fn judge(slo: &Slo, provided: &Provided, earlier: &[Earlier]) -> Judged {
    let mut notes = vec![];
    let chosen = chosen(&slo.comparison, earlier);
    let values: Vec<Measured> = provided.values.iter().map(|value| finite(value, &mut notes)).collect();
    let mut round = Round { comparison: slo.comparison, chosen: &chosen, values, taken: vec![], key: None, maximum: 0.0, notes };
    let mut finished = round.judge(slo, provided);
    finished.evaluation.compared_events = if finished.status == Status::Errored {
        vec![]
    } else {
        chosen.iter().map(|one| one.id.clone()).filter(|id| !id.is_empty()).collect()
    };
    round.unknown_words(slo);
    Judged { finished, compared: chosen.len(), notes: round.notes }
}

/// The evaluations to compare with.
fn chosen<'e>(comparison: &Comparison, earlier: &'e [Earlier]) -> Vec<&'e Earlier> {
    earlier.iter().filter(|one| !one.invalidated).filter(|one| comparison.counts(one.result)).take(comparison.wanted()).collect()
}

/// A value that is not a finite number is none.
fn finite(value: &Measured, notes: &mut Vec<Note>) -> Measured {
    if !value.success || value.value.is_finite() {
        return value.clone();
    }
    notes.push(Note::NotFinite(value.metric.clone()));
    Measured { metric: value.metric.clone(), value: 0.0, success: false, message: NO_NUMBER.into() }
}

/// The objective that makes the evaluation fail.
struct Key {
    name: String,
    message: String,
}

struct Round<'e> {
    comparison: Comparison,
    chosen: &'e [&'e Earlier],
    /// Those that no objective has taken yet.
    values: Vec<Measured>,
    /// The indicators whose values were taken.
    taken: Vec<&'e str>,
    key: Option<Key>,
    maximum: f64,
    notes: Vec<Note>,
}

impl<'e> Round<'e> {
    fn judge(&mut self, slo: &'e Slo, provided: &Provided) -> Finished {
        let mut results = vec![];
        for objective in &slo.objectives {
            match self.objective(objective) {
                Ok(result) => results.push(result),
                Err(error) => {
                    let name = if objective.display_name.is_empty() { &objective.sli } else { &objective.display_name };
                    let message = format!("error with {name}: {error}");
                    return Finished::without(Status::Succeeded, TaskResult::Fail, message, TaskResult::Fail);
                }
            }
        }
        let none = slo.objectives.is_empty();
        let message = if none { String::new() } else { self.additional() };
        if none {
            self.maximum = 100.0;
        }
        let mut finished = match self.score(slo, &results) {
            Ok((result, score, said)) => {
                let evaluation = Details { result, score, indicator_results: Some(results), compared_events: vec![] };
                Finished { status: Status::Succeeded, result, message: said.unwrap_or(message), evaluation }
            }
            Err(message) => return Finished::errored(message),
        };
        if none {
            finished.evaluation.indicator_results = None;
            finished.result = TaskResult::Fail;
            finished.message = "lighthouse failed because no SLO objective was provided".into();
        } else if provided.result == TaskResult::Fail {
            finished.result = TaskResult::Fail;
            finished.message = format!("lighthouse failed because SLI failed with message {}", provided.message);
        }
        finished
    }

    fn objective(&mut self, objective: &'e Objective) -> Result<Indicator, CriterionError> {
        let info = objective.pass.is_empty();
        if !info {
            self.maximum += weight(objective);
        }
        let aggregate = self.aggregate(&objective.sli);
        let place = self.values.iter().position(|value| value.metric == objective.sli);
        // The last value takes the place of the one that is taken, which shows in the order of those that are left.
        let taken = place.map(|place| self.values.swap_remove(place));
        match taken {
            Some(_) => self.taken.push(&objective.sli),
            None if self.taken.contains(&objective.sli.as_str()) => self.notes.push(Note::Taken(objective.sli.clone())),
            None => (),
        }
        let mut result = Indicator {
            score: 0.0,
            value: taken.as_ref().map(value_of),
            display_name: objective.display_name.clone(),
            pass_targets: None,
            warning_targets: None,
            key_sli: false,
            status: if info { Judgement::Info } else { Judgement::Fail },
        };
        let Some(measured) = taken.filter(|value| value.success && !info) else {
            if !info {
                let value = result.value.get_or_insert_with(|| no_value(&objective.sli));
                if objective.key {
                    self.key = Some(Key { name: objective.display_name.clone(), message: value.message.clone() });
                }
            }
            result.pass_targets = Some(self.not_looked_at(objective, &objective.pass, aggregate));
            result.warning_targets = Some(self.not_looked_at(objective, &objective.warning, aggregate));
            return Ok(result);
        };
        let compared = aggregate.unwrap_or(0.0);
        let (passes, targets) = self.any(objective, &objective.pass, measured.value, aggregate)?;
        let mut looked = !targets.is_empty();
        result.pass_targets = Some(targets).filter(|targets| !targets.is_empty());
        let mut warns = false;
        if !objective.warning.is_empty() {
            match self.any(objective, &objective.warning, measured.value, aggregate) {
                Ok((holds, targets)) => {
                    (warns, looked) = (holds, looked || !targets.is_empty());
                    result.warning_targets = Some(targets).filter(|targets| !targets.is_empty());
                }
                Err(error) => {
                    // What is compared shows if one criterion could be read before.
                    looked |= objective.warning.iter().flatten().next().is_some_and(|first| Criterion::parse(first).is_ok());
                    result.warning_targets = Some(vec![]);
                    self.notes.push(Note::NoWarning { sli: objective.sli.clone(), error });
                }
            }
        }
        if let Some(value) = result.value.as_mut().filter(|_| looked) {
            value.compared_value = compared;
        }
        result.key_sli = objective.key;
        (result.status, result.score) = match (passes, warns) {
            (true, _) => (Judgement::Pass, weight(objective)),
            (_, true) => (Judgement::Warning, 0.5 * weight(objective)),
            _ => (Judgement::Fail, 0.0),
        };
        if passes && result.pass_targets.is_none() {
            self.notes.push(Note::Uncounted(objective.sli.clone()));
        }
        if objective.key && result.status == Judgement::Fail {
            let message = "failed evaluation with score 0.000000".into();
            self.key = Some(Key { name: objective.display_name.clone(), message });
        }
        Ok(result)
    }

    /// What the earlier values of an indicator come to.
    fn aggregate(&self, sli: &str) -> Option<f64> {
        let values = self.chosen.iter().flat_map(|earlier| &earlier.values);
        let values: Vec<f64> = values
            .filter(|value| value.metric == sli && value.success)
            .map(|value| value.value)
            .filter(|value| value.is_finite())
            .collect();
        self.comparison.aggregate.of(&values)
    }

    /// Whether one of the sets holds, and what each criterion came to.
    fn any(
        &mut self,
        objective: &Objective,
        sets: &[Criteria],
        measured: f64,
        aggregate: Option<f64>,
    ) -> Result<(bool, Vec<Target>), CriterionError> {
        let (mut one, mut targets) = (false, vec![]);
        for set in sets {
            let mut all = true;
            for text in set {
                let criterion = Criterion::parse(text)?;
                let (holds, target_value) = self.holds(objective, text, &criterion, measured, aggregate);
                all &= holds;
                targets.push(Target { criteria: text.clone(), target_value, violated: !holds });
            }
            one |= all;
        }
        Ok((one, targets))
    }

    fn holds(
        &mut self,
        objective: &Objective,
        text: &str,
        criterion: &Criterion,
        measured: f64,
        aggregate: Option<f64>,
    ) -> (bool, f64) {
        let (sli, criterion_text) = (objective.sli.clone(), text.to_owned());
        match aggregate {
            None if criterion.kind.compares() => {
                self.notes.push(Note::First { sli, criterion: criterion_text });
                return (true, 0.0);
            }
            Some(below) if below < 0.0 && matches!(criterion.kind, Kind::PercentLess | Kind::PercentMore) => {
                self.notes.push(Note::BelowZero { sli, criterion: criterion_text, aggregate: shown(below) });
            }
            _ => (),
        }
        let target = criterion.target(aggregate.unwrap_or(0.0));
        (criterion.operator.holds(measured, target), target)
    }

    /// The criteria of an objective without a value: violated. The target of one that compares is what it would compare with.
    fn not_looked_at(&mut self, objective: &Objective, sets: &[Criteria], aggregate: Option<f64>) -> Vec<Target> {
        let mut targets = vec![];
        for text in sets.iter().flatten() {
            match Criterion::parse(text) {
                Ok(criterion) => {
                    let target_value = if criterion.kind.compares() { aggregate.unwrap_or(0.0) } else { criterion.value };
                    targets.push(Target { criteria: text.clone(), target_value, violated: true });
                }
                Err(error) => self.notes.push(Note::LeftOut { sli: objective.sli.clone(), criterion: text.clone(), error }),
            }
        }
        targets
    }

    /// What to say of values that no objective has taken.
    fn additional(&self) -> String {
        let names: Vec<&str> = self.values.iter().map(|value| value.metric.as_str()).collect();
        let names = names.join(", ");
        if names.is_empty() {
            return String::new();
        }
        format!(
            "Lighthouse received additional SLIs, which are not specified as SLO: {names} . Please consider using them as an SLO."
        )
    }

    /// The result by the score, the score, and the message of one that is no pass.
    fn score(&self, slo: &Slo, results: &[Indicator]) -> Result<(TaskResult, f64, Option<String>), &'static str> {
        let (pass, warning) = (&slo.total_score.pass, &slo.total_score.warning);
        let percentage = |text: &str| super::number::parse(text.strip_suffix('%').unwrap_or(text));
        if pass.is_empty() {
            return Err("no target score defined");
        }
        let pass = percentage(pass).ok_or("could not parse pass target percentage")?;
        let warning = match warning.as_str() {
            "" => None,
            text => Some(percentage(text).ok_or("could not parse warning target percentage")?),
        };
        if self.maximum == 0.0 {
            return Ok((TaskResult::Pass, 100.0, None));
        }
        let counted = results.iter().filter(|result| result.pass_targets.as_ref().is_some_and(|targets| !targets.is_empty()));
        let score = 100.0 * (counted.fold(0.0, |sum, result| sum + result.score) / self.maximum);
        let said = shown(score);
        Ok(match (&self.key, warning) {
            (None, _) if score >= pass => (TaskResult::Pass, score, None),
            (None, Some(warning)) if score >= warning => {
                let near = format!("is close to the warning target value of {}", shown(warning));
                (TaskResult::Warning, score, Some(format!("Evaluation returned a warning: the calculated score of {said} {near}")))
            }
            (None, below) => {
                let target = match below {
                    Some(warning) => format!("the warning value of {}", shown(warning)),
                    None => format!("the target value of {}", shown(pass)),
                };
                (TaskResult::Fail, score, Some(format!("Evaluation failed since the calculated score of {said} is below {target}")))
            }
            (Some(Key { name, message }), _) => {
                (TaskResult::Fail, score, Some(format!("Evaluation failed due to key_sli objective '{name}': {message}")))
            }
        })
    }

    /// Notes about the file as a whole.
    fn unknown_words(&mut self, slo: &Slo) {
        let compares = slo.objectives.iter().flat_map(|objective| objective.pass.iter().chain(&objective.warning)).flatten();
        if compares.filter_map(|text| Criterion::parse(text).ok()).any(|criterion| criterion.kind.compares()) {
            let unknown = [
                (self.comparison.aggregate == Aggregate::Unknown, Note::Aggregate),
                (self.comparison.with == CompareWith::Unknown, Note::CompareWith),
            ];
            self.notes.extend(unknown.into_iter().filter(|(is, _)| *is).map(|(_, note)| note));
        }
    }
}

fn weight(objective: &Objective) -> f64 {
    objective.weight as f64
}

fn no_value(sli: &str) -> Value {
    Value { metric: sli.to_owned(), value: 0.0, compared_value: 0.0, success: false, message: NO_VALUE.into() }
}

fn value_of(measured: &Measured) -> Value {
    let Measured { metric, value, success, message } = measured.clone();
    Value { metric, value, compared_value: 0.0, success, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_counts_as_no_value_and_is_noted() {
        let mut notes = vec![];
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let kept = finite(&Measured::value("errors", value), &mut notes);
            assert_eq!((kept.success, kept.value, kept.message.as_str()), (false, 0.0, NO_NUMBER), "{value}");
        }
        assert_eq!(notes, vec![Note::NotFinite("errors".into()); 3]);
        // Why there is no value, its source has said already.
        let none = Measured { success: false, message: "no such metric".into(), ..Measured::value("errors", f64::INFINITY) };
        assert_eq!(finite(&none, &mut notes), none);
        assert_eq!(finite(&Measured::value("errors", 1.5), &mut notes), Measured::value("errors", 1.5));
        assert_eq!(notes.len(), 3);
    }
}
