//! What cases cannot bring about: sources that never answer, orders that were given up, wake-ups that were replaced; and what a
//! pipeline is told when there is much to tell.

use super::answer::{Answer, Asker, MOST_VIOLATED, Violation};
use super::*;
use crate::address::Address;
use crate::cause::Cause;
use crate::evaluation::{
    Details, Finished, Indicator, Judgement, Measured, Objective, Objectives, Period, Provided, Slo, Target, TotalScore, Value,
};
use crate::event::{Object, Status, TaskResult};
use crate::time::{Span, Timestamp};

const MINUTE: Span = Span::minutes(1);

fn slo() -> Slo {
    let pass = vec![vec!["<=1".to_owned()]];
    let objective = Objective { sli: "errors".into(), display_name: String::new(), pass, warning: vec![], weight: 1, key: false };
    let total_score = TotalScore { pass: "90%".into(), warning: String::new() };
    Slo { objectives: vec![objective], total_score, ..Slo::default() }
}

fn errors(value: f64) -> Vec<Measured> {
    vec![Measured::value("errors", value)]
}

/// A service whose objectives are at hand with every input.
struct Stand {
    x: Service,
    now: Timestamp,
    found: Found,
    record: Option<Record>,
    ended: Vec<Ended>,
}

impl Stand {
    fn new(found: Found) -> Self {
        let now = Timestamp(1_000_000_000);
        let x = Service::new(["shop", "dev", "carts"].map(str::to_owned), now);
        Self { x, now, found, record: None, ended: vec![] }
    }

    fn decide(&self, input: Input<'_>) -> Decision {
        let objectives = Objectives::Read(slo());
        let (now, cause, found) = (self.now, Cause::of(b"a message", self.now), &self.found);
        let facts =
            Facts { now, cause, rules: Rules::default(), found, objectives: &objectives, file: "the objectives", earlier: &[] };
        decide(&self.x, input, &facts)
    }

    /// Decides, and commits what comes of it.
    fn give(&mut self, input: Input<'_>) {
        let decision = self.decide(input);
        let Decision::Commit(next, record, ended) = decision else { panic!("{input:?} changes nothing: {decision:?}") };
        self.x = *next;
        self.record = record.map(|record| *record);
        self.ended.extend(ended);
    }

    fn begin(&mut self, id: &str) {
        let asked = self.asked(id);
        self.give(Input::Triggered(&asked));
    }

    /// The ten minutes before now.
    fn asked(&self, id: &str) -> Asked {
        Asked {
            id: id.to_owned(),
            context: format!("context of {id}"),
            period: Ok(Period { start: self.now - Span::minutes(10), end: self.now }),
            labels: Object::new(),
            deployment: String::new(),
            revision: None,
            asker: None,
        }
    }

    /// The time of the wake-up has come.
    fn wake(&mut self) {
        let at = self.x.wake.expect("it is woken");
        self.now = at;
        self.give(Input::Wake(at));
    }

    fn orders(&self) -> Vec<u32> {
        let sends = self.record.iter().flat_map(|record| &record.sends);
        sends.filter_map(|order| if let Order::Measure { attempt, .. } = order { Some(*attempt) } else { None }).collect()
    }

