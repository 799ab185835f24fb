//! The gate `evaluation`: what is ordered, when, and what the answer does.

use super::*;
use crate::evaluation::Period;
use crate::evaluations::{Answer, Violation};
use crate::event::{Status, TaskResult};

const SOAK: Span = Span::minutes(120);

fn pass() -> Answer {
    let (status, result) = (Status::Succeeded, TaskResult::Pass);
    Answer { status, result, evaluated: true, score: 100.0, message: String::new(), violated: vec![], more: 0 }
}

fn fail() -> Answer {
    let violated = vec![
        Violation { sli: "error_rate".into(), value: Some(2.5), limit: "<1".into() },
        Violation { sli: "latency".into(), value: None, limit: "query did not return any values".into() },
    ];
    Answer { result: TaskResult::Fail, score: 33.333_333_3, violated, more: 2, ..pass() }
}

fn gated() -> Definition {
    let mut definition = definition(&["dev", "staging", "prod"]);
    definition.environments[1].soak = Some(SOAK);
    definition.environments[1].evaluation = Some(EvaluationSpec { service: "carts".into(), stage: None, strict: false });
    definition
}

/// v2 is in staging, and has soaked there.
fn soaked(definition: Definition) -> (Stand, Timestamp) {
    let mut stand = Stand::new(definition);
    stand.observe("dev", "v2/R");
    stand.observe("staging", "v2/R");
    let begun = stand.now;
    stand.pass(SOAK);
    (stand, begun)
}

impl Stand {
    fn ordered(&self) -> Vec<&Evaluate> {
        let all = self.orders.iter().filter_map(|order| if let Order::Evaluate(order) = order { Some(order) } else { None });
        all.collect()
    }

    fn answer(&mut self, answer: &Answer) {
        let id = self.ordered().last().unwrap().id.clone();
        self.give(Input::Evaluated("staging", &id, answer));
    }
}

#[test]
fn an_evaluation_of_exactly_the_soak_time_is_ordered_when_it_is_over() {
    let (mut stand, begun) = soaked(gated());
    let order = stand.ordered()[0].clone();
    assert_eq!(order.period, Period { start: begun, end: begun + SOAK });
    assert_eq!((&*order.environment, &*order.stage, &*order.service, &*order.revision), ("staging", "staging", "carts", "v2"));
    assert_eq!((stand.ordered().len(), order.time), (1, 1));
    assert_eq!(stand.x.condition.reason, EVALUATING);
    stand.answer(&pass());
    assert_eq!(stand.attempts(), ["staging v2", "prod v2"]);
}

#[test]
fn what_failed_is_told_in_numbers_until_somebody_retries() {
    let (mut stand, begun) = soaked(gated());
    stand.answer(&fail());
    assert_eq!(stand.x.condition.reason, EVALUATION_FAILED);
    assert_eq!(
        stand.x.condition.message,
        "the evaluation of v2 in staging failed with a score of 33.3333: error_rate is 2.5, not <1; latency has no value (query \
         did not return any values) and 2 more"
    );
    assert_eq!(stand.attempts(), ["staging v2"]);
    stand.pass(Span::minutes(600));
    assert_eq!(stand.ordered().len(), 1);

    let retry = Command::Retry("prod".into());
    stand.give(Input::Command(&retry, &Note { id: 7, at: stand.now, ..Note::default() }));
    let again = stand.ordered()[1].clone();
    assert_eq!(again.period, Period { start: stand.now - SOAK, end: stand.now });
    assert!(again.period.start > begun + SOAK && again.id != stand.ordered()[0].id);
    // The answer to the first one comes again.
    let first = stand.ordered()[0].id.clone();
    stand.give(Input::Evaluated("staging", &first, &pass()));
    assert_eq!(stand.x.condition.reason, EVALUATING);
    stand.answer(&pass());
    assert_eq!(stand.attempts(), ["staging v2", "prod v2"]);
}

#[test]
fn another_evaluation_is_ordered_only_where_one_holds_the_promotion_up() {
    let (mut stand, _) = soaked(gated());
    let retry = Command::Retry("prod".into());
    let note = Note { id: 7, at: stand.now, ..Note::default() };
    let refused = stand.give(Input::Command(&retry, &note)).unwrap();
    assert!(refused.reason().starts_with("the promotion into prod goes on: v2 in staging is being evaluated"), "{refused:?}");
}

#[test]
fn without_objectives_the_gate_stays_closed_and_says_what_to_write() {
    let (mut stand, _) = soaked(gated());
    let message = "no evaluation performed by lighthouse because no SLO file configured for project ns";
    stand.answer(&Answer { evaluated: false, message: message.into(), ..pass() });
    assert_eq!(stand.x.condition.reason, EVALUATION_FAILED);
    let said = &stand.x.condition.message;
    assert!(said.starts_with("v2 was not evaluated in staging: no evaluation performed"), "{said}");
    assert!(said.contains("write slo.yaml for service carts in stage staging"), "{said}");
    assert_eq!(stand.attempts(), ["staging v2"]);

    // The other way out.
    stand.definition.as_mut().unwrap().environments[1].evaluation = None;
    stand.evaluate();
    assert_eq!(stand.attempts(), ["staging v2", "prod v2"]);
}

#[test]
fn one_that_could_not_be_made_keeps_the_gate_closed() {
    let (mut stand, _) = soaked(gated());
    let message = "prometheus answered 503 (5 times)";
    stand.answer(&Answer {
        status: Status::Errored,
        result: TaskResult::Fail,
        message: message.into(),
        evaluated: false,
        ..pass()
    });
    let said = &stand.x.condition.message;
    assert_eq!(said, &format!("the evaluation of v2 in staging could not be made: {message}: mend that and retry"));
    assert_eq!(stand.attempts(), ["staging v2"]);
}

