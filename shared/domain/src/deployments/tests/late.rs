//! What comes too late, is lost, or cannot be read.

use super::stand::{Stand, definition, on_image, refused};
use crate::deployments::definition::{Concurrency, Starter, Trigger};
use crate::deployments::{
    Answer, Applied, Call, Command, Decision, Input, Latest, Order, Progress, Request, SOURCE, Status, Task, answer,
};
use crate::note::Note;
use crate::time::{Span, Timestamp};

fn deployed() -> Stand {
    let mut stand = Stand::new(definition(vec![Trigger::ConfigChange]));
    stand.deploy(0);
    stand
}

#[test]
fn work_that_nobody_claims_is_offered_several_times_before_its_deadline() {
    for seconds in [20, 60, 120, 600] {
        let mut definition = definition(vec![Trigger::ConfigChange]);
        definition.deployer = Some(Starter::Ecs(Default::default()));
        definition.strategy.timeout = Span::seconds(seconds);
        let mut stand = Stand::new(definition);
        stand.pass(Span::seconds(seconds + 1));
        assert_eq!(stand.x.last.as_ref().map(|last| last.status), Some(Status::New));
        assert!((4..=25).contains(&stand.orders.len()), "{seconds} s: {:?}", stand.orders);
        stand.settle();
        assert_eq!(stand.x.last.as_ref().map(|last| last.reason.as_str()), Some("StartTimeout"));
    }
}

#[test]
fn a_claim_that_is_renewed_for_a_shorter_time_is_looked_at_when_it_ends() {
    let mut definition = definition(vec![Trigger::ConfigChange]);
    definition.deployer = Some(Starter::Ecs(Default::default()));
    let mut stand = Stand::new(definition);
    stand.settle();
    let claim = |token: &str, lease| Call::Claim { by: SOURCE.into(), id: 7, token: token.into(), lease };
    stand.call(claim("long", Span::minutes(17)));
    stand.call(claim("short", Span::seconds(45)));
    assert!(stand.x.wake.is_some_and(|wake| wake <= stand.now + Span::seconds(45)), "{:?}", stand.x.wake);
    stand.orders.clear();
    stand.pass(Span::seconds(44));
    assert!(stand.orders.is_empty(), "{:?}", stand.orders);
    // Nothing is heard of it: another one is told to go on, and again, until somebody does.
    let wake = stand.x.wake.unwrap();
    stand.now = wake;
    stand.give(Input::Wake(wake));
    assert!(stand.x.wake > Some(stand.now), "{:?}", stand.x.wake);
    stand.pass(Span::seconds(1));
    assert!(matches!(stand.orders[..], [Order::Start { n: 1, attempt: 1, .. }]), "{:?}", stand.orders);
    stand.pass(Span::seconds(60));
    assert_eq!(stand.orders.len(), 3);
    // Also to take back what it changed.
    stand.command(Command::Cancel).unwrap();
    stand.orders.clear();
    stand.pass(Span::seconds(60));
    assert_eq!((stand.orders.len(), stand.x.last.as_ref().map(|last| last.status)), (2, Some(Status::Pending)));
}

#[test]
fn what_runs_too_long_is_asked_to_stop_and_looked_at_when_it_should_have() {
    let mut definition = definition(vec![Trigger::ConfigChange]);
    definition.strategy.timeout = Span::seconds(60);
    definition.strategy.deadline = Span::seconds(60);
    let mut stand = Stand::new(definition);
    stand.settle();
    stand.claim_as("ci");
    stand.pass(Span::seconds(30));
    stand.beat();
    stand.pass(Span::seconds(31));
    let cancel = stand.x.last.as_ref().and_then(|last| last.cancel.clone());
    assert_eq!(cancel.map(|cancel| cancel.reason).as_deref(), Some("DeadlineExceeded"));
    assert!(stand.x.wake.is_some_and(|wake| wake > stand.now), "{:?}", stand.x.wake);
}

#[test]
fn a_version_that_cannot_be_read_is_refused_by_name_and_nothing_is_written() {
    let mut stand = deployed();
    stand.set_env("b");
    stand.deploy(0);
    let before = stand.x.clone();
    stand.damaged = Some("the snapshot of version cart-1 is missing".into());
    for release in [Some(1), None] {
        assert_eq!(refused(stand.back(release)), "the snapshot of version cart-1 is missing: name another version");
    }
    assert_eq!(stand.x, before);
    stand.damaged = None;
    assert_eq!(refused(stand.back(Some(1))), "not refused");
}

