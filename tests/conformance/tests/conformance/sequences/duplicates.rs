//! A duplicate, a stale or a replayed input publishes nothing but what it caused itself and what may not have been published yet.
//! Every publication is counted. The executors here answer each delivery of a trigger, as rules have them do.

use keelway_conformance::stand::{Stand, gate, shipyard};
use keelway_domain::event::{CloudEvent, EventType, Kind};
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::ports::PortError;
use keelway_engine::protocol::Handled;
use keelway_engine::sequences::{Body, Incoming};
use keelway_world::core::{Fault, Method};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const TASKS: [&str; 8] = ["t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8"];

/// What a delivery of [`TASKS`] and production's task publishes: two starts, two ends, the trigger of production, nine tasks.
const ONCE: usize = 2 + 2 + 1 + 9;

fn of(event: CloudEvent, sent: Timestamp) -> Incoming {
    Incoming { sent, again: false, body: Body::Event(event) }
}

/// A delivery whose every input is kept, in the order in which it came.
fn told() -> (Stand, Vec<Incoming>) {
    let stand = Stand::new(&shipyard(&TASKS, "release"));
    stand.emit(stand.trigger_event("c1"));
    let handled = stand.rest_with(|trigger| trigger.both());
    let inputs = handled.into_iter().filter(|delivery| matches!(delivery.body, Body::Event(_))).collect();
    assert_eq!(stand.publications(), ONCE);
    (stand, inputs)
}

/// The same event again, at its own time: a copy, not a redelivery.
fn replayed(stand: &Stand, inputs: &[Incoming]) {
    for input in inputs {
        if let Body::Event(event) = &input.body {
            stand.emit(event.clone());
        }
    }
    stand.rest_with(|trigger| trigger.both());
}

#[test]
fn an_answer_that_comes_again_publishes_nothing() {
    let stand = Stand::new(&shipyard(&["build"], "release"));
    stand.emit(stand.trigger_event("c1"));
    let started = |trigger: &keelway_conformance::stand::Triggered| vec![trigger.answer(Kind::Started, "executor")];
    let handled = stand.rest_with(started);
    let before = stand.publications();
    assert_eq!(before, 2, "the sequence's start and one trigger");
    let answer = handled.last().unwrap();
    let Body::Event(event) = &answer.body else { panic!("{answer:?}") };
    for _ in 0..10 {
        stand.emit(event.clone());
        stand.rest_with(started);
    }
    // The same message once more: it made no record either.
    assert_eq!(stand.handle(answer), Ok(Handled::Settled));
    stand.rest_with(started);
    assert_eq!(stand.publications(), before);
}

#[test]
fn a_trigger_that_comes_twice_is_published_once_through_all_tasks() {
    let stand = Stand::new(&shipyard(&TASKS, "release"));
    stand.emit(stand.trigger_event("c1"));
    stand.emit(stand.trigger_event("c1"));
    stand.rest_with(|trigger| trigger.both());
    assert_eq!((stand.publications(), stand.repeated()), (ONCE, vec![]));
}

#[test]
fn a_message_delivered_twice_repeats_its_own_publications_only() {
    let stand = Stand::new(&shipyard(&TASKS, "release"));
    let first = of(stand.trigger_event("c1"), stand.world.now());
    assert_eq!(stand.handle(&first), Ok(Handled::Committed));
    assert_eq!(stand.handle(&first), Ok(Handled::Settled));
    let repeated: BTreeMap<String, usize> = stand.repeated().into_iter().collect();
    assert_eq!(repeated, [("dev.delivery.started".to_owned(), 2), ("t1.triggered".to_owned(), 2)].into());
    // Both publications reach the executor, which answers both: what follows is published once all the same.
    let trigger = stand.published("c1", "sh.keptn.event.t1.triggered").unwrap();
    let mut answers = vec![];
    for _ in 0..2 {
        for kind in ["started", "finished"] {
            let ty = format!("sh.keptn.event.t1.{kind}");
            answers.push(stand.event("dev", "c1", ty, trigger["id"].as_str(), &format!("t1-{kind}")));
        }
    }
    answers.into_iter().for_each(|answer| stand.emit(answer));
    stand.rest_with(|trigger| trigger.both());
    assert_eq!(stand.publications(), ONCE + 2);
}

