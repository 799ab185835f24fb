//! Whatever goes wrong with a request or a message, a deployment ends alike.

use keelway_deployers_stand::stand::{DEPLOYER, Stand, definition, hook};
use keelway_domain::deployments::definition::{Definition, FailurePolicy, Weight};
use keelway_domain::deployments::{Command, OFFER_AGAIN, Status};
use keelway_domain::time::Span;
use keelway_world::core::Fault;

/// Every kind of step, in an hour.
fn full() -> Definition {
    let mut definition = definition("Canary", "1.dkr.ecr.eu-central-1.amazonaws.com/shop@sha256:ab");
    definition.strategy.steps =
        vec![Weight { weight: 10, bake: Some(Span::minutes(20)) }, Weight { weight: 50, bake: Some(Span::seconds(5)) }];
    definition.strategy.hooks.pre = hook(FailurePolicy::Abort);
    definition.strategy.hooks.post = hook(FailurePolicy::Abort);
    definition
}

const ROUTES: [&str; 4] = ["shop has version 10", "shop:live 1 10%10", "shop:live 1 50%10", "shop:live 10"];

fn deploy(prepare: impl FnOnce(&mut Stand)) -> Stand {
    let next = full();
    let mut stand = Stand::deployed(&next);
    prepare(&mut stand);
    stand.apply(&next);
    stand.pass(Span::minutes(90));
    stand
}

/// The hooks that ran, in their order.
fn hooks(stand: &Stand) -> Vec<String> {
    stand.lambda.state().calls.iter().map(|(payload, _)| payload["hook"].as_str().unwrap().to_owned()).collect()
}

fn assert_well(stand: &Stand, what: &str) {
    let last = stand.last();
    assert_eq!((last.status, last.attempt, stand.alias("live").as_str()), (Status::Complete, 1, "10"), "{what}: {last:#?}");
    assert_eq!(stand.log(), ROUTES, "{what}");
    let mut hooks = hooks(stand);
    hooks.dedup();
    assert_eq!(hooks, ["pre", "post"], "{what}");
}

#[test]
fn whoever_stops_after_any_request_is_followed_by_another() {
    let clean = deploy(|_| {});
    assert_well(&clean, "clean");
    assert_eq!(hooks(&clean), ["pre", "post"]);
    for after in 1..=clean.requests {
        let stand = deploy(|stand| stand.crash_after = Some(after));
        assert_eq!(stand.crash_after, None, "request {after} never happened");
        assert_well(&stand, &format!("crash after request {after}"));
    }
}

#[test]
fn any_request_may_be_refused_for_now_lost_or_repeated() {
    let requests = deploy(|_| {}).requests;
    for fault in [Fault::Throttled, Fault::AnswerLost, Fault::Repeated] {
        for n in 1..=requests {
            let stand = deploy(|stand| {
                let mut seen = 0;
                stand.world.core().faults = Some(Box::new(move |worker, _| {
                    seen += u64::from(worker == DEPLOYER);
                    if worker == DEPLOYER && seen == n { fault } else { Fault::None }
                }));
            });
            assert_well(&stand, &format!("{fault:?} at request {n}"));
        }
    }
}

#[test]
fn a_message_that_is_delivered_twice_does_nothing_the_second_time() {
    let stand = deploy(|stand| stand.twice = true);
    assert_well(&stand, "twice");
    assert_eq!(hooks(&stand), ["pre", "post"]);
}

/// At any time, all messages to the deployer are lost: it goes on where it was when its lease ends.
#[test]
fn a_lost_message_costs_time_only() {
    for seconds in [0, 60, 20 * 60 + 3] {
        let next = full();
        let mut stand = Stand::deployed(&next);
        stand.apply(&next);
        stand.pass(Span::seconds(seconds));
        assert_eq!(stand.status(), Status::Running, "after {seconds} s");
        let alias = stand.alias("live");
        stand.lose_jobs();
        stand.pass(Span::seconds(30));
        assert_eq!((stand.status(), stand.alias("live")), (Status::Running, alias), "after {seconds} s");
        stand.pass(Span::minutes(90));
        assert_well(&stand, &format!("lost after {seconds} s"));
    }
}

/// A deployment that fails is taken back whatever goes wrong on the way.
#[test]
fn the_way_back_is_repeated_too() {
    let mut next = full();
    next.strategy.hooks.pre = None;
    let fail = |crash: Option<u64>| {
        let mut stand = Stand::deployed(&next);
        stand.lambda.state().failing = 1;
        stand.crash_after = crash;
        stand.apply(&next);
        stand.pass(Span::minutes(90));
        stand
    };
    let clean = fail(None);
    clean.assert_ended(Status::Failed, "1");
    for after in 1..=clean.requests {
        let stand = fail(Some(after));
        let last = stand.last();
        // A hook that was called once more may have succeeded then.
        let well = if hooks(&stand).len() == 1 { (Status::Failed, "1") } else { (Status::Complete, "10") };
        assert_eq!((last.status, stand.alias("live").as_str()), well, "crash after request {after}: {last:#?}");
    }
}