#[test]
fn a_cancellation_that_comes_too_late_is_told() {
    let mut stand = deployed();
    stand.set_env("b");
    stand.settle();
    stand.claim();
    stand.command(Command::Cancel).unwrap();
    stand.end(0);
    let last = stand.x.last.clone().unwrap();
    assert_eq!(last.status, Status::Complete);
    assert_eq!(last.message, "config change; cancelled by the user, by bob: too late, it was complete");
    // The deployer has told how it ended, and no evaluation has seen that.
    stand.set_env("c");
    stand.settle();
    stand.claim();
    let end = Call::End { token: stand.token(), exit: Some(0), message: String::new(), progress: Progress::default() };
    let Answer { next, .. } = answer(&stand.x, 3, &end, stand.now);
    stand.x = *next.unwrap();
    assert_eq!(refused(stand.command(Command::Cancel)), "too late: the deployer of #3 has told how it ended");
    stand.evaluate();
    assert_eq!(stand.x.last.as_ref().map(|last| last.status), Some(Status::Complete));
}

#[test]
fn a_cancellation_takes_what_waits_with_it_if_that_is_asked_for() {
    let latest = |stand: &Stand| (stand.x.latest, stand.x.last.as_ref().map(|last| last.reason.clone()).unwrap_or_default());
    let running = || {
        let mut stand = deployed();
        stand.set_env("b");
        stand.settle();
        stand.claim();
        stand
    };
    // A change waits until version 2, which is superseded, has ended.
    for (command, n) in [(Command::Cancel, 3), (Command::CancelAll, 2)] {
        let mut stand = running();
        stand.set_env("c");
        stand.settle();
        stand.command(command.clone()).unwrap();
        stand.end(1);
        stand.pass(Span::minutes(60));
        assert_eq!(stand.x.latest, n, "{command:?}");
    }
    let mut stand = running();
    stand.set_env("c");
    stand.command(Command::CancelAll).unwrap();
    stand.end(1);
    stand.pass(Span::minutes(60));
    assert_eq!(
        (latest(&stand), stand.x.condition.reason.as_str()),
        ((2, "Cancelled".to_owned()), "Cancelled"),
        "before it settled"
    );
    // What failed is repeated without it.
    stand.command(Command::Retry).unwrap();
    stand.deploy(0);
    stand.pass(Span::minutes(60));
    assert_eq!((stand.x.latest, stand.x.active.as_ref().map(|active| active.n)), (2, Some(2)));
    // Another change is deployed, and so is the same once more.
    stand.set_env("d");
    stand.deploy(0);
    stand.set_env("c");
    stand.deploy(0);
    assert_eq!(stand.x.active.as_ref().map(|active| active.n), Some(4));
    assert!(refused(stand.command(Command::CancelAll)).starts_with("No rollout is in progress"), "nothing runs, and nothing waits");
    // A version that somebody asked for is given up either way.
    stand.set_env("e");
    stand.settle();
    stand.claim();
    stand.command(Command::Latest(Latest { again: true, supersede: true, ..Latest::default() })).unwrap();
    assert!(stand.x.pending.is_some());
    stand.command(Command::CancelAll).unwrap();
    stand.end(1);
    stand.pass(Span::minutes(60));
    assert_eq!((stand.x.latest, &stand.x.pending), (5, &None));
}

#[test]
fn a_version_that_is_asked_for_by_writing_the_config_is_cancelled_with_what_waits() {
    for (command, n) in [(Command::Cancel, 3), (Command::CancelAll, 2)] {
        let mut stand = deployed();
        stand.set_env("b");
        stand.settle();
        stand.claim();
        let request = Request { version: 3, causes: vec![] };
        stand.applied = stand.applied.take().map(|applied| Applied { request: Some(request), ..applied.after() });
        stand.evaluate();
        stand.command(command).unwrap();
        stand.end(1);
        stand.pass(Span::minutes(60));
        assert_eq!(stand.x.latest, n);
    }
}