#[test]
fn a_second_executor_that_is_late_sets_nothing_off() {
    let stand = Stand::new(&shipyard(&TASKS, "release"));
    stand.emit(stand.trigger_event("c1"));
    // Everybody answers under an id of its own each time, and a second executor comes when the first is done.
    let mut told = 0;
    let handled = stand.rest_with(|trigger| {
        told += 1;
        let mut answers = trigger.both();
        answers.extend([Kind::Started, Kind::Finished].map(|kind| trigger.answer(kind, &format!("second-{told}"))));
        answers
    });
    let answers = handled.iter().filter(|delivery| matches!(delivery.body, Body::Event(_))).count();
    assert_eq!(answers, 1 + 4 * 9);
    assert_eq!((stand.publications(), stand.repeated()), (ONCE, vec![]));
}

#[test]
fn a_history_replayed_ten_hours_later_publishes_nothing() {
    let (stand, inputs) = told();
    stand.world.pass(Span::minutes(600));
    stand.rest();
    replayed(&stand, &inputs);
    assert_eq!(stand.publications(), ONCE);
    // As redeliveries, which do repeat what they made themselves: the tasks are over, so no trigger is among it.
    for input in &inputs {
        stand.handle(input).unwrap();
    }
    stand.rest_with(|trigger| trigger.both());
    let triggers: Vec<_> =
        stand.repeated().into_iter().filter(|(ty, _)| ty.starts_with('t') || ty.starts_with("release")).collect();
    assert_eq!(triggers, [], "a task that is over is announced again");
}

#[test]
fn a_history_replayed_while_the_last_task_is_open_publishes_nothing() {
    let stand = Stand::new(&shipyard(&TASKS, "release"));
    stand.emit(stand.trigger_event("c1"));
    let handled = stand.rest_with(|trigger| if trigger.task == "release" { vec![] } else { trigger.both() });
    let before = stand.publications();
    assert_eq!(before, ONCE - 1, "all but production's end");
    let inputs: Vec<Incoming> = handled.into_iter().filter(|delivery| matches!(delivery.body, Body::Event(_))).collect();
    replayed(&stand, &inputs);
    assert_eq!(stand.publications(), before);
}

#[test]
fn a_history_replayed_a_year_later_publishes_nothing() {
    let (stand, inputs) = told();
    stand.world.pass(Span::minutes(365 * 24 * 60));
    stand.rest();
    stand.expire();
    assert_eq!(stand.executions("c1"), [], "history has expired");
    replayed(&stand, &inputs);
    for input in &inputs {
        stand.handle(input).unwrap();
    }
    stand.rest_with(|trigger| trigger.both());
    assert_eq!((stand.publications(), stand.executions("c1")), (ONCE, vec![]));
}

#[test]
fn a_sweep_repeats_an_unanswered_trigger_once() {
    let mut shipyard = shipyard(&["build", "deploy"], "release");
    for task in &mut shipyard.stages[0].sequences[0].tasks {
        task.start_deadline = Some(Span::minutes(60 * 24));
    }
    let stand = Stand::new(&shipyard);
    stand.trigger("c1");
    stand.sweep_for(120);
    let twice = |stand: &Stand| stand.repeated().into_iter().collect::<BTreeMap<_, _>>();
    assert_eq!(twice(&stand), [("build.triggered".to_owned(), 2), ("dev.delivery.started".to_owned(), 2)].into());
    // Once per task.
    stand.answer("c1", "build");
    stand.sweep_for(120);
    assert_eq!(twice(&stand).get("deploy.triggered"), Some(&2));
    let before = stand.publications();
    stand.sweep_for(240);
    assert_eq!(stand.publications(), before);
}

#[test]
fn a_sweep_never_asks_a_person_again() {
    let mut shipyard = shipyard(&["build"], "release");
    shipyard.stages[0].sequences[0].tasks.push(gate());
    let stand = Stand::new(&shipyard);
    stand.trigger("c1");
    stand.answer("c1", "build");
    assert!(stand.published("c1", "sh.keptn.event.approval.triggered").is_some());
    let before = stand.publications();
    stand.sweep_for(24 * 60);
    assert_eq!((stand.publications(), stand.repeated()), (before, vec![]));
}

