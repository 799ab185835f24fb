//! Versions that metrics judge while they share the requests with the version before.

use keelway_deployers_stand::stand::{Stand, definition, version};
use keelway_domain::deployments::analysis::{Analysis, DEADLINE, Distribution, OnInconclusive, Report};
use keelway_domain::deployments::definition::{Definition, Weight};
use keelway_domain::deployments::{Command, Status};
use keelway_domain::evaluation::mann_whitney::Direction;
use keelway_domain::time::Span;
use keelway_world::evaluations::project;
use serde_json::json;

const SLO: &str = "
spec_version: '1.0'
objectives:
  - {sli: errors, pass: [{criteria: ['<=+50%', '<5']}]}
  - {sli: latency}
total_score: {pass: 90%}
";
const SLI: &str = "
spec_version: '1.0'
indicators: {errors: errors of $FUNCTION:$ALIAS $VERSION, latency: latency of $VERSION, invocations: invocations of $VERSION}
";

fn analysis() -> Analysis {
    Analysis {
        slo: "slo.yaml".into(),
        place: None,
        source: None,
        interval: Span::seconds(60),
        samples: "invocations".into(),
        min_samples: 50,
        failure_limit: 0,
        deadline: DEADLINE,
        on_inconclusive: OnInconclusive::Pause,
        mann_whitney: vec![],
    }
}

fn canary(steps: &[(u8, Option<i64>)], analysis: Analysis) -> Definition {
    let mut definition = definition("Canary", &version(2));
    let step = |(weight, bake): &(u8, Option<i64>)| Weight { weight: *weight, bake: bake.map(Span::seconds) };
    definition.strategy.steps = steps.iter().map(step).collect();
    definition.strategy.analysis = Some(analysis);
    definition
}

/// What the source answers from now on: requests and errors of version 2, and of version 1.
fn measured(stand: &Stand, new: (f64, f64), before: (f64, f64)) {
    let mut state = stand.sources.state();
    for (version, (requests, errors)) in [(2, new), (1, before)] {
        for (query, value) in [
            (format!("invocations of {version}"), requests),
            (format!("errors of shop:live {version}"), errors),
            (format!("latency of {version}"), 80.0),
        ] {
            state.values.insert(("main".into(), query), value);
        }
    }
}

/// A stand on version 1, in a project that has objectives and a source, while version 2 is being deployed.
fn deploying(next: &Definition, new: (f64, f64), before: (f64, f64)) -> Stand {
    let mut stand = Stand::judged(next, &[("slo.yaml", SLO), ("sli.yaml", SLI)]);
    measured(&stand, new, before);
    stand.apply(next);
    stand
}

fn report(stand: &Stand) -> Report {
    *stand.last().progress.analysis.unwrap_or_else(|| panic!("nothing was judged: {:?}", stand.last().progress))
}

fn told(stand: &Stand, what: &str) {
    let tail = stand.last().progress.tail;
    assert!(tail.contains(what), "{what:?} is not in\n{tail}");
}

#[test]
fn a_version_that_is_as_good_as_the_one_before_goes_on() {
    let next = canary(&[(10, Some(120)), (50, Some(60))], analysis());
    let mut stand = deploying(&next, (60.0, 2.0), (540.0, 2.0));
    stand.pass(Span::seconds(59));
    assert_eq!(stand.alias("live"), "1 10%2");
    stand.pass(Span::seconds(2));
    let first = report(&stand);
    assert_eq!((first.result.as_str(), first.samples, first.score), ("pass", Some(60.0), Some(100.0)));
    let errors = &first.objectives[0];
    assert_eq!((errors.sli.as_str(), errors.value, errors.baseline), ("errors", Some(2.0), Some(2.0)));
    assert_eq!(errors.targets[0].target_value, 3.0);
    stand.pass(Span::seconds(60));
    assert_eq!(stand.alias("live"), "1 50%2", "two windows make the bake");
    stand.pass(Span::seconds(62));
    stand.assert_ended(Status::Complete, "2");
    // Three windows; both versions in each, and nothing between them.
    let asked = stand.sources.state().asked.clone();
    assert_eq!(asked.len(), 6);
    let windows: Vec<_> = asked.iter().step_by(2).map(|asked| asked.period).collect();
    assert_eq!(windows[0].end, windows[1].start, "windows of a step follow each other");
    assert!(asked[0].queries.contains(&"errors of shop:live 2".to_owned()), "{asked:?}");
    assert!(asked[1].queries.contains(&"errors of shop:live 1".to_owned()), "{asked:?}");
}

