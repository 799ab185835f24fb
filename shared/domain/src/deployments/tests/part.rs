//! Keelway carries out a strategy on behalf of a deployer around it.

use super::stand::{Stand, definition, on_image, wrapped};
use crate::deployments::checkpoint::{Checkpoint, Stage};
use crate::deployments::definition::{Custom, Starter, StrategyKind, Trigger};
use crate::deployments::deployment::{Cancel, Deployment};
use crate::deployments::{Command, Desired, Order, Part, Refused, Reply, STOP, Status};
use crate::time::Span;
use serde_json::json;

/// A version that a deployer has claimed.
fn claimed() -> Stand {
    let mut stand = Stand::new(wrapped(definition(vec![Trigger::ConfigChange, on_image(true)])));
    stand.push("shop@sha256:1");
    stand.settle();
    stand.claim();
    stand.beat();
    stand.orders.clear();
    stand
}

/// Keelway has carried the strategy out until this share.
fn carried(until: u8) -> Stand {
    let mut stand = claimed();
    stand.carry(until);
    stand.part_claim();
    stand.part_end(0);
    stand.orders.clear();
    stand
}

fn refused(reply: Reply) -> String {
    match reply {
        Reply::Refused(Refused::Unknown(why) | Refused::Conflict(why) | Refused::Nothing(why)) => why,
        Reply::Desired(desired) => format!("not refused: {desired:?}"),
    }
}

fn ended(stand: &Stand) -> (Status, String, String) {
    let last = stand.x.last.clone().unwrap();
    (last.status, last.reason, last.message)
}

#[test]
fn what_keelway_carries_out_itself_nobody_else_claims() {
    let around = wrapped(definition(vec![Trigger::ConfigChange]));
    let mut aliases = around.clone();
    aliases.strategy.custom = None;
    let by = |starter: Starter| {
        let mut started = definition(vec![Trigger::ConfigChange]);
        started.deployer = Some(starter);
        started
    };
    let waits = serde_json::from_value(json!({"waitFor": "exit"})).unwrap();
    let build = Starter::CodeBuild(Default::default());
    let mut built_around = around.clone();
    built_around.deployer = Some(build.clone());
    let plain = definition(vec![Trigger::ConfigChange]);
    for (what, definition, ours) in [
        ("aliases", aliases, true),
        ("a build", by(build), true),
        ("a build with a strategy that Keelway knows", built_around, true),
        ("a task that Keelway waits for", by(Starter::Ecs(waits)), true),
        ("a task that claims by itself", by(Starter::Ecs(Default::default())), false),
        ("a deployer around a strategy", around, false),
        ("a deployer of one's own", plain, false),
    ] {
        let mut stand = Stand::new(definition);
        stand.settle();
        assert_eq!(stand.x.last.as_ref().map(|d| (d.n, d.content.ours)), Some((1, ours)), "{what}");
        let before = stand.x.clone();
        let reply = stand.claim();
        if ours {
            assert!(refused(reply).starts_with("Keelway carries deployment"), "{what}");
            assert_eq!(stand.x, before, "{what}");
            assert_eq!(stand.part_claim(), Reply::Desired(Desired::Run), "{what}: Keelway does");
            assert!(refused(stand.claim()).contains("already claimed by"), "{what}");
        } else {
            assert_eq!(reply, Reply::Desired(Desired::Run), "{what}");
        }
    }
}

#[test]
fn who_may_have_a_strategy_carried_out() {
    let known = wrapped(definition(vec![]));
    assert!(known.wraps() && !known.starts());
    let mut stock = known.clone();
    stock.strategy.custom = None;
    assert!(!stock.wraps() && stock.deploys_to_aliases());
    let mut task = stock.clone();
    task.deployer = Some(Starter::Ecs(Default::default()));
    assert!(task.wraps());
    let mut custom = known.clone();
    custom.strategy.kind = StrategyKind::Custom;
    assert!(!custom.wraps());
    let mut elsewhere = known;
    elsewhere.targets[0].kind = "ecs-service".into();
    assert!(!elsewhere.wraps());

    let mut plain = definition(vec![Trigger::ConfigChange, on_image(true)]);
    plain.strategy.custom = Some(Custom::default());
    let mut stand = Stand::new(plain);
    stand.push("shop@sha256:1");
    stand.settle();
    stand.claim();
    assert!(refused(stand.carry(50)).contains("takes Recreate, Rolling or Canary with customParams, and Lambda aliases"));
}