    /// The file that the end of this one is told with.
    fn told_file(&self, id: &str) -> String {
        let events = self.record.iter().flat_map(|record| &record.events);
        let of = events.filter(|event| event.ty.ends_with("finished") && event.context == Some(format!("context of {id}")));
        of.map(|event| event.data["evaluation"]["sloFileContent"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

fn prometheus() -> Found {
    Found::Source("prometheus".into(), Span(0))
}

#[test]
fn a_source_for_which_every_function_runs_out_of_time_is_given_up() {
    let mut stand = Stand::new(prometheus());
    stand.begin("a");
    assert_eq!((stand.orders(), stand.x.wake), (vec![1], Some(stand.now + Span::minutes(2))));
    for attempt in 2..=5 {
        stand.wake();
        assert_eq!(stand.orders(), [attempt], "the order is given again");
    }
    let fifth = stand.now;
    stand.wake();
    assert_eq!((stand.orders(), stand.now, stand.x.wake), (vec![], fifth + Span::minutes(2), None));
    assert!(stand.x.open.is_empty() && stand.x.past[0].result == TaskResult::Fail && !stand.x.past[0].evaluated);
    let message = stand.ended[0].finished["message"].as_str().unwrap();
    assert!(message.contains("prometheus did not answer 5 times"), "{message}");
}

#[test]
fn only_the_answer_to_the_last_order_counts() {
    let mut stand = Stand::new(prometheus());
    stand.begin("a");
    stand.wake();
    let (good, bad) = (Ok(errors(0.5)), Ok(errors(5.0)));
    for attempt in [1, 3] {
        assert_eq!(stand.decide(Input::Measured { id: "a", attempt, outcome: &bad }), Decision::Late, "{attempt}");
    }
    stand.give(Input::Measured { id: "a", attempt: 2, outcome: &good });
    assert_eq!(stand.x.past[0].result, TaskResult::Pass);
    assert_eq!(stand.decide(Input::Measured { id: "a", attempt: 2, outcome: &bad }), Decision::Late, "it has ended");
}

#[test]
fn a_busy_source_is_asked_after_pauses_that_double() {
    let mut stand = Stand::new(prometheus());
    stand.begin("a");
    let busy = Err(Lost::Later("busy".into()));
    for (attempt, pause) in [(1, 10), (2, 20), (3, 40), (4, 80)] {
        stand.give(Input::Measured { id: "a", attempt, outcome: &busy });
        assert_eq!((stand.orders(), stand.x.wake), (vec![], Some(stand.now + Span::seconds(pause))), "{attempt}");
        stand.wake();
        assert_eq!(stand.orders(), [attempt + 1]);
    }
    stand.give(Input::Measured { id: "a", attempt: 5, outcome: &busy });
    assert!(stand.x.open.is_empty());
}

#[test]
fn what_comes_while_a_source_is_asked_gives_no_order_again() {
    let mut stand = Stand::new(prometheus());
    stand.begin("a");
    stand.now = stand.now + MINUTE;
    stand.begin("b");
    let sends = &stand.record.as_ref().unwrap().sends;
    assert_eq!(*sends, [Order::Measure { id: "b".into(), attempt: 1 }]);
}

#[test]
fn a_service_that_has_begun_with_one_has_not_begun_with_another() {
    let mut stand = Stand::new(Found::Service("dynatrace".into()));
    stand.begin("a");
    stand.begin("b");
    let asked = |stand: &Stand, id: &str| match stand.x.open(id).map(|open| open.phase.clone()) {
        Some(Phase::Asked { id, started, .. }) => (id, started),
        other => panic!("{other:?}"),
    };
    let (get_sli, _) = asked(&stand, "b");
    stand.give(Input::Began(&get_sli));
    assert!(!asked(&stand, "a").1 && asked(&stand, "b").1);
}

#[test]
fn a_wake_up_that_was_replaced_or_comes_early_changes_nothing() {
    let mut stand = Stand::new(prometheus());
    stand.begin("a");
    let due = stand.x.wake.unwrap();
    assert_eq!(stand.decide(Input::Wake(due)), Decision::Settle, "it is early");
    stand.now = due;
    assert_eq!(stand.decide(Input::Wake(due - MINUTE)), Decision::Settle, "it is an older one");
    assert!(matches!(stand.decide(Input::Wake(due)), Decision::Commit(..)), "it is due to the millisecond");
}

/// The objectives at hand are those of the evaluation that the message is about.
#[test]
fn what_is_given_up_beside_another_one_is_not_told_with_its_objectives() {
    let mut stand = Stand::new(Found::Service("dynatrace".into()));
    stand.begin("silent");
    stand.now = stand.now + MINUTE;
    stand.begin("answers");
    stand.now = stand.x.wake.unwrap();
    let Phase::Asked { id, .. } = stand.x.open("answers").unwrap().phase.clone() else { panic!("{:?}", stand.x) };
    let values = errors(0.5);
    let provided = Provided { status: Status::Succeeded, result: TaskResult::Pass, message: String::new(), values };
    stand.give(Input::Provided(&id, &provided));
    assert_eq!((stand.told_file("answers"), stand.told_file("silent")), ("the objectives".into(), String::new()));
    assert!(stand.x.open.is_empty(), "both have ended");
}

#[test]
fn windows_may_be_exactly_a_minute_or_a_year_long_and_end_a_day_ahead() {
    // Milliseconds from now.
    let begins = |start: i64, end: i64| {
        let mut stand = Stand::new(prometheus());
        stand.now = Timestamp(100_000_000_000);
        let period = Period { start: stand.now + Span(start), end: stand.now + Span(end) };
        let asked = Asked { period: Ok(period), ..stand.asked("a") };
        stand.give(Input::Triggered(&asked));
        !stand.x.open.is_empty()
    };
    let (minute, day) = (MINUTE.0, Span::minutes(24 * 60).0);
    let year = 366 * day;
    assert!(begins(-minute, 0) && !begins(1 - minute, 0));
    assert!(begins(-year, 0) && !begins(-year - 1, 0));
    assert!(begins(0, day) && !begins(0, day + 1));
}

#[test]
fn two_services_have_different_ids_and_one_keeps_its_own() {
    let of = |place: [&str; 3]| Service::new(place.map(str::to_owned), Timestamp(0)).id();
    assert_eq!(of(["shop", "dev", "carts"]), of(["shop", "dev", "carts"]));
    let others = [["shop", "dev", "other"], ["shop", "prod", "carts"], ["other", "dev", "carts"]];
    assert!(others.into_iter().all(|other| of(other) != of(["shop", "dev", "carts"])));
}

#[test]
fn what_has_ended_otherwise_is_another_item() {
    let mut stand = Stand::new(prometheus());
    stand.begin("a");
    stand.give(Input::Measured { id: "a", attempt: 1, outcome: &Ok(errors(0.5)) });
    let one = stand.ended[0].clone();
    let other = Ended { values: errors(0.6), ..one.clone() };
    assert_eq!(one.content(), stand.x.past[0].content);
    assert_ne!(one.content(), other.content());
}

#[test]
fn what_is_not_set_is_not_stored() {
    let mut stand = Stand::new(prometheus());
    stand.begin("a");
    let open = serde_json::to_value(&stand.x.open[0]).unwrap();
    let absent = ["labels", "deployment", "revision", "asker", "invalidated"];
    assert!(absent.iter().all(|name| open.get(name).is_none()), "{open}");
    let asker = Asker { pipeline: Address::new("shop", "flow"), environment: "dev".into(), revision: "v2".into(), time: 1 };
    let asked = Asked { asker: Some(asker), ..stand.asked("b") };
    stand.give(Input::Triggered(&asked));
    stand.give(Input::Measured { id: "b", attempt: 1, outcome: &Ok(errors(0.5)) });
    let told = serde_json::to_value(stand.x.past[0].told.as_ref().unwrap()).unwrap();
    assert!(["message", "violated", "more"].iter().all(|name| told["answer"].get(name).is_none()), "{told}");
}

/// Messages come again, and in any order: only one of a later time says something new.
#[test]
fn a_pipeline_is_told_again_once_for_each_time_that_it_asks() {
    let mut stand = Stand::new(prometheus());
    let asked = |stand: &Stand, time: u32| {
        let asker = Asker { pipeline: Address::new("shop", "flow"), environment: "dev".into(), revision: "v2".into(), time };
        Asked { asker: Some(asker), ..stand.asked("a") }
    };
    let told = |stand: &Stand| {
        let sends = stand.record.iter().flat_map(|record| &record.sends);
        sends
            .filter_map(|order| if let Order::Tell { told, .. } = order { Some(told.asker.time) } else { None })
            .collect::<Vec<_>>()
    };
    for time in [1, 2] {
        stand.give(Input::Triggered(&asked(&stand, time)));
        assert_eq!(told(&stand), [0; 0], "it has not ended");
        for known in 1..=time {
            assert_eq!(stand.decide(Input::Triggered(&asked(&stand, known))), Decision::Settle, "{known} of {time}");
        }
    }
    stand.give(Input::Measured { id: "a", attempt: 1, outcome: &Ok(errors(0.5)) });
    assert_eq!(told(&stand), [2]);
    assert_eq!(stand.decide(Input::Triggered(&asked(&stand, 2))), Decision::Settle);
    stand.give(Input::Triggered(&asked(&stand, 3)));
    assert_eq!(told(&stand), [3]);
    assert_eq!(stand.decide(Input::Triggered(&asked(&stand, 3))), Decision::Settle);
}

fn indicator(n: usize, status: Judgement) -> Indicator {
    let target = |criteria: &str, violated| Target { criteria: criteria.to_owned(), target_value: 1.0, violated };
    let metric = format!("m{n}");
    let value = Value { metric, value: 2.5, compared_value: 0.0, success: true, message: String::new() };
    Indicator {
        score: 0.0,
        value: Some(value),
        display_name: format!("name {n}"),
        pass_targets: Some(vec![target("<1", true), target("<9", false)]),
        warning_targets: None,
        key_sli: false,
        status,
    }
}

fn finished(indicators: Vec<Indicator>) -> Finished {
    let evaluation =
        Details { result: TaskResult::Fail, score: 25.0, indicator_results: Some(indicators), compared_events: vec![] };
    Finished { status: Status::Succeeded, result: TaskResult::Fail, message: "m".repeat(250), evaluation }
}

#[test]
fn a_pipeline_is_told_five_objectives_that_were_not_met_and_how_many_more_there_are() {
    let statuses = [Judgement::Pass, Judgement::Info, Judgement::Warning].into_iter().chain([Judgement::Fail; MOST_VIOLATED + 1]);
    let all = statuses.enumerate().map(|(n, status)| indicator(n, status)).collect();
    let answer = Answer::of(&finished(all));
    assert_eq!((answer.violated.len(), answer.more, answer.evaluated, answer.score), (MOST_VIOLATED, 2, true, 25.0));
    assert_eq!(answer.violated[0], Violation { sli: "m2".into(), value: Some(2.5), limit: "<1".into() });
    assert_eq!(answer.violated[0].to_string(), "m2 is 2.5, not <1");
    assert_eq!(answer.message, format!("{}…", "m".repeat(200)));
    let told = serde_json::to_value(&answer).unwrap();
    assert_eq!((&told["more"], told["violated"].as_array().map(Vec::len)), (&2.into(), Some(MOST_VIOLATED)));
}

#[test]
fn a_value_that_is_missing_or_endless_is_told_as_none() {
    let missing = |value: f64, success| {
        let mut one = indicator(1, Judgement::Fail);
        one.value = Some(Value { value, success, message: "no data".into(), ..one.value.unwrap() });
        Answer::of(&Finished { message: "m".repeat(200), ..finished(vec![one]) })
    };
    let none = Violation { sli: "m1".into(), value: None, limit: "no data".into() };
    assert_eq!((&missing(0.0, false).violated[0], &missing(f64::INFINITY, true).violated[0]), (&none, &none));
    assert_eq!(missing(0.0, false).message, "m".repeat(200), "what is short enough is whole");
    let nameless = Answer::of(&finished(vec![Indicator { value: None, ..indicator(1, Judgement::Fail) }]));
    assert_eq!(nameless.violated[0], Violation { sli: "name 1".into(), value: None, limit: String::new() });
    let mut endless = finished(vec![]);
    endless.evaluation.score = f64::NAN;
    assert_eq!(Answer::of(&endless).score, 0.0, "JSON has no word for it");
}
