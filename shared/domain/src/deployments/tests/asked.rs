//! What people and sequences ask for, and what deployers tell.

use super::stand::{Stand, definition, on_image, refused, tag};
use crate::deployments::definition::{AutoRollback, Concurrency, ImageChange, Trigger};
use crate::deployments::{
    Back, Call, Command, Input, LEASE, Latest, MAX_TARGETS, Progress, Status, TargetProgress, Task, Why, message,
};
use crate::note::Note;
use crate::time::Span;

fn deployed() -> Stand {
    let mut stand = Stand::new(definition(vec![Trigger::ConfigChange, on_image(true)]));
    stand.push("shop@sha256:1");
    stand.deploy(0);
    stand
}

fn tell(stand: &mut Stand, progress: Progress) -> Progress {
    let token = stand.token();
    stand.call(Call::Heartbeat { token, running: true, lease: LEASE, progress });
    stand.x.last.clone().unwrap().progress
}

#[test]
fn what_a_deployer_does_not_tell_again_stays() {
    let mut stand = deployed();
    stand.set_env("b");
    stand.settle();
    stand.claim();
    let told = Progress { message: "half".into(), log: "https://log".into(), tail: "a line".into(), ..Progress::default() };
    let known = tell(&mut stand, told);
    assert_eq!(tell(&mut stand, Progress::default()), known);
    assert_eq!((known.message.as_str(), known.log.as_str(), known.tail.as_str()), ("half", "https://log", "a line"));
}

#[test]
fn so_many_targets_are_kept_and_those_that_are_known_still_change() {
    let mut stand = deployed();
    stand.set_env("b");
    stand.settle();
    stand.claim();
    let all = |status| {
        let at = |n: usize| (format!("target {n:03}"), TargetProgress { status, message: String::new() });
        Progress { targets: (0..=MAX_TARGETS).map(at).collect(), ..Progress::default() }
    };
    assert_eq!(tell(&mut stand, all(Status::Running)).targets.len(), MAX_TARGETS);
    let known = tell(&mut stand, all(Status::Complete)).targets;
    assert!(known.len() == MAX_TARGETS && known.values().all(|at| at.status == Status::Complete));
}

#[test]
fn a_command_is_noted_with_the_version_that_it_made() {
    let mut stand = deployed();
    for (command, version) in [
        (Command::Pause, None),
        (Command::Resume, None),
        (Command::Latest(Latest::default()), Some(2)),
        // It waits until the one before it has ended.
        (Command::Latest(Latest { supersede: true, ..Latest::default() }), Some(3)),
    ] {
        stand.command(command.clone()).unwrap();
        assert_eq!(stand.obeyed.last().map(|obeyed| (obeyed.command.clone(), obeyed.version)), Some((command, version)));
        stand.claim();
    }
}

#[test]
fn an_image_that_is_not_followed_is_no_change_unless_somebody_asks_for_it() {
    let mut stand = Stand::new(definition(vec![Trigger::ConfigChange, on_image(false)]));
    stand.push("shop@sha256:1");
    stand.deploy(0);
    stand.push("shop@sha256:2");
    let if_changed = Latest { if_changed: true, ..Latest::default() };
    assert!(refused(stand.command(Command::Latest(if_changed))).ends_with("nothing has changed"));
    stand.latest().unwrap();
    assert_eq!((stand.x.latest, stand.image()), (2, "shop@sha256:2"));
}

#[test]
fn a_task_waits_for_what_runs_or_takes_its_place_as_the_config_says() {
    for (concurrency, cancelled) in [(Concurrency::Queue, false), (Concurrency::Supersede, true)] {
        let mut stand = deployed();
        stand.apply(|definition| definition.concurrency = concurrency);
        stand.set_env("b");
        stand.settle();
        stand.claim();
        let task = Task { name: "deployment".into(), context: "c".into(), triggered: "t".into(), place: Default::default() };
        let latest = Latest { task: Some(Box::new(task)), ..Latest::default() };
        stand.give(Input::Command(&Command::Latest(latest), &Note { id: 99, ..Note::default() }));
        assert_eq!(stand.x.pending.as_ref().map(|pending| pending.n), Some(3), "{concurrency:?}");
        assert_eq!(stand.x.last.as_ref().map(|last| last.cancel.is_some()), Some(cancelled), "{concurrency:?}");
    }
}

