//! Moments and orders in which a decision could go either way.

use super::*;
use crate::condition::Condition;
use crate::note::Note;

/// v2 is on its way into staging, and a run is finished before the next one begins.
fn finishing(names: &[&str]) -> Stand {
    let mut stand = Stand::new(Definition { in_flight: InFlight::Finish, ..definition(names) });
    stand.observe("dev", "v2/R");
    stand
}

fn run(stand: &Stand) -> &str {
    &stand.x.run.as_ref().unwrap().revision
}

fn see(stand: &mut Stand, name: &str, seen: &Seen) {
    let attempt = stand.attempt(name);
    stand.give(Input::Seen(&attempt, seen));
}

/// By a sequence instead of a pull request.
fn by_sequence(names: &[&str]) -> Definition {
    let sequence = Sequence { project: None, stage: None, service: "shop".into(), name: "delivery".into() };
    let mut definition = definition(names);
    definition.promotion.as_mut().unwrap().strategy = Strategy::Sequence(sequence);
    definition
}

fn sequence_runs(stand: &mut Stand, name: &str) {
    stand.end(name, &AttemptResult::Created(Made::Sequence { context: "c".into() }));
}

#[test]
fn a_run_that_only_a_person_can_finish_makes_way_for_the_next_one() {
    type Change = fn(&mut Stand);
    let ways: [(&str, Change, &str); 7] = [
        ("goes on", |_| {}, "v2"),
        ("closed", |stand| see(stand, "staging", &Seen::Closed("closed".into())), "v3"),
        ("failed for good", |stand| see(stand, "staging", &Seen::Failed("failed".into())), "v3"),
        (
            "no way into prod",
            |stand| {
                stand.observe("staging", "v2/R");
                let definition = stand.definition.as_mut().unwrap();
                (definition.environments[1].promotion, definition.promotion) = (definition.promotion.clone(), None);
            },
            "v3",
        ),
        (
            "drifted",
            |stand| {
                stand.observe("staging", "v2/R");
                stand.observe("staging", "v1/R");
            },
            "v3",
        ),
        (
            "failed although it runs",
            |stand| {
                see(stand, "staging", &Seen::Failed("the evaluation failed".into()));
                stand.observe("staging", "v2/R");
            },
            "v3",
        ),
        (
            "abandoned everywhere",
            |stand| {
                stand.command(Command::Abandon("v2".into()), "ann");
            },
            "v3",
        ),
    ];
    for (way, change, expected) in ways {
        let mut stand = finishing(&["dev", "staging", "prod"]);
        stand.create("staging", 1);
        change(&mut stand);
        stand.observe("dev", "v3/R");
        assert_eq!(run(&stand), expected, "{way}");
    }
    let mut stand = finishing(&["dev", "staging", "prod"]);
    stand.end("staging", &failed());
    stand.observe("dev", "v3/R");
    assert_eq!(run(&stand), "v2", "it is attempted again by itself");
}

#[test]
fn a_run_is_not_finished_while_its_last_sequence_goes_on() {
    let mut stand = Stand::new(Definition { in_flight: InFlight::Finish, ..by_sequence(&["dev", "staging"]) });
    stand.observe("dev", "v2/R");
    sequence_runs(&mut stand, "staging");
    stand.observe("staging", "v2/R");
    stand.observe("dev", "v3/R");
    assert_eq!((run(&stand), stand.promotion("staging").phase), ("v2", Phase::Created));
    see(&mut stand, "staging", &Seen::Succeeded("passed".into()));
    assert_eq!(run(&stand), "v3");
}

#[test]
fn what_is_superseded_has_arrived_only_if_it_has_succeeded() {
    for (ends, told) in
        [(None, false), (Some(Seen::Failed("failed".into())), false), (Some(Seen::Succeeded("passed".into())), true)]
    {
        let mut stand = Stand::new(by_sequence(&["dev", "staging"]));
        stand.observe("dev", "v2/R");
        sequence_runs(&mut stand, "staging");
        if let Some(seen) = &ends {
            see(&mut stand, "staging", seen);
        }
        stand.fact("staging", "v2/R");
        stand.observe("dev", "v3/R");
        assert_eq!(stand.told.contains(&"staging completed v2".to_owned()), told, "{ends:?}");
    }
}

