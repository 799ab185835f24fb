//! Lives that a person can follow.

use super::stand::{Stand, definition, on_image, refused};
use crate::deployments::definition::{AutoRollback, Concurrency, Trigger};
use crate::deployments::{Call, Command, Input, LEASE, Latest, MAX_CHECKPOINT, Progress, Reply, Status, Why};
use crate::time::Span;

fn deployed() -> Stand {
    let mut stand = Stand::new(definition(vec![Trigger::ConfigChange, on_image(true)]));
    stand.push("shop@sha256:1");
    stand.deploy(0);
    stand
}

#[test]
fn the_first_version_waits_for_its_images() {
    let mut stand = Stand::new(definition(vec![Trigger::ConfigChange, on_image(true)]));
    stand.settle();
    assert_eq!((stand.x.latest, stand.x.condition.reason.as_str()), (0, "Unresolved"));
    stand.push("shop@sha256:1");
    stand.settle();
    assert_eq!((stand.x.latest, stand.image()), (1, "shop@sha256:1"));
    stand.claim();
    stand.beat();
    stand.end(0);
    let told: Vec<&str> = stand.told.iter().map(String::as_str).filter(|told| told.starts_with("deployment.")).collect();
    assert_eq!(
        told,
        ["deployment.created", "deployment.requested", "deployment.pending", "deployment.running", "deployment.complete"]
    );
    assert_eq!(stand.x.active.as_ref().map(|active| active.n), Some(1));
}

#[test]
fn a_burst_is_one_version() {
    let mut stand = deployed();
    for n in 2..52 {
        stand.push(&format!("shop@sha256:{n}"));
    }
    stand.set_env("b");
    stand.settle();
    assert_eq!((stand.x.latest, stand.image()), (2, "shop@sha256:51"));
    let last = stand.x.last.as_ref().unwrap();
    assert_eq!(last.message, "image change");
    assert!(last.causes.iter().any(|why| matches!(why, Why::ConfigChange { by } if by == "ann")), "{:?}", last.causes);
}

#[test]
fn a_version_that_nobody_claimed_is_superseded_at_once_and_a_running_one_is_told_to_stop() {
    let mut stand = deployed();
    stand.push("shop@sha256:2");
    stand.settle();
    stand.push("shop@sha256:3");
    stand.settle();
    assert_eq!((stand.x.latest, stand.image()), (3, "shop@sha256:3"));
    stand.claim();
    stand.push("shop@sha256:4");
    stand.settle();
    assert_eq!(stand.x.latest, 3);
    assert_eq!(stand.beat(), Reply::Desired(crate::deployments::Desired::Cancel));
    stand.end(1);
    stand.settle();
    assert_eq!((stand.x.latest, stand.image()), (4, "shop@sha256:4"));
    let reasons: Vec<&str> = stand.past.iter().map(|past| past.deployment.reason.as_str()).collect();
    assert_eq!(reasons, ["", "Superseded", "Superseded"]);
}

#[test]
fn a_queue_lets_the_running_one_end() {
    let mut stand = deployed();
    stand.apply(|definition| definition.concurrency = Concurrency::Queue);
    stand.push("shop@sha256:2");
    stand.settle();
    stand.claim();
    stand.push("shop@sha256:3");
    stand.push("shop@sha256:4");
    stand.settle();
    assert_eq!(stand.beat(), Reply::Desired(crate::deployments::Desired::Run));
    stand.end(0);
    stand.settle();
    assert_eq!((stand.x.latest, stand.image()), (3, "shop@sha256:4"));
}

#[test]
fn a_rollback_makes_a_new_version_and_suspends_the_triggers() {
    let mut stand = deployed();
    stand.push("shop@sha256:2");
    stand.deploy(0);
    stand.back(None).unwrap();
    assert_eq!((stand.x.latest, stand.image()), (3, "shop@sha256:1"));
    stand.deploy(0);
    stand.push("shop@sha256:3");
    stand.settle();
    assert_eq!((stand.x.latest, stand.x.condition.reason.as_str()), (3, "TriggersSuspended"));
    assert!(stand.told.contains(&"trigger.suppressed".to_owned()));
    stand.command(Command::Latest(Latest { resume_triggers: true, ..Latest::default() })).unwrap();
    stand.settle();
    assert_eq!((stand.x.latest, stand.image()), (4, "shop@sha256:3"));
}