/// A delivery may stall at any request for as long as it likes; meanwhile the deployment is cancelled and taken back.
#[test]
fn a_step_that_was_overtaken_moves_nothing_any_more() {
    let play = |stall: Option<u64>| {
        let mut next = full();
        next.strategy.steps.truncate(1);
        let mut stand = Stand::deployed(&next);
        stand.stall_after = stall;
        stand.apply(&next);
        stand.pass(Span::seconds(10));
        if stand.status() == Status::Complete {
            return (stand, false);
        }
        stand.command(Command::Cancel);
        stand.pass(Span::minutes(15));
        stand.assert_ended(Status::Failed, "1");
        let stalled = stand.go_on();
        stand.pass(Span::minutes(90));
        stand.assert_ended(Status::Failed, "1");
        assert_eq!(stand.last().reason, "Cancelled");
        (stand, stalled)
    };
    let (clean, _) = play(None);
    let stalls = (1..=clean.requests).filter(|after| play(Some(*after)).1).count();
    assert!(stalls > 20, "only {stalls} of {} deliveries stalled", clean.requests);
}

/// The message of a deployer that stopped stays invisible for as long as the queue has it. What counts is the lease of the step.
#[test]
fn whoever_stops_inside_a_step_is_followed_within_a_minute() {
    let ended = |stand: &Stand| stand.last().ended.unwrap() - stand.last().since;
    let clean = deploy(|_| {});
    for after in 1..=clean.requests {
        let stand = deploy(|stand| {
            stand.crash_after = Some(after);
            stand.invisible = Span::minutes(15);
        });
        assert_well(&stand, &format!("crash after request {after}"));
        let late = Span(ended(&stand).0 - ended(&clean).0);
        // Nobody has claimed the work before the first claim: then the deployer is started again.
        assert!(late <= Span::seconds(60) || after < FIRST_CLAIM && late <= OFFER_AGAIN, "{late} after request {after}");
    }
}

/// With this request of a deployer, the work is claimed.
const FIRST_CLAIM: u64 = 7;

#[test]
fn whoever_stops_on_the_way_back_is_followed_within_a_minute() {
    let mut next = full();
    next.strategy.hooks.pre = None;
    next.strategy.steps.truncate(1);
    let cancel = |crash: Option<u64>| {
        let mut stand = Stand::deployed(&next);
        stand.apply(&next);
        stand.pass(Span::seconds(60));
        (stand.invisible, stand.requests, stand.crash_after) = (Span::minutes(15), 0, crash);
        stand.command(Command::Cancel);
        stand.pass(Span::minutes(9));
        stand.assert_ended(Status::Failed, "1");
        assert_eq!(stand.last().reason, "Cancelled", "{:#?}", stand.last());
        stand
    };
    for after in 1..=cancel(None).requests {
        let last = cancel(Some(after)).last();
        let late = last.ended.unwrap() - last.cancel.map_or(last.since, |cancel| cancel.at);
        assert!(late <= Span::seconds(60), "{late} after request {after}");
    }
}

#[test]
fn a_lost_invocation_fails_no_deployment_however_short_the_timeout() {
    for seconds in [20, 60, 120] {
        let mut next = full();
        next.strategy.timeout = Span::seconds(seconds);
        let mut stand = Stand::deployed(&next);
        (stand.invisible, stand.crash_after) = (Span::minutes(15), Some(1));
        stand.apply(&next);
        stand.pass(Span::seconds(seconds / 2));
        assert_eq!(stand.status(), Status::Running, "{seconds} s: {:#?}", stand.last());
        stand.pass(Span::minutes(90));
        assert_well(&stand, &format!("{seconds} s"));
    }
}

/// A hook that takes minutes keeps its claim: nobody else calls it meanwhile.
#[test]
fn a_hook_that_takes_longer_than_a_lease_is_called_once() {
    let next = full();
    let mut stand = Stand::deployed(&next);
    stand.lambda.state().takes = Span::minutes(3);
    stand.apply(&next);
    stand.pass(Span::minutes(120));
    assert_well(&stand, "slow hooks");
    assert_eq!(hooks(&stand), ["pre", "post"]);
}

/// A copy of a message takes no step: each message has a later time than the one before.
#[test]
fn every_message_of_a_deployment_has_a_time_of_its_own() {
    let stand = deploy(|stand| stand.jobs.clear());
    let times = &stand.jobs;
    assert!(times.len() > 5 && times.windows(2).all(|two| two[0] < two[1]), "{times:?}");
}