#[test]
fn nothing_begins_while_the_first_environment_is_in_between() {
    for (definition, arrived) in [(definition(&["dev", "staging"]), false), (by_sequence(&["dev", "staging"]), true)] {
        let mut stand = Stand::new(definition);
        stand.observe("dev", "v2/R");
        stand.end("staging", &failed());
        if arrived {
            stand.observe("staging", "v2/R");
        }
        stand.observe("dev", "v2/N");
        stand.pass(Span::minutes(600));
        assert_eq!(stand.attempts().len(), 1, "{arrived}");
        stand.observe("dev", "v2/R");
        assert_eq!(stand.attempts().len(), 2, "{arrived}");
    }
}

/// Prod is on its way; staging, which had the revision, is unhealthy, and qa was put between them.
fn overtaken(prod: &AttemptResult, qa: &[&str]) -> Stand {
    let mut stand = Stand::new(definition(&["dev", "staging", "prod"]));
    stand.observe("dev", "v2/R");
    stand.create("staging", 1);
    stand.observe("staging", "v2/R");
    stand.end("prod", prod);
    stand.definition = Some(definition(&["dev", "staging", "qa", "prod"]));
    for what in qa {
        stand.observe("qa", what);
    }
    stand.fact("qa", qa.last().unwrap_or(&"v1/R"));
    stand.observe("staging", "v2/N");
    stand
}

#[test]
fn what_overtakes_an_environment_is_taken_back_also_while_one_before_it_is_unhealthy() {
    let created = || {
        let url = "https://git.test/o/r/pulls/2".to_owned();
        AttemptResult::Created(Made::PullRequest { number: 2, url, branch: "b2".into(), head: "h".into(), mergeable: None })
    };
    let kept = |stand: &Stand| stand.x.environments["prod"].promotion.is_some();
    assert!(!kept(&overtaken(&created(), &[])), "qa never had it");
    assert!(!kept(&overtaken(&failed(), &[])), "it would be attempted again");
    assert!(kept(&overtaken(&created(), &["v2/R", "v2/N"])), "qa had it");
    let never = AttemptResult::Failed { why: Condition::new("Broken", "no"), retry: Retry::Never };
    assert!(kept(&overtaken(&never, &[])), "nothing is on its way");
    assert!(kept(&overtaken(&AttemptResult::Done(Made::Notification { id: "n".into() }), &[])), "it is done");
}

#[test]
fn what_older_code_had_completed_counts_as_passed() {
    let mut stand = Stand::new(definition(&["dev", "staging", "prod"]));
    stand.observe("dev", "v2/R");
    stand.create("staging", 1);
    stand.observe("staging", "v2/R");
    stand.create("prod", 2);
    // It did not note this.
    stand.x.environments.get_mut("staging").unwrap().passed = None;
    stand.observe("staging", "v1/R");
    assert_eq!(stand.promotion("prod").phase, Phase::Created);
}

#[test]
fn the_numbers_of_records_go_round() {
    let mut stand = Stand::new(definition(&["dev", "staging"]));
    let number = |stand: &Stand| stand.x.record.map(|id| id.number);
    stand.observe("dev", "v2/R");
    let first = number(&stand).unwrap();
    stand.observe("dev", "v3/R");
    assert_eq!(number(&stand), Some(first + 1));
    stand.x.record.as_mut().unwrap().number = 3998;
    stand.observe("dev", "v4/R");
    assert_eq!(number(&stand), Some(3999));
    stand.observe("dev", "v5/R");
    assert_eq!(number(&stand), Some(0));
}

#[test]
fn what_was_attempted_needs_no_approval_that_is_asked_for_later() {
    let mut stand = Stand::new(definition(&["dev", "staging"]));
    stand.observe("dev", "v2/R");
    stand.end("staging", &failed());
    stand.definition.as_mut().unwrap().promotion.as_mut().unwrap().manual = true;
    let due = stand.promotion("staging").due.unwrap();
    stand.pass(due - stand.now);
    assert_eq!(stand.attempts(), ["staging v2", "staging v2"]);
    // What nobody has attempted yet does.
    stand.create("staging", 1);
    let old = stand.attempt("staging");
    stand.observe("dev", "v3/R");
    stand.give(Input::Closed(&old, &Closed::Closed));
    assert_eq!((stand.attempts().len(), stand.x.condition.reason.as_str()), (2, "ApprovalNeeded"));
}