#[test]
fn a_failed_version_is_rolled_back_once() {
    let mut stand = deployed();
    stand.apply(|definition| {
        definition.auto_rollback = Some(AutoRollback { on_failure: true, alarms: vec!["errors".into()], bake: Span::minutes(5) });
    });
    stand.push("shop@sha256:2");
    stand.deploy(1);
    stand.settle();
    assert_eq!((stand.x.latest, stand.image()), (3, "shop@sha256:1"));
    stand.deploy(1);
    stand.pass(Span::minutes(60));
    assert_eq!((stand.x.latest, stand.x.last.as_ref().unwrap().status), (3, Status::Failed), "a rollback is not rolled back");
    stand.command(Command::Retry).unwrap();
    stand.deploy(0);
    stand.command(Command::ResumeTriggers).unwrap();
    stand.deploy(0);
    assert_eq!((stand.x.latest, stand.image()), (4, "shop@sha256:2"));
    stand.give(Input::Alarm("errors", true, stand.now));
    stand.settle();
    assert_eq!((stand.x.latest, stand.image()), (5, "shop@sha256:1"), "it was baking");
}

#[test]
fn refusals_name_the_way_out() {
    let mut stand = Stand::new(definition(vec![]));
    assert_eq!(refused(stand.back(None)), "cannot rollback an undeployed config");
    stand.latest().unwrap();
    assert_eq!(refused(stand.back(None)), "no previous deployment exists for \"cart\"");
    assert!(refused(stand.latest()).starts_with("#1 is already in progress (New)."), "{}", refused(stand.latest()));
    stand.command(Command::Pause).unwrap();
    assert!(refused(stand.latest()).starts_with("cannot deploy a paused deployment config"));
    assert!(refused(stand.command(Command::Cancel)).starts_with("unable to cancel paused deployment default/cart"));
    assert!(refused(stand.command(Command::Retry)).starts_with("unable to retry paused deployment config \"cart\""));
    assert!(matches!(stand.claim(), Reply::Refused(_)), "a paused deployment is held");
}

#[test]
fn a_checkpoint_is_kept_whole_or_not_at_all() {
    let mut stand = deployed();
    stand.push("shop@sha256:2");
    stand.settle();
    stand.claim();
    for (length, kept) in [(MAX_CHECKPOINT, MAX_CHECKPOINT), (MAX_CHECKPOINT + 1, MAX_CHECKPOINT), (3, 3), (0, 3)] {
        let progress = Progress { checkpoint: "c".repeat(length), ..Progress::default() };
        stand.call(Call::Heartbeat { token: stand.token(), running: true, lease: LEASE, progress });
        assert_eq!(stand.x.last.as_ref().unwrap().progress.checkpoint.len(), kept, "{length}");
    }
}

/// Each version is deployed with the vouch of the definition that it was cut from, and a rollback looks at both.
#[test]
fn versions_carry_the_vouch_of_their_definition() {
    let mut stand = Stand::new(definition(vec![Trigger::ConfigChange]));
    stand.apply(|definition| definition.vouched = true);
    stand.deploy(0);
    let hash = |stand: &Stand| stand.x.last.as_ref().map(|last| last.content.template);
    let vouched = |stand: &Stand| -> Vec<bool> { stand.snapshots.iter().map(|snapshot| snapshot.definition.vouched).collect() };
    assert_eq!(vouched(&stand), [true]);
    let before = hash(&stand);
    stand.apply(|definition| definition.vouched = false);
    stand.settle();
    assert_eq!((stand.x.latest, hash(&stand)), (1, before), "a vouch is no part of what is deployed");
    stand.set_env("b");
    stand.deploy(0);
    assert_eq!(vouched(&stand), [true, false]);
    stand.back(Some(1)).unwrap();
    stand.deploy(0);
    assert_eq!(vouched(&stand), [true, false, true], "it is what was vouched for");
    stand.apply(|definition| definition.vouched = false);
    stand.apply(|definition| definition.annotations = [("a".to_owned(), "b".to_owned())].into());
    stand.set_env("c");
    stand.back(Some(1)).unwrap();
    assert_eq!(vouched(&stand).last(), Some(&false), "what does not go back is somebody else's");
}
