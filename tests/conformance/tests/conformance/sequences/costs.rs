//! What an input costs, counted: requests by method and write units. The numbers are those of docs/costs.md; this fails when one
//! grows.

use keelway_conformance::stand::{Stand, hourly, project, shipyard};
use keelway_domain::event::{CloudEvent, EventType, Kind};
use keelway_domain::time::Span;
use keelway_engine::sequences::{Body, Limits, Message, Publishes};
use keelway_world::exec::block_on;
use keelway_world::sequences::answered;
use serde_json::{Value, json};

/// Requests and write units so far.
fn used(stand: &Stand) -> (u64, f64) {
    let core = stand.world.core();
    (core.request_count(), core.table.units.write)
}

/// What handling everything that is due took.
fn handled(stand: &Stand) -> (u64, f64) {
    let before = used(stand);
    stand.rest();
    let after = used(stand);
    (after.0 - before.0, after.1 - before.1)
}

/// Puts an answer to a context's open task on the bus; a `.finished` carries about a kilobyte.
fn say(stand: &Stand, on: &str, task: &str, kind: Kind) {
    let trigger = stand.published(on, &EventType::task(task, Kind::Triggered)).expect("triggered");
    let id = trigger["id"].as_str().unwrap();
    let mut event = stand.event("dev", on, EventType::task(task, kind), Some(id), &format!("{id}-{}", kind.as_str()));
    event.data.insert("status".into(), json!("succeeded"));
    if kind == Kind::Finished {
        event.data.insert("result".into(), json!("pass"));
        event.data.insert("note".into(), json!("x".repeat(1000)));
    } else {
        event.data.remove("result");
    }
    stand.emit(event);
}

#[test]
fn one_more_task_costs_five_requests_and_eight_write_units() {
    let stand = Stand::new(&shipyard(&["one", "two", "three"], "release"));
    stand.trigger("c1");
    stand.rest();
    // The first answer also registers what the first of a kind registers; the second task is the ordinary one.
    for kind in [Kind::Started, Kind::Finished] {
        say(&stand, "c1", "one", kind);
        stand.rest();
    }
    say(&stand, "c1", "two", Kind::Started);
    assert_eq!(handled(&stand), (1, 1.0), "a first `.started` is one conditional write");
    say(&stand, "c1", "two", Kind::Finished);
    let (requests, units) = handled(&stand);
    println!("one more task: 1 + {requests} requests, 1 + {units} write units");
    assert!(requests <= 4 && units <= 7.0, "a `.finished` took {requests} requests and {units} write units");
}

/// The answer of an executor over HTTP, and what it took: requests, write units and read units.
fn answered_over_http(stand: &Stand, task: &str, kind: Kind) -> (u64, f64, f64) {
    let trigger = stand.executions("c1")[0].record.expect("an open task").uuid().to_string();
    let mut event = stand.event("dev", "c1", EventType::task(task, kind), Some(&trigger), &format!("{trigger}-{}", kind.as_str()));
    match kind {
        Kind::Finished => drop(event.data.insert("note".into(), json!("x".repeat(1000)))),
        _ => drop(event.data.remove("result")),
    }
    let (before, read) = (used(stand), stand.world.core().table.units.read);
    block_on(answered(&stand.engine, &event)).expect("nothing is in the way").expect("it fits");
    let after = used(stand);
    (after.0 - before.0, after.1 - before.1, stand.world.core().table.units.read - read)
}

