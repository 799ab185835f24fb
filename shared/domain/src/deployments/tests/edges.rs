//! Moments and orders in which a decision could go either way.

use super::stand::{Stand, definition, on_image, tag};
use crate::deployments::announce::observed;
use crate::deployments::definition::{
    Action, AutoRollback, Concurrency, Definition, FailurePolicy, Hook, ImageChange, OnDrift, Resume, Starter, Trigger,
};
use crate::deployments::facts::ALARM_SKEW;
use crate::deployments::registry::Head;
use crate::deployments::{
    Applied, Call, Claim, Command, Decision, Input, Latest, Order, Progress, Request, SOURCE, Status, TAKE_UP, Task, Version,
    answer, change_that_waits, generate, target,
};
use crate::note::Note;
use crate::time::{Span, Timestamp};
use serde_json::json;

fn deployed() -> Stand {
    let mut stand = Stand::new(definition(vec![Trigger::ConfigChange, on_image(true)]));
    stand.push("shop@sha256:1");
    stand.deploy(0);
    stand
}

fn reason(stand: &Stand) -> &str {
    &stand.x.condition.reason
}

#[test]
fn triggers_that_a_rollback_suspended_fire_again_with_an_image_that_is_newer_than_that() {
    let mut stand = deployed();
    stand.apply(|definition| definition.resume = Resume::OnNewerImage);
    stand.push("shop@sha256:2");
    stand.deploy(0);
    stand.back(None).unwrap();
    stand.deploy(0);
    let suspended = stand.x.suspended.clone().unwrap().note.at;
    for (at, version) in [(suspended, 3), (suspended + Span(1), 4)] {
        stand.heads.insert(tag("latest"), Head { image: "shop@sha256:3".into(), at, by: String::new() });
        stand.evaluate();
        stand.settle();
        assert_eq!(stand.x.latest, version, "{:?}", stand.x.condition);
    }
}

#[test]
fn triggers_that_a_person_suspended_stay_so_whatever_is_pushed() {
    let mut stand = deployed();
    stand.apply(|definition| definition.resume = Resume::OnNewerImage);
    stand.command(Command::SuspendTriggers).unwrap();
    stand.push("shop@sha256:2");
    stand.settle();
    assert_eq!((stand.x.latest, reason(&stand)), (1, "TriggersSuspended"));
}

#[test]
fn what_the_author_of_a_config_asks_for_waits_for_its_images() {
    let mut stand = Stand::new(definition(vec![Trigger::Manual, on_image(true)]));
    stand.applied.as_mut().unwrap().request = Some(Request { version: 1, causes: vec![] });
    stand.evaluate();
    assert_eq!((stand.x.latest, stand.snapshots.len()), (0, 0));
    stand.push("shop@sha256:1");
    assert_eq!(stand.x.latest, 1);
}

#[test]
fn a_trigger_for_a_container_that_is_not_there_deploys_nothing() {
    let change = ImageChange { automatic: true, from: tag("latest"), containers: vec!["gone".into()] };
    let mut stand = Stand::new(definition(vec![Trigger::ImageChange(change)]));
    stand.push("shop@sha256:1");
    stand.settle();
    assert_eq!((stand.x.latest, reason(&stand)), (0, ""));
}

#[test]
fn what_is_missing_for_the_first_version_is_told_and_later_only_shown() {
    let other = Trigger::ImageChange(ImageChange { automatic: true, from: tag("none"), containers: vec!["log".into()] });
    let told = |stand: &Stand| stand.told.iter().filter(|told| *told == "trigger.unresolved").count();
    let mut stand = deployed();
    stand.told.clear();
    stand.apply(|definition| definition.triggers.push(other));
    assert_eq!((reason(&stand), told(&stand)), ("Unresolved", 0));
    let gone = ImageChange { automatic: true, from: tag("latest"), containers: vec!["gone".into()] };
    let mut blank = definition(vec![Trigger::ImageChange(gone)]);
    blank.template["spec"]["containers"][0]["image"] = "".into();
    let stand = Stand::new(blank);
    assert_eq!((reason(&stand), told(&stand)), ("Unresolved", 1));
}