#[test]
fn a_change_that_has_not_settled_is_cancelled_although_nothing_runs() {
    let mut stand = deployed();
    stand.set_env("b");
    stand.command(Command::CancelAll).unwrap();
    stand.pass(Span::minutes(10));
    assert_eq!((stand.x.latest, stand.x.condition.reason.as_str()), (1, "Cancelled"));
}

#[test]
fn only_what_failed_is_retried_and_the_refusal_names_the_way_out() {
    let mut stand = deployed();
    assert!(refused(stand.command(Command::Retry)).ends_with("Ask for the latest version to deploy it again"));
    stand.set_env("b");
    stand.settle();
    assert!(refused(stand.command(Command::Retry)).ends_with("Cancel it first"));
}

#[test]
fn a_version_that_is_retried_has_its_time_to_be_claimed_again() {
    for (seconds, status) in [(600, Status::Failed), (0, Status::New)] {
        let mut stand = deployed();
        stand.apply(|definition| definition.strategy.timeout = Span::seconds(seconds));
        stand.set_env("b");
        stand.deploy(1);
        stand.command(Command::Retry).unwrap();
        stand.pass(Span::seconds(599));
        assert_eq!(stand.x.last.as_ref().map(|last| last.status), Some(Status::New), "{seconds} s");
        stand.pass(Span::minutes(60));
        assert_eq!(stand.x.last.as_ref().map(|last| last.status), Some(status), "{seconds} s");
    }
}

fn back(release: u64) -> Back {
    Back {
        release: Some(release),
        config: true,
        application: true,
        parts: None,
        allow_failed: false,
        by_steps: false,
        again: false,
        group: String::new(),
        task: None,
    }
}

fn task() -> Option<Box<Task>> {
    Some(Box::new(Task { name: "deployment".into(), context: "c".into(), triggered: "t".into(), place: Default::default() }))
}

#[test]
fn a_rollback_that_changes_nothing_is_made_only_if_somebody_insists_or_a_sequence_waits_for_it() {
    for (again, task, done) in [(false, None, false), (true, None, true), (false, task(), true)] {
        let mut stand = deployed();
        stand.command(Command::Latest(Latest { again: true, ..Latest::default() })).unwrap();
        stand.claim();
        stand.end(0);
        let refused = refused(stand.command(Command::Rollback(Back { again, task, ..back(1) })));
        assert_eq!(refused.contains("changes nothing"), !done, "{refused}");
        assert_eq!(stand.x.latest, if done { 3 } else { 2 });
    }
    // The latest failed: the same again may help.
    let mut stand = deployed();
    stand.command(Command::Latest(Latest { again: true, ..Latest::default() })).unwrap();
    stand.claim();
    stand.end(1);
    stand.command(Command::Rollback(back(1))).unwrap();
    assert_eq!(stand.x.latest, 3);
}

#[test]
fn a_rollback_of_a_sequence_waits_behind_what_runs_if_the_config_says_so() {
    for (concurrency, task, cancelled) in
        [(Concurrency::Queue, task(), false), (Concurrency::Queue, None, true), (Concurrency::Supersede, task(), true)]
    {
        let mut stand = deployed();
        stand.apply(|definition| definition.concurrency = concurrency);
        stand.set_env("b");
        stand.deploy(0);
        stand.set_env("c");
        stand.settle();
        stand.claim();
        stand.command(Command::Rollback(Back { task, ..back(1) })).unwrap();
        assert_eq!(stand.x.last.as_ref().map(|last| (last.n, last.cancel.is_some())), Some((3, cancelled)), "{concurrency:?}");
        assert_eq!(stand.x.pending.as_ref().map(|pending| pending.n), Some(4));
    }
}