#[test]
fn one_more_task_over_http_takes_no_message_and_without_publications_four_requests() {
    // With everything on the bus, the answers and the trigger are published, and a `.started` is checked before.
    for (publishes, started, finished, events) in
        [(Publishes::Own, (1, 1.0, 0.0), (3, 7.0, 3.0), 0), (Publishes::All, (3, 1.0, 2.0), (5, 7.0, 3.0), 3)]
    {
        let stand = Stand::with(&shipyard(&["one", "two", "three"], "release"), Limits { publishes, ..Limits::default() });
        stand.trigger("c1");
        stand.rest();
        for kind in [Kind::Started, Kind::Finished] {
            answered_over_http(&stand, "one", kind);
        }
        let told = |stand: &Stand| {
            let core = stand.world.core();
            (core.bus.log.len() + core.bus.announced.len(), core.queue.sent())
        };
        let before = told(&stand);
        assert_eq!(answered_over_http(&stand, "two", Kind::Started), started, "{publishes:?}");
        let (requests, writes, reads) = answered_over_http(&stand, "two", Kind::Finished);
        println!("over HTTP, {publishes:?}: {started:?} and {:?}", (requests, writes, reads));
        assert!(
            requests <= finished.0 && writes <= finished.1 && reads <= finished.2,
            "{publishes:?}: {requests} {writes} {reads}"
        );
        let after = told(&stand);
        assert_eq!((after.0 - before.0, after.1 - before.1), (events, 0), "{publishes:?}: events, messages");
        let open = stand.executions("c1")[0].open.clone();
        assert_eq!(open.map(|task| task.to_string()).as_deref(), Some("three"), "{publishes:?}");
    }
}

#[test]
fn counting_the_executions_of_a_context_takes_no_request() {
    let stand = Stand::new(&shipyard(&["build"], "release"));
    let triggered = |context: &str, id: &str| {
        stand.emit(CloudEvent { id: id.into(), ..stand.trigger_event(context) });
        handled(&stand)
    };
    // The first of all also registers the service.
    stand.trigger("before");
    stand.answer("before", "build");
    let (requests, units) = triggered("c1", "first");
    let waiting = triggered("c2", "waits");
    stand.answer("c1", "build");
    stand.answer("c2", "build");
    let again = triggered("c1", "second");
    let waiting_again = triggered("c1", "waits too");
    println!("a start: {requests} requests, {units} units; again {again:?}; waiting {waiting:?}, again {waiting_again:?}");
    assert!(again.0 <= requests && again.1 <= units, "in a context that exists, a start costs no more than in a new one");
    assert!(waiting_again.0 <= waiting.0 && waiting_again.1 <= waiting.1, "and neither does one that waits");
}

#[test]
fn an_execution_that_waited_costs_at_most_twelve_requests_until_it_runs() {
    let stand = Stand::new(&shipyard(&["build"], "release"));
    stand.trigger("first");
    stand.rest();
    stand.emit(stand.trigger_event("second"));
    let (accepted, accepted_units) = handled(&stand);
    // Until the first has ended, the lane has not changed hands.
    say(&stand, "first", "build", Kind::Started);
    stand.rest();
    say(&stand, "first", "build", Kind::Finished);
    stand.rest_until(|body| matches!(body, Body::Own(Message::Granted { .. })));
    let (granted, granted_units) = handled(&stand);
    let started: Option<Value> = stand.published("second", &EventType::task("build", Kind::Triggered));
    assert!(started.is_some(), "it runs");
    // The hand-over itself is two requests of the one that leaves: reading who is next, and the message. It writes the lock in any
    // case.
    let (hand_over, total) = (2, accepted + granted + 2);
    println!(
        "an execution that waited: accepted with {accepted} requests and {accepted_units} write units, granted with {granted} and {granted_units}, handed over with {hand_over} requests"
    );
    assert!(accepted <= 5 && granted <= 5, "accepted with {accepted}, granted with {granted}, handed over with {hand_over}");
    assert!(total <= 12, "{total} requests");
}

#[test]
fn a_time_of_a_schedule_costs_what_the_page_of_costs_says() {
    let stand = Stand::new(&shipyard(&["build"], "release"));
    block_on(stand.engine.schedules().apply((&project(), "hourly"), &hourly(), "")).unwrap();
    stand.rest();
    for run in ["the first", "another"] {
        stand.world.pass(Span::minutes(60));
        stand.rest_until(|body| matches!(body, Body::Own(Message::Due { .. })));
        let (id, due) = stand.receive().unwrap();
        let before = used(&stand);
        stand.handle(&due).unwrap();
        let after = used(&stand);
        stand.world.core().queue.acknowledge(id);
        let took = (after.0 - before.0, after.1 - before.1);
        println!("{run} time of a schedule: {took:?}");
        // It reads the schedule, writes the record and the schedule, sets the next wake-up, and sends a message. From the second
        // time on, it looks whether the record before is its own, and a query tells whether the run before is open.
        assert_eq!(took, if run == "another" { (7, 2.0) } else { (5, 2.0) });
        stand.rest();
    }
}