#[test]
fn a_failed_version_whose_predecessor_cannot_be_read_is_not_rolled_back_and_nobody_waits_for_it() {
    let mut stand = deployed();
    stand.apply(|definition| {
        definition.auto_rollback = Some(AutoRollback { on_failure: true, alarms: vec![], bake: Span(0) });
    });
    stand.push("shop@sha256:2");
    stand.settle();
    stand.claim();
    stand.damaged = Some("the snapshot is gone".into());
    stand.end(1);
    // It is looked for once more.
    assert!(stand.x.last.as_ref().is_some_and(|last| !last.undo.is_empty()) && stand.x.wake == Some(stand.now));
    stand.settle();
    assert!(stand.x.last.as_ref().is_some_and(|last| last.undo.is_empty() && last.status == Status::Failed));
    assert_eq!((stand.x.latest, stand.x.wake), (2, None));
}

#[test]
fn whoever_is_told_to_pause_is_told_again_if_nothing_is_heard_of_it() {
    let mut started = definition(vec![Trigger::ConfigChange]);
    started.deployer = Some(Starter::Ecs(Default::default()));
    let mut stand = Stand::new(started);
    stand.settle();
    stand.call(Call::Claim { by: SOURCE.into(), id: 7, token: "t".into(), lease: Span::minutes(17) });
    stand.orders.clear();
    stand.command(Command::Pause).unwrap();
    assert!(matches!(stand.orders[..], [Order::Start { n: 1, attempt: 1, .. }]), "{:?}", stand.orders);
    stand.pass(TAKE_UP);
    assert_eq!(stand.orders.len(), 2, "{:?}", stand.orders);
}

#[test]
fn an_evaluation_that_changes_nothing_is_no_commit() {
    let mut stand = deployed();
    stand.pass(Span::minutes(1));
    assert_eq!(stand.give(Input::Evaluate), Decision::Settle);
}

#[test]
fn work_is_offered_again_only_while_nobody_has_it_and_nothing_is_paused() {
    let mut started = definition(vec![Trigger::ConfigChange]);
    started.deployer = Some(Starter::Ecs(Default::default()));
    let mut stand = Stand::new(started);
    stand.settle();
    assert_eq!(stand.orders.len(), 1);
    stand.command(Command::Pause).unwrap();
    stand.pass(Span::minutes(5));
    assert_eq!(stand.orders.len(), 1, "paused: {:?}", stand.orders);
    stand.command(Command::Resume).unwrap();
    assert_eq!(stand.orders.len(), 2);
    stand.claim();
    for _ in 0..10 {
        stand.pass(Span::seconds(30));
        stand.beat();
    }
    assert_eq!(stand.orders.len(), 2, "claimed: {:?}", stand.orders);
}