#[test]
fn what_failed_for_good_is_attempted_again_when_the_pipeline_says_another_way() {
    let mut stand = Stand::new(definition(&["dev", "staging"]));
    stand.observe("dev", "v2/R");
    stand.end("staging", &AttemptResult::Failed { why: Condition::new("Broken", "no"), retry: Retry::Never });
    stand.pass(Span::minutes(600));
    assert_eq!(stand.attempts().len(), 1);
    let Strategy::PullRequest(request) = &mut stand.definition.as_mut().unwrap().promotion.as_mut().unwrap().strategy else {
        panic!()
    };
    request.base_branch = "other".into();
    stand.evaluate();
    assert_eq!(stand.attempts().len(), 2);
}

#[test]
fn an_earlier_attempt_neither_begins_nor_goes_on() {
    let mut stand = Stand::new(definition(&["dev", "staging"]));
    stand.observe("dev", "v2/R");
    let first = stand.attempt("staging");
    stand.give(Input::Begin(&first));
    stand.pass(LEASE);
    let second = stand.attempt("staging");
    assert_eq!(second.attempt, 2);
    stand.give(Input::Begin(&first));
    assert!(!stand.promotion("staging").claimed);
    // Nobody has begun the second one either.
    let due = stand.promotion("staging").due;
    stand.now = stand.now + Span(1);
    stand.give(Input::Beat(&second));
    stand.give(Input::Beat(&first));
    assert_eq!(stand.promotion("staging").due, due);
    stand.give(Input::Begin(&second));
    let due = stand.promotion("staging").due;
    stand.now = stand.now + Span(1);
    stand.give(Input::Beat(&first));
    assert_eq!(stand.promotion("staging").due, due);
    stand.give(Input::Beat(&second));
    assert_eq!(stand.promotion("staging").due, Some(stand.now + LEASE));
}

#[test]
fn a_host_that_names_a_time_is_left_alone_until_then_and_a_moment_in_any_case() {
    for (minutes, due) in [(60, Span::minutes(60)), (-60, BACKOFF)] {
        let mut stand = Stand::new(definition(&["dev", "staging"]));
        stand.observe("dev", "v2/R");
        let at = stand.now + Span::minutes(minutes);
        stand.end("staging", &AttemptResult::Failed { why: Condition::new("Limited", "later"), retry: Retry::At(at) });
        assert_eq!(stand.promotion("staging").due, Some(stand.now + due));
    }
}

#[test]
fn an_attempt_that_made_nothing_was_merged_by_nobody() {
    let mut stand = Stand::new(definition(&["dev", "staging"]));
    stand.observe("dev", "v2/R");
    stand.end("staging", &AttemptResult::Failed { why: Condition::new("Broken", "no"), retry: Retry::Never });
    see(&mut stand, "staging", &Seen::Succeeded("merged".into()));
    assert_eq!(stand.promotion("staging").phase, Phase::Failed);
    see(&mut stand, "staging", &Seen::Closed("closed".into()));
    assert!(!stand.promotion("staging").asked);
}

#[test]
fn what_may_have_been_merged_late_is_asked_for_once() {
    let mut stand = Stand::new(definition(&["dev", "staging", "prod"]));
    stand.observe("dev", "v2/R");
    stand.create("staging", 1);
    see(&mut stand, "staging", &Seen::Closed("closed".into()));
    stand.observe("staging", "v2/R");
    assert!(stand.promotion("staging").is_watched());
    see(&mut stand, "staging", &Seen::Unobserved(Condition::new("Forbidden", "no")));
    assert!(stand.promotion("staging").is_watched(), "it was not seen");
    see(&mut stand, "staging", &Seen::Closed("closed".into()));
    assert!(stand.promotion("staging").asked && !stand.promotion("staging").is_watched());
}