#[test]
fn an_image_is_named_for_a_container_that_follows_a_tag_only_with_its_triggers_suspended() {
    let named = |suspend| Latest { image: "shop:by-hand".into(), suspend, ..Latest::default() };
    let mut stand = Stand::new(definition(vec![Trigger::ConfigChange, on_image(true)]));
    stand.push("shop@sha256:1");
    stand.deploy(0);
    let why = refused(stand.command(Command::Latest(named(false))));
    assert!(why.contains("container web of \"cart\" follows default/shop:latest") && why.contains("suspendTriggers"), "{why}");
    stand.command(Command::Latest(named(true))).unwrap();
    stand.deploy(0);
    stand.push("shop@sha256:2");
    stand.pass(Span::seconds(60));
    assert_eq!((stand.x.latest, stand.image()), (2, "shop:by-hand"));
    // Suspended before is as good; and what nobody follows may be named as before.
    stand.command(Command::Latest(named(false))).unwrap();
    let mut stand = Stand::new(definition(vec![Trigger::ConfigChange, on_image(false)]));
    stand.push("shop@sha256:1");
    stand.deploy(0);
    stand.command(Command::Latest(named(false))).unwrap();
}

#[test]
fn what_a_sequence_gives_up_is_cancelled_once_and_by_its_trigger_only() {
    let mut stand = deployed();
    let task = Task { name: "deployment".into(), context: "c".into(), triggered: "t".into(), place: Default::default() };
    let latest = Latest { task: Some(Box::new(task)), ..Latest::default() };
    let note = Note { id: 99, ..Note::default() };
    stand.give(Input::Command(&Command::Latest(latest), &note));
    stand.claim();
    stand.give(Input::Over("another"));
    assert_eq!(stand.x.last.as_ref().and_then(|last| last.cancel.clone()), None);
    stand.give(Input::Over("t"));
    let cancelled = stand.x.clone();
    assert_eq!(cancelled.last.as_ref().and_then(|last| last.cancel.clone()).map(|cancel| cancel.reason), Some("Cancelled".into()));
    stand.give(Input::Over("t"));
    assert_eq!(stand.x.last, cancelled.last);
    stand.end(1);
    stand.give(Input::Over("t"));
    assert_eq!(stand.x.last.as_ref().map(|last| (last.status, last.n)), Some((Status::Failed, 2)));
}

#[test]
fn a_rollback_without_a_target_goes_to_what_differs() {
    let mut stand = deployed();
    let deploy = |stand: &mut Stand, env: &str, exit| {
        stand.set_env(env);
        stand.deploy(exit);
    };
    deploy(&mut stand, "b", 0);
    // The same again, twice: once complete, and once failed.
    for exit in [0, 1] {
        stand.command(Command::Latest(Latest { again: true, ..Latest::default() })).unwrap();
        stand.claim();
        stand.end(exit);
    }
    assert_eq!((stand.x.latest, stand.x.active.as_ref().map(|active| active.n)), (4, Some(3)));
    stand.back(None).unwrap();
    stand.claim();
    stand.end(0);
    let to = |stand: &Stand| stand.x.last.as_ref().and_then(|last| last.rollback.as_ref()).map(|back| back.release);
    assert_eq!(to(&stand), Some(1));
    // And back again; after a failure, to what is active.
    stand.back(None).unwrap();
    stand.claim();
    stand.end(0);
    assert_eq!(to(&stand), Some(3));
    stand.command(Command::ResumeTriggers).unwrap();
    deploy(&mut stand, "c", 1);
    let active = stand.x.active.as_ref().map(|active| active.n);
    stand.back(None).unwrap();
    assert_eq!(to(&stand), active);
}

#[test]
fn a_change_that_waits_for_what_runs_has_settled_by_every_clock() {
    for concurrency in [Concurrency::Supersede, Concurrency::Queue] {
        let mut stand = deployed();
        stand.apply(|definition| definition.concurrency = concurrency);
        stand.set_env("b");
        stand.pass(Span::seconds(3));
        stand.claim();
        stand.set_env("c");
        assert_eq!(stand.x.condition.reason, "Settling");
        stand.pass(Span::seconds(3));
        assert_eq!((stand.x.condition.reason.as_str(), stand.x.latest), ("AwaitingCancellation", 2));
        // Whoever evaluates it now has a clock that is behind.
        let (now, wake) = (stand.now, stand.x.wake);
        stand.now = Timestamp(now.0 - 5000);
        assert!(matches!(stand.give(Input::Evaluate), Decision::Settle), "{:?}", stand.x);
        assert_eq!(stand.x.wake, wake);
        stand.now = now;
        stand.end(1);
        stand.pass(Span::seconds(1));
        assert_eq!(stand.x.latest, 3);
    }
}