#[test]
fn a_version_says_in_a_few_words_why_it_is_there() {
    let mut stand = deployed();
    assert_eq!(stand.x.last.as_ref().unwrap().message, "image change", "also if a change of the config would cause one");
    assert!(
        stand
            .x
            .last
            .as_ref()
            .unwrap()
            .causes
            .iter()
            .all(|why| matches!(why, Why::ImageChange { at, .. } if *at == stand.heads[&tag("latest")].at))
    );
    // A container that is new has another image than before, and that is a change of the config.
    stand.apply(|definition| {
        let containers = definition.template["spec"]["containers"].as_array_mut().unwrap();
        containers.push(serde_json::json!({"name": "new", "image": "new:1"}));
        definition.triggers.push(Trigger::ImageChange(ImageChange {
            automatic: true,
            from: tag("latest"),
            containers: vec!["new".into()],
        }));
    });
    stand.settle();
    assert!(
        matches!(stand.x.last.as_ref().unwrap().causes[..], [Why::ConfigChange { .. }]),
        "{:?}",
        stand.x.last.as_ref().unwrap().causes
    );
    let rollback = |notes: &str| Why::Rollback { release: 3, by: "ann".into(), notes: notes.into(), delivery: None };
    let auto = Why::AutoRollback { of: 4, release: 3, reason: "it failed".into() };
    for (why, told) in [
        (rollback(""), "rollback to #3"),
        (rollback("too slow"), "rollback to #3: too slow"),
        (auto, "automatic rollback to #3, because #4 failed"),
        (Why::Manual { by: "ann".into(), delivery: None }, "manual change"),
    ] {
        assert_eq!(message(&[why]), told);
    }
}

#[test]
fn a_deleted_config_is_over_when_what_ran_has_ended() {
    let mut stand = deployed();
    stand.set_env("b");
    stand.settle();
    stand.claim();
    stand.applied = None;
    stand.evaluate();
    assert!(stand.x.deleted && !stand.x.over());
    stand.end(1);
    assert!(stand.x.over());
}

#[test]
fn the_answer_to_a_task_that_failed_says_what_is_rolled_back() {
    for paused in [false, true] {
        let mut definition = definition(vec![]);
        definition.auto_rollback = Some(AutoRollback { on_failure: true, alarms: vec![], bake: Span(0) });
        let mut stand = Stand::new(definition);
        stand.command(Command::Latest(Latest::default())).unwrap();
        stand.deploy(0);
        let latest = Latest { task: task(), image: "shop:by-hand".into(), ..Latest::default() };
        stand.give(Input::Command(&Command::Latest(latest), &Note { id: 99, ..Note::default() }));
        stand.settle();
        stand.claim();
        stand.beat();
        if paused {
            stand.command(Command::Pause).unwrap();
        }
        stand.end(1);
        let said = stand.answers.iter().any(|told| told.ends_with("the application is rolled back to cart-1"));
        assert_eq!(said, !paused, "{:?}", stand.answers);
    }
}

#[test]
fn a_version_that_a_task_asked_for_says_which_delivery_also_when_it_is_retried() {
    let place = ["shop", "dev", "cart"].map(str::to_owned);
    let task =
        |name: &str| Some(Box::new(Task { name: name.into(), context: "c-1".into(), triggered: "t".into(), place: place.clone() }));
    let mut stand = deployed();
    let latest = Latest { task: task("deployment"), ..Latest::default() };
    stand.give(Input::Command(&Command::Latest(latest), &Note { id: 99, by: "keelway-sequences".into(), ..Note::default() }));
    let told = |stand: &Stand| stand.x.last.as_ref().map(|last| (last.n, last.message.clone())).unwrap();
    assert_eq!(told(&stand), (2, "task deployment of shop/dev/cart (c-1)".into()));
    stand.claim();
    stand.end(1);
    stand.command(Command::Retry).unwrap();
    assert_eq!(told(&stand), (2, "task deployment of shop/dev/cart (c-1)".into()));
    let last = stand.x.last.as_ref().unwrap();
    let Why::Manual { delivery: Some(delivery), .. } = &last.causes[0] else { panic!("{:?}", last.causes) };
    assert_eq!(serde_json::to_value(delivery).unwrap()["context"], "c-1");
    // What was stored before has no delivery.
    assert_eq!(
        serde_json::from_str::<Why>(r#"{"type":"Manual","by":"ann"}"#).unwrap(),
        Why::Manual { by: "ann".into(), delivery: None }
    );
}