#[test]
fn a_version_that_is_worse_is_taken_back_and_the_numbers_are_told() {
    let next = canary(&[(10, Some(600))], analysis());
    let mut stand = deploying(&next, (60.0, 4.0), (540.0, 2.0));
    stand.pass(Span::seconds(62));
    stand.assert_ended(Status::Failed, "1");
    let message = stand.last().message;
    assert!(message.contains("the analysis failed at 10 %: main: errors is 4, 2 before, not <=+50% (3)"), "{message}");
    assert_eq!(report(&stand).result, "fail");
    assert_eq!(stand.log(), ["shop:live 1 10%2", "shop:live 1"]);
}

#[test]
fn so_many_windows_may_fail_and_the_step_waits_for_one_that_passes() {
    let next = canary(&[(10, Some(60))], Analysis { failure_limit: 1, ..analysis() });
    let mut stand = deploying(&next, (60.0, 9.0), (540.0, 2.0));
    stand.pass(Span::seconds(62));
    assert_eq!((stand.alias("live").as_str(), report(&stand).failures), ("1 10%2", 1));
    measured(&stand, (60.0, 2.0), (540.0, 2.0));
    stand.pass(Span::seconds(62));
    stand.assert_ended(Status::Complete, "2");

    let mut stand = deploying(&next, (60.0, 9.0), (540.0, 2.0));
    stand.pass(Span::seconds(124));
    stand.assert_ended(Status::Failed, "1");
}

#[test]
fn a_window_with_few_requests_grows() {
    let next = canary(&[(10, Some(60))], analysis());
    let mut stand = deploying(&next, (12.0, 0.0), (540.0, 0.0));
    stand.pass(Span::seconds(125));
    let seen = report(&stand);
    assert_eq!((seen.result.as_str(), stand.alias("live").as_str()), ("inconclusive", "1 10%2"));
    assert_eq!(seen.message, "main: invocations of the new version is 12, and 50 are needed");
    let begin = seen.window.start;
    measured(&stand, (80.0, 1.0), (540.0, 1.0));
    stand.pass(Span::seconds(60));
    assert_eq!(report(&stand).window.start, begin, "it is one window still");
    stand.assert_ended(Status::Complete, "2");
}

#[test]
fn after_the_deadline_a_person_is_asked() {
    let next = canary(&[(10, Some(60))], analysis());
    let mut stand = deploying(&next, (12.0, 0.0), (540.0, 0.0));
    stand.pass(Span::minutes(40));
    assert_eq!((stand.alias("live").as_str(), stand.status()), ("1 10%2", Status::Running));
    told(&stand, "and 50 are needed; it holds until it is told to proceed");
    stand.command(Command::Proceed);
    stand.pass(Span::seconds(1));
    stand.assert_ended(Status::Complete, "2");
}

#[test]
fn a_version_that_holds_goes_on_when_there_are_enough_requests_after_all_or_goes_back() {
    for (errors, status, alias) in [(0.0, Status::Complete, "2"), (9.0, Status::Failed, "1")] {
        let next = canary(&[(10, Some(60))], analysis());
        let mut stand = deploying(&next, (12.0, 0.0), (540.0, 0.0));
        stand.pass(Span::minutes(40));
        measured(&stand, (80.0, errors), (540.0, 0.0));
        stand.pass(Span::seconds(62));
        stand.assert_ended(status, alias);
    }
}