#[test]
fn keelway_is_told_once_and_once_more_for_more() {
    let mut stand = claimed();
    for until in [10, 10, 5] {
        assert_eq!(stand.carry(until), Reply::Desired(Desired::Run));
    }
    assert_eq!(stand.orders.len(), 1, "{:?}", stand.orders);
    stand.part_claim();
    stand.part_beat();
    stand.part_end(0);
    stand.carry(10);
    assert!(!stand.part().unwrap().is_open() && stand.orders.len() == 1);
    stand.carry(50);
    let part = stand.part().unwrap();
    assert!(part.is_open() && part.checkpoint == "at it", "{part:?}");
    assert!(matches!(stand.orders[..], [Order::Start { n: 1, attempt: 1, .. }, Order::Start { .. }]));
    stand.part_claim();
    stand.part_end(0);
    stand.end(0);
    assert_eq!((ended(&stand).0, stand.part()), (Status::Complete, None));
}

#[test]
fn keelway_is_told_again_while_nothing_is_heard_of_it() {
    let mut stand = claimed();
    stand.carry(100);
    for _ in 0..10 {
        stand.pass(Span::seconds(30));
        stand.beat();
    }
    assert_eq!(stand.orders.len(), 11, "every 30 seconds: {:?}", stand.orders);
}

#[test]
fn a_step_that_is_heard_of_is_not_told_again() {
    let mut stand = claimed();
    stand.carry(100);
    stand.part_claim();
    stand.orders.clear();
    for _ in 0..10 {
        stand.pass(Span::seconds(30));
        stand.beat();
        stand.part_beat();
    }
    assert!(stand.orders.is_empty(), "{:?}", stand.orders);
}

#[test]
fn an_earlier_step_counts_no_more_and_nobody_else_is_taken_for_keelway() {
    let mut stand = claimed();
    stand.carry(100);
    stand.part_claim();
    let earlier = stand.part().unwrap().claim.clone().unwrap().token;
    stand.part_claim();
    let late =
        crate::deployments::Call::End { token: earlier, exit: Some(0), message: String::new(), progress: Default::default() };
    assert!(refused(stand.call(late)).contains("this token is not the one of the present attempt"));
    // Without a part, the work belongs to whoever claimed it.
    let mut stand = claimed();
    assert!(refused(stand.part_claim()).contains("already claimed by"));
}

#[test]
fn a_deployment_fails_when_its_changes_are_taken_back() {
    let mut stand = carried(50);
    stand.end(3);
    assert_eq!(ended(&stand).0, Status::Running);
    assert_eq!(stand.orders.len(), 1);
    // Whoever failed has nothing more to say, and Keelway's own deployer is to stop.
    assert!(refused(stand.beat()).contains("the deployment fails (the deployer exited with 3)"));
    assert!(refused(stand.carry(100)).contains("Keelway takes back what it changed"));
    assert!(refused(stand.claim()).contains("Keelway takes back what it changed"));
    assert_eq!(stand.part_claim(), Reply::Desired(Desired::Cancel));
    assert_eq!(stand.part_beat(), Reply::Desired(Desired::Cancel));
    stand.part_end(1);
    assert_eq!(ended(&stand), (Status::Failed, "DeployerFailed".into(), "the deployer exited with 3".into()));
    stand.command(Command::Retry).unwrap();
    assert_eq!((stand.part(), stand.x.last.as_ref().unwrap().attempt), (None, 2));
}

/// What a step says that began before the part was opened again was about something else.
#[test]
fn a_step_of_an_earlier_part_does_not_end_the_next_one() {
    let more = |stand: &mut Stand| drop(stand.carry(100));
    let fails = |stand: &mut Stand| drop(stand.end(3));
    for ask in [more as fn(&mut Stand), fails] {
        let mut stand = claimed();
        stand.carry(10);
        stand.part_claim();
        let token = stand.part().unwrap().claim.clone().unwrap().token;
        ask(&mut stand);
        let late = crate::deployments::Call::End { token, exit: Some(0), message: String::new(), progress: Default::default() };
        assert!(refused(stand.call(late)).contains("this token is not the one of the present attempt"));
        assert!(stand.part().unwrap().is_open());
    }
}