#[test]
fn an_environment_is_held_on_the_revision_that_was_named_last_by_who_named_it_first() {
    let mut stand = Stand::new(definition(&["dev", "staging"]));
    let held = |stand: &Stand| {
        let (revision, note) = stand.x.environments["staging"].hold.clone().unwrap();
        (revision, note.by)
    };
    for (revision, by, expected) in [("v1", "ann", "ann"), ("v1", "bob", "ann"), ("v2", "bob", "bob")] {
        stand.command(Command::Hold(at("staging", revision)), by);
        assert_eq!(held(&stand), (revision.to_owned(), expected.to_owned()));
    }
}

#[test]
fn a_wake_up_that_is_early_or_was_replaced_decides_nothing_and_a_late_one_does() {
    let mut stand = Stand::new(definition(&["dev", "staging"]));
    stand.observe("dev", "v2/R");
    let due = stand.x.wake.unwrap();
    // Something else has changed, which an evaluation would see.
    stand.fact("staging", "?");
    let before = stand.x.clone();
    for (now, at) in [(due - Span(1), due), (due + Span(1), due + Span(1)), (due - Span(1), due + Span(1))] {
        stand.now = now;
        stand.give(Input::Wake(at));
        assert_eq!(stand.x, before);
    }
    stand.now = due + Span::seconds(5);
    stand.give(Input::Wake(due));
    assert_eq!(stand.x.condition.reason, "TargetNotReadable");
}

#[test]
fn an_environment_that_comes_back_in_a_run_asks_for_its_approval_again() {
    let with = |names: &[&str]| Some(Definition { promotion: Some(settings(true)), ..definition(names) });
    let mut stand = Stand::new(with(&["dev", "staging"]).unwrap());
    stand.observe("dev", "v2/R");
    stand.command(Command::Approve(at("staging", "v2")), "ann");
    stand.create("staging", 1);
    let old = stand.attempt("staging");
    stand.definition = with(&["dev", "prod"]);
    stand.evaluate();
    stand.definition = with(&["dev", "staging"]);
    stand.evaluate();
    stand.give(Input::Closed(&old, &Closed::Closed));
    assert_eq!((stand.promotion("staging").again, stand.x.condition.reason.as_str()), (1, "ApprovalNeeded"));
    stand.command(Command::Approve(at("staging", "v2")), "ann");
    assert_eq!(stand.attempts(), ["staging v2", "staging v2"]);
}

#[test]
fn what_has_ended_badly_and_what_nobody_can_look_at() {
    let mut stand = Stand::new(definition(&["dev", "staging"]));
    stand.observe("dev", "v2/R");
    stand.create("staging", 1);
    let open = stand.promotion("staging").clone();
    let failed = |due, effect| Promotion { phase: Phase::Failed, due, effect, ..open.clone() };
    assert!(failed(None, open.effect.clone()).ended_badly());
    assert!(!failed(Some(BEGIN), open.effect.clone()).ended_badly(), "it is attempted again");
    assert!(!failed(None, None).ended_badly(), "it made nothing");
    let refused = Condition::new("Forbidden", "no");
    let of = |phase, effect| Promotion { phase, effect, why: refused.clone(), ..open.clone() }.is_unobserved();
    let sequence = Some(Made::Sequence { context: "c".into() });
    assert_eq!(
        [of(Phase::Created, open.effect.clone()), of(Phase::Succeeded, open.effect.clone()), of(Phase::Created, sequence)],
        [true, false, false]
    );
    assert!(!open.is_unobserved());
    assert_eq!(serde_json::to_string(&Note::default()).unwrap(), r#"{"t":0}"#);
}

#[test]
fn what_nobody_watches_is_not_looked_at() {
    let mut stand = Stand::new(definition(&["dev", "staging"]));
    stand.observe("dev", "v2/R");
    stand.end("staging", &AttemptResult::Failed { why: Condition::new("Broken", "no"), retry: Retry::Never });
    let attempt = stand.attempt("staging");
    let facts =
        Facts { now: stand.now, cause: Cause::default(), definition: stand.definition.as_ref(), observations: &stand.observations };
    let refused = Seen::Unobserved(Condition::new("Forbidden", "no"));
    assert_eq!(decide(&stand.x, Input::Seen(&attempt, &refused), &facts), Decision::Late);
    let text = serde_json::to_string(&Promotion { fruitless: 0, ..stand.promotion("staging").clone() }).unwrap();
    assert!(!text.contains("\"fl\""), "{text}");
}