#[test]
fn a_warning_passes_unless_the_pipeline_says_otherwise() {
    let warning = Answer { result: TaskResult::Warning, score: 80.0, ..pass() };
    let (mut stand, _) = soaked(gated());
    stand.answer(&warning);
    assert_eq!(stand.attempts(), ["staging v2", "prod v2"]);

    let mut strict = gated();
    strict.environments[1].evaluation.as_mut().unwrap().strict = true;
    let (mut stand, _) = soaked(strict);
    stand.answer(&warning);
    assert_eq!(stand.x.condition.message, "the evaluation of v2 in staging is a warning with a score of 80");
    assert_eq!(stand.attempts(), ["staging v2"]);
}

#[test]
fn an_answer_that_does_not_come_is_asked_for_again() {
    let (mut stand, _) = soaked(gated());
    assert!(stand.x.condition.message.ends_with("by carts in stage staging"), "{}", stand.x.condition.message);
    stand.pass(Span::minutes(15));
    assert_eq!(stand.ordered().len(), 2);
    assert!(stand.x.condition.message.ends_with("by carts in stage staging; asked 2 times"), "{}", stand.x.condition.message);
    stand.pass(Span::minutes(30));
    stand.pass(Span::minutes(60));
    stand.pass(Span::minutes(60));
    let ordered = stand.ordered();
    assert_eq!(ordered.iter().map(|order| order.time).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    assert!(ordered.iter().all(|order| order.id == ordered[0].id && order.period == ordered[0].period));
    stand.answer(&pass());
    assert_eq!(stand.attempts(), ["staging v2", "prod v2"]);
}

#[test]
fn a_revision_that_was_not_healthy_is_evaluated_anew() {
    let (mut stand, begun) = soaked(gated());
    stand.answer(&fail());
    stand.observe("staging", "v2/N");
    assert_eq!(stand.x.environments["staging"].evaluation, None);
    stand.pass(Span::minutes(5));
    stand.observe("staging", "v2/R");
    let again = stand.now;
    assert_eq!(stand.x.condition.reason, "Soaking");
    stand.pass(SOAK);
    assert_eq!(stand.ordered()[1].period, Period { start: again, end: again + SOAK });
    assert!(again > begun);
    stand.answer(&pass());
    assert_eq!(stand.attempts(), ["staging v2", "prod v2"]);
}

#[test]
fn an_answer_about_an_earlier_window_changes_nothing() {
    let (mut stand, _) = soaked(gated());
    let stale = stand.ordered()[0].id.clone();
    stand.observe("staging", "v2/N");
    stand.observe("staging", "v2/R");
    stand.pass(SOAK);
    let before = stand.x.clone();
    stand.give(Input::Evaluated("staging", &stale, &pass()));
    assert_eq!(stand.x, before);
    assert_eq!(stand.attempts(), ["staging v2"]);
}

#[test]
fn the_first_answer_counts() {
    let (mut stand, _) = soaked(gated());
    stand.answer(&fail());
    let before = stand.x.clone();
    stand.answer(&pass());
    assert_eq!(stand.x, before);
    assert_eq!(stand.attempts(), ["staging v2"]);
}

#[test]
fn what_was_not_counted_yet_is_not_stored() {
    let (stand, _) = soaked(gated());
    let evaluation = stand.x.environments["staging"].evaluation.clone().unwrap();
    let stored = serde_json::to_value(Evaluation { times: 0, ..evaluation.clone() }).unwrap();
    assert!(["n", "t", "a"].iter().all(|name| stored.get(name).is_none()), "{stored}");
    assert_eq!(serde_json::to_value(&evaluation).unwrap()["t"], 1);
}

#[test]
fn a_newer_revision_is_evaluated_by_itself() {
    let (mut stand, _) = soaked(gated());
    stand.answer(&fail());
    stand.observe("dev", "v3/R");
    stand.observe("staging", "v3/R");
    stand.pass(SOAK);
    assert_eq!(stand.ordered()[1].revision, "v3");
    stand.answer(&pass());
    assert_eq!(stand.attempts(), ["staging v2", "staging v3", "prod v3"]);
}

#[test]
fn whoever_approves_can_see_what_it_came_to() {
    let mut definition = gated();
    definition.environments[2].promotion = Some(settings(true));
    let (mut stand, _) = soaked(definition);
    assert_eq!(stand.x.condition.reason, "ApprovalNeeded");
    stand.answer(&pass());
    assert!(stand.x.environments["staging"].evaluation.as_ref().unwrap().answer.is_some());
    assert_eq!(stand.x.condition.reason, "ApprovalNeeded");
}

#[test]
fn a_run_that_is_to_finish_first_ends_with_a_failed_evaluation() {
    let mut definition = gated();
    definition.in_flight = InFlight::Finish;
    let (mut stand, _) = soaked(definition);
    stand.observe("dev", "v3/R");
    assert_eq!(stand.x.run.as_ref().unwrap().revision, "v2");
    stand.answer(&fail());
    assert_eq!(stand.x.run.as_ref().unwrap().revision, "v3");
}

#[test]
fn a_run_that_is_to_finish_first_does_not_wait_for_a_soak_time_that_cannot_end() {
    let mut definition = definition(&["dev", "staging", "prod"]);
    definition.in_flight = InFlight::Finish;
    definition.environments[0].soak = Some(SOAK);
    let mut stand = Stand::new(definition);
    stand.observe("dev", "v2/R");
    stand.observe("dev", "v3/R");
    assert_eq!(stand.x.run.as_ref().unwrap().revision, "v3");
}