#[test]
fn a_deployer_that_is_lost_or_cancelled_leaves_nothing_changed() {
    let mut stand = carried(10);
    stand.pass(Span::seconds(61));
    assert_eq!((ended(&stand).0, stand.orders.len()), (Status::Running, 1));
    stand.part_claim();
    stand.part_end(1);
    assert_eq!((ended(&stand).0, ended(&stand).1.as_str()), (Status::Failed, "DeployerLost"));

    // While Keelway is at it, both are told; then the deployer ends.
    let mut stand = claimed();
    stand.carry(100);
    stand.part_claim();
    stand.orders.clear();
    stand.command(Command::Cancel).unwrap();
    assert_eq!(stand.orders.len(), 1, "it looks at once");
    assert_eq!(stand.part_claim(), Reply::Desired(Desired::Cancel));
    assert_eq!(stand.beat(), Reply::Desired(Desired::Cancel));
    stand.part_end(1);
    assert_eq!(ended(&stand).0, Status::Running);
    stand.end(143);
    assert_eq!((ended(&stand).0, ended(&stand).1.as_str()), (Status::Failed, "Cancelled"));
}

#[test]
fn what_cannot_be_taken_back_in_time_is_told() {
    let mut stand = carried(10);
    stand.end(1);
    stand.pass(STOP);
    let (status, reason, message) = ended(&stand);
    assert_eq!((status, reason.as_str()), (Status::Failed, "DeployerFailed"));
    assert_eq!(message, "the deployer exited with 1; what was changed could not be taken back in time");
}

#[test]
fn success_is_not_believed_while_the_strategy_is_not_done() {
    let mut stand = claimed();
    stand.carry(100);
    stand.end(0);
    stand.part_claim();
    stand.part_end(1);
    assert_eq!(ended(&stand).2, "the deployer exited while Keelway was carrying the strategy out for it");

    let mut stand = claimed();
    stand.carry(100);
    stand.part_claim();
    stand.part_end(1);
    let failed = stand.part().cloned();
    stand.carry(100);
    assert_eq!(stand.part().cloned(), failed, "nothing more follows");
    stand.end(0);
    assert_eq!(ended(&stand), (Status::Failed, "DeployerFailed".into(), "the hook failed".into()));
}

#[test]
fn an_order_that_must_not_wait_for_the_next_job_is_news() {
    let stand = carried(20);
    let d = stand.x.last.clone().unwrap();
    let cancel = Cancel { reason: "Cancelled".into(), message: "by ann".into(), at: stand.now, due: stand.now };
    let cancelled = Deployment { cancel: Some(cancel.clone()), ..d.clone() };
    let part = d.part.clone().map(|part| Part { back: Some(cancel), ..part });
    let back = Deployment { part, ..d.clone() };
    let told = |proceeds| Deployment { proceeds, ..d.clone() };
    let (shift, judged) = (Checkpoint::default(), Checkpoint { hold: Some(2), ..Checkpoint::default() });
    let (paused, goes_back) =
        (Checkpoint { paused: true, ..Checkpoint::default() }, Checkpoint { stage: Stage::Back, ..Checkpoint::default() });
    for (what, checkpoint, d, is_paused, news) in [
        ("nothing", &shift, &d, false, false),
        ("a cancellation", &shift, &cancelled, false, true),
        ("a way back", &shift, &back, false, true),
        ("a pause", &shift, &d, true, true),
        ("a pause that it knows", &paused, &d, true, false),
        ("a resumption", &paused, &d, false, true),
        ("told as often as before", &judged, &told(2), false, false),
        ("told once more", &judged, &told(3), false, true),
        ("told, and it does not wait", &shift, &told(3), false, false),
        ("it goes back already", &goes_back, &cancelled, true, false),
    ] {
        assert_eq!(checkpoint.is_news(d, is_paused), news, "{what}");
    }
}