#[test]
fn each_fact_that_pipelines_are_told_is_newer_than_the_one_before() {
    let mut stand = deployed();
    stand.push("shop@sha256:2");
    stand.deploy(1);
    for exit in [1, 0] {
        stand.command(Command::Retry).unwrap();
        stand.deploy(exit);
    }
    stand.push("shop@sha256:3");
    stand.deploy(0);
    assert_eq!(stand.facts.len(), 10, "{:?}", stand.facts);
    assert!(stand.facts.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", stand.facts);
}

#[test]
fn pipelines_are_told_who_had_a_version_deployed_as_far_as_that_is_known() {
    let mut stand = deployed();
    let by = |stand: &Stand| observed(&stand.x, stand.x.last.as_ref().unwrap(), stand.now).data.get("by").cloned();
    assert_eq!(by(&stand), None, "nobody knows who pushed the image");
    stand.set_env("b");
    stand.deploy(0);
    assert_eq!(by(&stand), Some(json!(["ann"])));
}

#[test]
fn a_wake_up_that_is_early_or_was_replaced_decides_nothing_and_a_late_one_does() {
    let mut stand = deployed();
    stand.set_env("b");
    let (before, due) = (stand.x.clone(), stand.x.wake.unwrap());
    // Something else has changed, which an evaluation would see.
    stand.applied.as_mut().unwrap().definition.paused = true;
    for (now, at) in [(due - Span(1), due), (due + Span(1), due + Span(1)), (due - Span(1), due + Span(1))] {
        stand.now = now;
        assert_eq!(stand.give(Input::Wake(at)), Decision::Settle);
    }
    assert_eq!(stand.x, before);
    stand.now = due + Span::seconds(5);
    assert!(matches!(stand.give(Input::Wake(due)), Decision::Commit(_)));
    assert!(stand.x.paused.is_some());
}

#[test]
fn what_no_decision_needs_is_not_read() {
    let mut stand = deployed();
    stand.apply(|definition| {
        definition.auto_rollback = Some(AutoRollback { on_failure: true, alarms: vec![], bake: Span(0) });
    });
    stand.push("shop@sha256:2");
    stand.deploy(0);
    let read = |stand: &Stand| target(&stand.x, Input::Evaluate, stand.applied.as_ref());
    assert_eq!(read(&stand), None, "it is complete");
    stand.push("shop@sha256:3");
    stand.settle();
    assert_eq!(read(&stand), None, "nobody is at work");
    stand.claim();
    assert_eq!(read(&stand), Some(2));
}

#[test]
fn what_a_definition_does_not_say_is_not_stored() {
    let plain = definition(vec![Trigger::Manual]);
    let text = serde_json::to_string(&plain).unwrap();
    for absent in ["paused", "hooks", "onDrift", "on_drift", "vouched"] {
        assert!(!text.contains(&format!("\"{absent}\"")), "{absent}: {text}");
    }
    let hook = Hook { failure_policy: FailurePolicy::Abort, action: Action::Invoke("check".into()) };
    let change: [fn(&mut Definition, Hook); 6] = [
        |definition, _| definition.paused = true,
        |definition, _| definition.on_drift = OnDrift::Restore,
        |definition, _| definition.vouched = true,
        |definition, hook| definition.strategy.hooks.pre = Some(hook),
        |definition, hook| definition.strategy.hooks.mid = Some(hook),
        |definition, hook| definition.strategy.hooks.post = Some(hook),
    ];
    for change in change {
        let mut other = plain.clone();
        change(&mut other, hook.clone());
        assert_eq!(serde_json::from_str::<Definition>(&serde_json::to_string(&other).unwrap()).unwrap(), other);
    }
}

#[test]
fn a_deployer_of_ones_own_is_lost_with_its_lease_also_if_keelway_started_it() {
    let mut started = definition(vec![Trigger::ConfigChange]);
    started.deployer = Some(Starter::Ecs(Default::default()));
    let mut stand = Stand::new(started);
    stand.settle();
    stand.claim();
    stand.pass(Span::minutes(2));
    let last = stand.x.last.as_ref().unwrap();
    assert_eq!((last.status, last.reason.as_str()), (Status::Failed, "DeployerLost"));
}

#[test]
fn nobody_is_woken_for_what_is_over() {
    let mut stand = deployed();
    stand.apply(|definition| definition.strategy.deadline = Span::minutes(3));
    stand.set_env("b");
    stand.settle();
    stand.claim();
    for _ in 0..30 {
        let end = stand.now + Span::seconds(20);
        while let Some(wake) = stand.x.wake.filter(|wake| *wake <= end) {
            stand.now = wake;
            stand.give(Input::Wake(wake));
            assert!(stand.x.wake > Some(stand.now), "{:?}", stand.x.wake);
        }
        stand.now = end;
        stand.beat();
        assert!(stand.x.wake.is_none_or(|wake| wake > stand.now), "{:?}", stand.x.wake);
    }
    assert_eq!(
        stand.x.last.as_ref().and_then(|last| last.cancel.clone()).map(|cancel| cancel.reason),
        Some("DeadlineExceeded".into())
    );
}

fn guarded(on_failure: bool) -> Stand {
    let mut stand = deployed();
    stand.apply(|definition| {
        definition.auto_rollback = Some(AutoRollback { on_failure, alarms: vec!["errors".into()], bake: Span::minutes(5) });
    });
    stand
}

#[test]
fn an_alarm_rolls_back_what_is_on_its_way_whether_or_not_failures_do() {
    let mut stand = guarded(false);
    stand.push("shop@sha256:2");
    stand.settle();
    stand.claim();
    stand.give(Input::Alarm("errors", true, stand.now));
    stand.end(1);
    stand.settle();
    assert_eq!((stand.x.latest, stand.image()), (3, "shop@sha256:1"));
    let mut stand = guarded(false);
    stand.push("shop@sha256:2");
    stand.deploy(1);
    stand.pass(Span::minutes(10));
    assert_eq!(stand.x.latest, 2, "a failure without an alarm");
}

#[test]
fn an_alarm_counts_until_the_version_is_baked_and_only_when_it_goes_on() {
    for (minutes, on, latest) in [(4, true, 3), (5, true, 2), (4, false, 2)] {
        let mut stand = guarded(false);
        stand.push("shop@sha256:2");
        stand.deploy(0);
        stand.pass(Span::minutes(minutes));
        stand.give(Input::Alarm("errors", on, stand.now));
        stand.settle();
        assert_eq!(stand.x.latest, latest, "{minutes} {on}");
    }
}

#[test]
fn an_alarm_before_the_evaluation_of_what_a_deployer_told_is_about_what_it_has_deployed() {
    // Deployed again, it is not what the alarm is about that a rollback goes back to.
    for again in [false, true] {
        let mut stand = guarded(false);
        stand.push("shop@sha256:2");
        if again {
            stand.deploy(0);
            stand.latest().unwrap();
        }
        stand.settle();
        stand.claim();
        let latest = stand.x.latest;
        let end = Call::End { token: stand.token(), exit: Some(0), message: String::new(), progress: Progress::default() };
        stand.x = *answer(&stand.x, latest, &end, stand.now).next.unwrap();
        stand.give(Input::Alarm("errors", true, stand.now));
        stand.settle();
        assert_eq!((stand.x.latest, stand.image()), (latest + 1, "shop@sha256:1"), "{again}");
    }
}

#[test]
fn what_is_known_of_an_alarm_outlives_the_definition() {
    let mut stand = guarded(false);
    let then = stand.now;
    stand.give(Input::Alarm("errors", true, then));
    stand.pass(Span::minutes(1));
    stand.give(Input::Alarm("errors", false, stand.now));
    let (known, applied) = (stand.x.alarms.clone(), stand.applied.take());
    stand.give(Input::Evaluate);
    stand.applied = applied;
    stand.give(Input::Evaluate);
    // The bus tells it once more.
    stand.give(Input::Alarm("errors", true, then));
    assert_eq!((stand.x.deleted, &stand.x.alarms), (false, &known));
}

#[test]
fn a_deleted_config_keeps_up_with_the_alarms_that_it_knows() {
    let mut stand = guarded(false);
    let then = stand.now;
    stand.give(Input::Alarm("errors", true, then));
    stand.applied = None;
    stand.give(Input::Evaluate);
    for (at, known) in [(-1, (true, then)), (0, (true, then)), (1, (false, then + Span(1)))] {
        stand.give(Input::Alarm("errors", false, then + Span(at)));
        assert_eq!(stand.x.alarms["errors"], known, "{at}");
    }
    stand.give(Input::Alarm("latency", true, then + Span(2)));
    assert_eq!(stand.x.alarms.len(), 1, "one that it does not know");
}

/// Its clock may be behind by so much.
#[test]
fn an_alarm_from_before_the_config_says_nothing() {
    for (late, known) in [(Span(0), true), (Span(1), false)] {
        let mut stand = guarded(false);
        stand.give(Input::Alarm("errors", true, stand.x.began - ALARM_SKEW - late));
        assert_eq!(stand.x.alarms.contains_key("errors"), known, "{late:?}");
    }
}

#[test]
fn a_claim_is_heard_of_when_a_heartbeat_prolongs_it() {
    let (at, lease) = (Timestamp(1_000), Timestamp(61_000));
    let claim = Claim { by: "me".into(), id: 1, token: "k".into(), at, lease, running: None, heard: None };
    assert_eq!(claim.heard(), at);
    assert_eq!(claim.clone().prolonged(lease, Timestamp(9_000)), claim, "it changes nothing, and costs no write");
    let later = claim.prolonged(lease + Span(1), Timestamp(9_000));
    assert_eq!((later.heard(), later.lease), (Timestamp(9_000), lease + Span(1)));
}

#[test]
fn what_fails_is_not_rolled_back_if_something_newer_follows() {
    for pending in [true, false] {
        let mut stand = guarded(true);
        stand.apply(|definition| definition.concurrency = Concurrency::Queue);
        stand.push("shop@sha256:2");
        stand.settle();
        stand.claim();
        if pending {
            let task = Task { name: "deployment".into(), context: "c".into(), triggered: "t".into(), place: Default::default() };
            let latest = Latest { task: Some(Box::new(task)), image: "shop:by-hand".into(), ..Latest::default() };
            stand.give(Input::Command(&Command::Latest(latest), &Note { id: 99, ..Note::default() }));
            assert!(stand.x.pending.is_some());
        } else {
            stand.push("shop@sha256:3");
            assert!(stand.x.settling.is_some());
        }
        stand.end(1);
        stand.settle();
        assert_eq!((stand.x.latest, stand.image()), (3, if pending { "shop:by-hand" } else { "shop@sha256:3" }));
    }
}

#[test]
fn how_often_a_version_was_asked_for_is_stored_if_it_was() {
    let applied = deployed().applied.unwrap();
    for (asked, stored) in [(0, false), (2, true)] {
        let applied = Applied { asked, ..applied.clone() };
        let text = serde_json::to_string(&applied).unwrap();
        assert_eq!(text.contains("\"q\":"), stored);
        assert_eq!(serde_json::from_str::<Applied>(&text).unwrap(), applied);
    }
    // Older code did not keep the content of a version.
    let version = deployed().x.active.unwrap();
    for (content, stored) in [(0, false), (7, true)] {
        let text = serde_json::to_string(&Version { content, ..version.clone() }).unwrap();
        assert_eq!(text.contains("\"c\":"), stored);
    }
}

#[test]
fn the_next_version_is_generated_with_what_would_cause_it() {
    let mut stand = deployed();
    let next = |stand: &Stand| {
        let next = generate(&stand.x, stand.applied.as_ref().unwrap(), &stand.heads);
        (next.latest, next.causes.len(), change_that_waits(&stand.x, stand.applied.as_ref().unwrap(), &stand.heads).is_some())
    };
    assert_eq!(next(&stand), (1, 0, false));
    stand.push("shop@sha256:2");
    assert_eq!(next(&stand), (2, 1, true));
    stand.command(Command::SuspendTriggers).unwrap();
    assert_eq!(next(&stand), (2, 1, false), "no trigger fires");
    stand.command(Command::ResumeTriggers).unwrap();
    stand.command(Command::CancelAll).unwrap();
    assert_eq!(next(&stand), (2, 1, false), "it was cancelled");
    let missing = ImageChange { automatic: true, from: tag("none"), containers: vec!["log".into()] };
    let mut stand = deployed();
    stand.push("shop@sha256:2");
    stand.apply(|definition| definition.triggers.push(Trigger::ImageChange(missing)));
    assert_eq!(next(&stand), (2, 1, false), "an image is missing");
}

#[test]
fn a_tag_that_is_missing_is_named_once() {
    let change = ImageChange { automatic: true, from: tag("none"), containers: vec!["web".into(), "log".into()] };
    let stand = Stand::new(definition(vec![Trigger::ImageChange(change)]));
    assert_eq!(stand.x.condition.message.matches("default/shop:none").count(), 1, "{:?}", stand.x.condition);
}
