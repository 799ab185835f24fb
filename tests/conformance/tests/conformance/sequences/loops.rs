//! Triggers that start each other come to an end: a context has at most so many executions, each counted once.

use keelway_conformance::stand::{Stand, context, project};
use keelway_domain::event::TaskResult;
use keelway_domain::sequences::{End, Execution};
use keelway_domain::shipyard::{Sequence, Shipyard, Stage, Task, Trigger};
use keelway_domain::time::Span;
use keelway_engine::sequences::{Limits, codec, keys};

/// A sequence of one automatic approval: it ends as soon as it begins.
fn sequence(name: &str, on: &[&str]) -> Sequence {
    let task = Task {
        name: "approval".to_owned().try_into().unwrap(),
        triggered_after: None,
        properties: Default::default(),
        start_deadline: None,
        timeout: None,
    };
    let on = on.iter().map(|event| Trigger { event: (*event).to_owned(), selector: None });
    Sequence {
        name: name.to_owned().try_into().unwrap(),
        triggered_on: on.collect(),
        tasks: vec![task],
        timeout: None,
        supersede: false,
        ignore_windows: None,
    }
}

fn stage(name: &str, sequences: Vec<Sequence>) -> Stage {
    Stage { name: name.to_owned().try_into().unwrap(), windows: vec![], sequences }
}

fn stand(stages: Vec<Stage>, max_executions: u32) -> Stand {
    Stand::with(&Shipyard { stages }, Limits { max_executions, ..Limits::default() })
}

/// The executions of the context that ran, and those that were refused.
fn ran_and_refused(stand: &Stand) -> (usize, usize) {
    let all = stand.executions("c1");
    assert!(all.iter().all(|x| x.outcome.is_some()), "something goes on: {all:?}");
    let refused = |x: &&Execution| x.outcome.is_some_and(|outcome| outcome.end == End::NeverStarted);
    let refused = all.iter().filter(refused).count();
    (all.len() - refused, refused)
}

/// Handles everything, each delivery so many times. Time passes: two messages with the same content are of different moments.
fn deliver(stand: &Stand, times: usize) {
    while let Some((id, delivery)) = stand.receive() {
        for _ in 0..times {
            stand.world.pass(Span(1));
            stand.handle(&delivery).unwrap();
        }
        stand.world.core().queue.acknowledge(id);
    }
}

fn counted(stand: &Stand) -> u32 {
    codec::context(stand.item(&keys::context(&project(), &context("c1"))).as_ref()).executions
}

#[test]
fn a_loop_of_automatic_approvals_ends_and_says_why() {
    let stand = stand(vec![stage("dev", vec![sequence("delivery", &["dev.delivery.finished"])])], 25);
    stand.trigger("c1");
    assert_eq!((ran_and_refused(&stand), counted(&stand)), ((25, 1), 25));
    let end = stand.published("c1", "sh.keptn.event.dev.delivery.finished").unwrap();
    assert_eq!((end["data"]["result"].as_str(), end["data"]["status"].as_str()), (Some("fail"), Some("errored")));
    assert_eq!(
        end["data"]["message"],
        "Unable to start sequence delivery: its context has 25 executions already, 25 are allowed (parameter MaxExecutions): sequences \
         may be triggering each other in a loop"
    );
    // The limit is the context's: another one begins anew.
    stand.trigger("c2");
    assert_eq!(stand.executions("c2").len(), 26);
}

#[test]
fn siblings_count_on_the_same_lane_and_on_others() {
    let again = ["dev.delivery.finished", "test.more.finished"];
    let dev = vec![sequence("delivery", &again), sequence("beside", &again)];
    let test = vec![sequence("more", &["dev.delivery.finished", "dev.beside.finished"])];
    let stand = stand(vec![stage("dev", dev), stage("test", test)], 40);
    stand.emit(stand.trigger_event("c1"));
    deliver(&stand, 1);
    let (ran, refused) = ran_and_refused(&stand);
    assert_eq!((ran, counted(&stand)), (40, 40), "one message after another: the limit is exact");
    assert!(refused > 1, "the last ones had several followers each: {refused}");
}

#[test]
fn what_is_delivered_or_sent_twice_counts_once() {
    let stages = vec![stage("dev", vec![sequence("delivery", &[]), sequence("after", &["dev.delivery.finished"])])];
    let stand = stand(stages, 3);
    for _ in 0..3 {
        stand.emit(stand.trigger_event("c1"));
    }
    deliver(&stand, 3);
    assert_eq!((ran_and_refused(&stand), counted(&stand)), ((2, 0), 2));
    assert!(stand.executions("c1").iter().all(|x| x.outcome.is_some_and(|outcome| outcome.result == TaskResult::Pass)));
}

#[test]
fn a_refused_trigger_counts_for_nothing() {
    let stand = stand(vec![stage("dev", vec![sequence("delivery", &[])])], 2);
    let mut unknown = stand.trigger_event("c1");
    unknown.ty = "sh.keptn.event.dev.unknown.triggered".into();
    unknown.id = "another".into();
    stand.emit(unknown);
    stand.rest();
    assert_eq!((ran_and_refused(&stand), counted(&stand)), ((0, 1), 0));
    stand.trigger("c1");
    assert_eq!((ran_and_refused(&stand), counted(&stand)), ((1, 1), 1));
}