#[test]
fn a_manifest_says_what_too_few_requests_mean() {
    for (meaning, status, alias) in [(OnInconclusive::Pass, Status::Complete, "2"), (OnInconclusive::Fail, Status::Failed, "1")] {
        let next = canary(&[(10, Some(60))], Analysis { on_inconclusive: meaning, ..analysis() });
        let mut stand = deploying(&next, (12.0, 0.0), (540.0, 0.0));
        stand.pass(Span::minutes(9));
        assert_eq!(stand.status(), Status::Running);
        stand.pass(Span::minutes(2));
        stand.assert_ended(status, alias);
    }
}

#[test]
fn a_step_without_an_end_is_judged_while_it_holds() {
    let next = canary(&[(10, None)], analysis());
    let mut stand = deploying(&next, (60.0, 2.0), (540.0, 2.0));
    stand.pass(Span::minutes(5));
    assert_eq!((stand.alias("live").as_str(), stand.sources.state().asked.len()), ("1 10%2", 10));
    told(&stand, "it is judged while it holds until it is told to proceed");
    measured(&stand, (60.0, 9.0), (540.0, 2.0));
    stand.pass(Span::minutes(1));
    stand.assert_ended(Status::Failed, "1");

    let mut stand = deploying(&next, (60.0, 2.0), (540.0, 2.0));
    stand.command(Command::Proceed);
    stand.pass(Span::seconds(1));
    stand.assert_ended(Status::Complete, "2");
}

#[test]
fn a_source_that_does_not_answer_is_no_failure_of_the_version() {
    let next = canary(&[(10, Some(60))], analysis());
    let mut stand = deploying(&next, (60.0, 2.0), (540.0, 2.0));
    let busy = stand.world.now() + Span::minutes(5);
    stand.sources.state().moods.entry("main".into()).or_default().busy = busy;
    stand.pass(Span::minutes(4));
    assert_eq!((stand.status(), report(&stand).message.as_str()), (Status::Running, "query failed for now: main is busy"));
    stand.pass(Span::minutes(3));
    stand.assert_ended(Status::Complete, "2");
}

/// Nothing that is missing looks like success.
#[test]
fn what_is_wrong_is_told_at_once_and_a_person_is_asked() {
    let next = canary(&[(10, Some(60))], analysis());
    let cases: [(&[(&str, &str)], &str); 4] = [
        (&[("sli.yaml", SLI)], "there is no slo.yaml: add it to the resources"),
        (&[("slo.yaml", "objectives: 3"), ("sli.yaml", SLI)], "slo.yaml: line"),
        (&[("slo.yaml", SLO)], "main: invocations of the new version, which counts its requests, has no value: unsupported SLI"),
        (
            &[("slo.yaml", "spec_version: '1.0'\nobjectives: [{sli: errors, pass: [{criteria: ['<5']}]}]\n"), ("sli.yaml", SLI)],
            "no target score",
        ),
    ];
    for (files, why) in cases {
        let mut stand = Stand::judged(&next, files);
        measured(&stand, (60.0, 2.0), (540.0, 2.0));
        stand.apply(&next);
        stand.pass(Span::seconds(62));
        assert_eq!((stand.status(), stand.alias("live").as_str()), (Status::Running, "1 10%2"));
        assert!(report(&stand).message.contains(why), "{why}: {:?}", report(&stand));
        told(&stand, "; it holds until it is told to proceed");
    }
}