#[test]
fn a_timer_that_cannot_be_set_holds_the_publication_back() {
    let stand = Stand::new(&shipyard(&["build"], "release"));
    let left = Arc::new(AtomicU64::new(9));
    let tries = left.clone();
    stand.world.core().faults = Some(Box::new(move |_, method| {
        let fails =
            method == Method::SendAt && tries.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok();
        if fails { Fault::Throttled } else { Fault::None }
    }));
    let trigger = of(stand.trigger_event("c1"), stand.world.now());
    let mut failures = 0;
    while let Err(error) = stand.handle(&trigger) {
        assert!(matches!(error, PortError::Retry { .. }), "{error}");
        failures += 1;
        assert_eq!(stand.publications(), 0, "published after {failures} failures");
    }
    assert_eq!((failures, left.load(Ordering::Relaxed)), (9, 0));
    assert_eq!((stand.publications(), stand.repeated()), (2, vec![]));
}

/// Executors that poll are told by nobody; what they find open they may have answered before it was published.
#[test]
fn who_answers_before_the_trigger_was_published_is_not_told_afterwards() {
    let stand = Stand::new(&shipyard(&["build", "deploy"], "release"));
    let trigger = of(stand.trigger_event("c1"), stand.world.now());
    stand.world.core().faults = Some(Box::new(|_, method| if method == Method::Publish { Fault::Throttled } else { Fault::None }));
    assert!(stand.handle(&trigger).is_err());
    let open = stand.executions("c1").remove(0).record.unwrap().uuid().to_string();
    stand.world.core().faults = None;
    for kind in ["started", "finished"] {
        stand.emit(stand.event("dev", "c1", format!("sh.keptn.event.build.{kind}"), Some(&open), kind));
    }
    stand.rest();
    assert_eq!(stand.handle(&trigger), Ok(Handled::Settled));
    let published: HashSet<String> = stand.counts().into_keys().collect();
    assert!(!published.contains("build.triggered"), "the task is over: {published:?}");
    assert!(published.contains("dev.delivery.started"), "its other events are owed: {published:?}");
}

/// Wake-ups that are in the queue, visible or not.
fn wake_ups(stand: &Stand) -> usize {
    let core = stand.world.core();
    core.queue.messages.values().filter(|message| message.parcel.text().contains("\"wake\"")).count()
}

#[test]
fn copies_of_a_wake_up_become_no_more_and_end_with_the_execution() {
    let mut shipyard = shipyard(&["build"], "release");
    let task = &mut shipyard.stages[0].sequences[0].tasks[0];
    (task.start_deadline, task.timeout) = (Some(Span::minutes(10)), Some(Span::minutes(20)));
    let stand = Stand::new(&shipyard);
    stand.trigger("c1");
    let wake = stand.world.core().queue.messages.values().find(|message| message.parcel.text().contains("\"wake\"")).cloned();
    let wake = wake.expect("the start deadline has a wake-up").parcel;
    for _ in 0..5 {
        stand.world.enqueue(keelway_engine::sequences::NAME, wake.clone());
    }
    let open = stand.published("c1", "sh.keptn.event.build.triggered").expect("triggered");
    stand.emit(stand.event("dev", "c1", EventType::task("build", Kind::Started), open["id"].as_str(), "s"));
    stand.rest();
    assert_eq!(wake_ups(&stand), 6, "each copy came too early, and comes again");
    stand.world.pass(Span::minutes(10));
    stand.rest();
    assert_eq!(wake_ups(&stand), 6, "any of them may be the only one that can schedule the next");
    stand.world.pass(Span::minutes(20));
    stand.rest();
    assert_eq!(wake_ups(&stand), 0, "the task has timed out");
    // Nor does the next execution on the lane get copies.
    stand.trigger("c2");
    stand.rest();
    assert_eq!(wake_ups(&stand), 1);
}