/// Values over time: the same averages may hide what a test of ranks sees, and the other way round.
#[test]
fn values_over_time_are_compared_by_ranks() {
    let higher: Vec<f64> = (0..10).map(|n| 120.0 + f64::from(n)).collect();
    let before: Vec<f64> = (0..10).map(|n| 80.0 + f64::from(n)).collect();
    let told = "main: latency is higher than before by 40";
    for (direction, new, status, alias, why) in [
        (Direction::Increase, &higher, Status::Failed, "1", told),
        (Direction::Either, &higher, Status::Failed, "1", told),
        (Direction::Decrease, &higher, Status::Complete, "2", ""),
        (Direction::Increase, &before, Status::Complete, "2", ""),
    ] {
        let mann_whitney = vec![Distribution { sli: "latency".into(), direction }];
        let next = canary(&[(10, Some(60))], Analysis { mann_whitney, ..analysis() });
        let mut stand = Stand::judged(&next, &[("slo.yaml", SLO), ("sli.yaml", SLI)]);
        measured(&stand, (60.0, 2.0), (540.0, 2.0));
        for (version, values) in [(2, new), (1, &before)] {
            stand.sources.state().series.insert(("main".into(), format!("latency of {version}")), values.clone());
        }
        stand.apply(&next);
        stand.pass(Span::seconds(62));
        stand.assert_ended(status, alias);
        assert!(report(&stand).message.starts_with(why), "{:?}", report(&stand));
    }
}

#[test]
fn without_values_over_time_nothing_is_known() {
    let mann_whitney = vec![Distribution { sli: "latency".into(), direction: Direction::Either }];
    let next = canary(&[(10, Some(60))], Analysis { mann_whitney, ..analysis() });
    let mut stand = deploying(&next, (60.0, 2.0), (540.0, 2.0));
    stand.pass(Span::seconds(62));
    let seen = report(&stand);
    assert_eq!((seen.result.as_str(), stand.status()), ("inconclusive", Status::Running));
    assert!(seen.message.contains("latency of the new version has no values over time"), "{}", seen.message);
}

/// The files count as they were when the first window was judged.
#[test]
fn files_that_change_meanwhile_change_nothing() {
    let next = canary(&[(10, Some(180))], analysis());
    let mut stand = deploying(&next, (60.0, 2.0), (540.0, 2.0));
    stand.pass(Span::seconds(62));
    project::write(&stand.world, "shop", ("", "slo.yaml"), Some(&SLO.replace("<5", "<1"))).unwrap();
    stand.pass(Span::minutes(3));
    stand.assert_ended(Status::Complete, "2");
}

#[test]
fn the_first_version_and_a_rollback_are_not_judged() {
    let next = canary(&[(10, Some(60))], analysis());
    let mut stand = Stand::new();
    stand.apply(&next);
    stand.pass(Span::seconds(1));
    stand.assert_ended(Status::Complete, "2");
    assert_eq!(stand.sources.state().asked.len(), 0);

    let mut stand = deploying(&next, (60.0, 2.0), (540.0, 2.0));
    stand.pass(Span::seconds(62));
    stand.assert_ended(Status::Complete, "2");
    let asked = stand.sources.state().asked.len();
    let back = serde_json::from_value(json!({"config": false, "application": true})).unwrap();
    stand.command(Command::Rollback(back));
    stand.pass(Span::seconds(2));
    stand.assert_ended(Status::Complete, "1");
    assert_eq!(stand.sources.state().asked.len(), asked);
}

/// In a few seconds, some sources have no value at all.
#[test]
fn a_short_rest_of_the_bake_belongs_to_the_window_before() {
    for (bake, lengths) in [(125, vec![60, 65]), (65, vec![65]), (150, vec![60, 60, 30]), (5, vec![60])] {
        let next = canary(&[(10, Some(bake))], analysis());
        let mut stand = deploying(&next, (60.0, 2.0), (540.0, 2.0));
        stand.pass(Span::minutes(5));
        stand.assert_ended(Status::Complete, "2");
        let asked = stand.sources.state().asked.clone();
        let found: Vec<i64> = asked.iter().step_by(2).map(|one| (one.period.end - one.period.start).0 / 1000).collect();
        assert_eq!(found, lengths, "a bake of {bake} s");
    }
}

/// The version before needs requests, too, if values over time are compared with its own.
#[test]
fn values_over_time_need_requests_of_both_versions() {
    let mann_whitney = vec![Distribution { sli: "latency".into(), direction: Direction::Either }];
    let next = canary(&[(10, Some(60))], Analysis { mann_whitney, ..analysis() });
    let fixed = SLO.replace("'<=+50%', ", "");
    let mut stand = Stand::judged(&next, &[("slo.yaml", &fixed), ("sli.yaml", SLI)]);
    measured(&stand, (60.0, 2.0), (3.0, 0.0));
    for version in [1, 2] {
        stand.sources.state().series.insert(("main".into(), format!("latency of {version}")), vec![80.0, 81.0]);
    }
    stand.apply(&next);
    stand.pass(Span::seconds(62));
    assert_eq!(report(&stand).message, "main: invocations of the version before is 3, and 50 are needed");
}

#[test]
fn a_window_is_looked_at_when_its_metrics_have_arrived() {
    let next = canary(&[(10, Some(60))], analysis());
    let mut stand = Stand::judged(&next, &[("slo.yaml", SLO), ("sli.yaml", SLI)]);
    let delay = Span::seconds(90);
    let late = keelway_world::evaluations::declared("main", Some(delay));
    keelway_world::evaluations::project::declare(&stand.world, "shop", "main", Some(&late)).unwrap();
    measured(&stand, (60.0, 2.0), (540.0, 2.0));
    stand.apply(&next);
    stand.pass(Span::seconds(140));
    assert!(stand.sources.state().asked.is_empty(), "the window has ended, and its metrics are on their way");
    stand.pass(Span::seconds(15));
    let asked = stand.sources.state().asked[0].clone();
    assert!(asked.at >= asked.period.end + delay, "{asked:?}");
    assert_eq!(report(&stand).result, "pass");
}

#[test]
fn a_deployment_that_is_paused_or_cancelled_is_not_judged() {
    let next = canary(&[(10, Some(60))], analysis());
    let mut stand = deploying(&next, (60.0, 9.0), (540.0, 2.0));
    stand.command(Command::Pause);
    stand.pass(Span::minutes(10));
    assert_eq!((stand.alias("live").as_str(), stand.sources.state().asked.len()), ("1 10%2", 0));
    measured(&stand, (600.0, 2.0), (5400.0, 2.0));
    stand.command(Command::Resume);
    stand.pass(Span::seconds(2));
    stand.assert_ended(Status::Complete, "2");
    let window = report(&stand).window;
    assert!(window.end - window.start > Span::minutes(9), "the pause belongs to the window: {window:?}");
}

/// Every message twice, and a function that stops after any request: the same story, and no window is judged twice.
#[test]
fn a_crash_anywhere_changes_nothing() {
    let next = canary(&[(10, Some(60)), (50, Some(60))], analysis());
    let mut whole = deploying(&next, (60.0, 2.0), (540.0, 2.0));
    whole.pass(Span::minutes(10));
    whole.assert_ended(Status::Complete, "2");
    let requests = whole.requests;
    for after in 1..=requests {
        let mut stand = deploying_until(&next, after);
        stand.pass(Span::minutes(20));
        stand.assert_ended(Status::Complete, "2");
        assert_eq!(stand.log(), whole.log(), "after request {after}");
    }
    let mut twice = Stand::judged(&next, &[("slo.yaml", SLO), ("sli.yaml", SLI)]);
    measured(&twice, (60.0, 2.0), (540.0, 2.0));
    twice.twice = true;
    twice.apply(&next);
    twice.pass(Span::minutes(10));
    twice.assert_ended(Status::Complete, "2");
    assert_eq!(twice.log(), whole.log());
}

fn deploying_until(next: &Definition, after: u64) -> Stand {
    let mut stand = Stand::judged(next, &[("slo.yaml", SLO), ("sli.yaml", SLI)]);
    measured(&stand, (60.0, 2.0), (540.0, 2.0));
    stand.crash_after = Some(after);
    stand.apply(next);
    stand
}
