//! What an input costs, counted: requests by method and write units. The numbers are those of docs/costs.md; this fails when one
//! grows.

use keelway_conformance::stand::{Stand, delivery, hourly, project, shipyard, stage, task};
use keelway_domain::event::{CloudEvent, EventType, Kind};
use keelway_domain::shipyard::Shipyard;
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
    say_with(stand, on, (task, kind), json!("x".repeat(1000)));
}

/// The same with this note in a `.finished`.
fn say_with(stand: &Stand, on: &str, (task, kind): (&str, Kind), note: Value) {
    let trigger = stand.published(on, &EventType::task(task, Kind::Triggered)).expect("triggered");
    let id = trigger["id"].as_str().unwrap();
    let mut event = stand.event("dev", on, EventType::task(task, kind), Some(id), &format!("{id}-{}", kind.as_str()));
    event.data.insert("status".into(), json!("succeeded"));
    if kind == Kind::Finished {
        event.data.insert("result".into(), json!("pass"));
        event.data.insert("note".into(), note);
    } else {
        event.data.remove("result");
    }
    stand.emit(event);
}

/// What an executor of tests or an evaluation tells in about so many bytes: indicators with values that do not repeat.
fn indicators(bytes: usize) -> Value {
    let mut told = serde_json::Map::new();
    let mut n = 17u64;
    while json!(told).to_string().len() + 100 < bytes {
        n = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (name, value) = (format!("response_time_p{}_{}", (n >> 40) % 100, told.len()), (n >> 33) as f64 / 1000.0);
        told.insert(name, json!({"metric": "response_time", "value": value, "comparedValue": value * 1.7, "success": n & 64 == 0}));
    }
    json!(told)
}

#[test]
fn the_answer_and_what_follows_it_are_one_item() {
    for (bytes, most) in [(200, 4.0), (1000, 4.0), (2000, 4.0), (4000, 5.0), (16_000, 7.0)] {
        let stand = Stand::new(&shipyard(&["one", "two", "three"], "release"));
        stand.trigger("c1");
        stand.rest();
        say(&stand, "c1", "one", Kind::Started);
        stand.rest();
        say_with(&stand, "c1", ("one", Kind::Finished), indicators(bytes));
        let (requests, units) = handled(&stand);
        println!("a `.finished` with {bytes} bytes of indicators: {requests} requests, {units} write units");
        assert!(units <= most, "with {bytes} bytes it took {units} write units");
    }
}

#[test]
fn one_more_task_costs_five_requests_and_five_write_units() {
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
    assert!(requests <= 4 && units <= 4.0, "a `.finished` took {requests} requests and {units} write units");
}

/// What a sequence takes from its trigger to its end, with a payload of 1 KB.
fn sequence_of(tasks: &[&str]) -> (u64, f64) {
    let tasks_of = tasks.iter().map(|name| task(name)).collect();
    let stand = Stand::new(&Shipyard { stages: vec![stage("dev", vec![delivery(tasks_of, None)])] });
    let through = |on: &str| {
        let mut trigger = stand.trigger_event(on);
        trigger.data.insert("note".into(), json!("x".repeat(1000)));
        let before = used(&stand);
        stand.emit(trigger);
        stand.rest();
        for task in tasks {
            for kind in [Kind::Started, Kind::Finished] {
                say(&stand, on, task, kind);
                stand.rest();
            }
        }
        let after = used(&stand);
        (after.0 - before.0, after.1 - before.1)
    };
    // The first one registers the service.
    through("c1");
    through("c2")
}

#[test]
fn a_sequence_around_its_tasks_costs_what_the_page_of_costs_says() {
    let two = sequence_of(&["one", "two"]);
    let six = sequence_of(&["one", "two", "three", "four", "five", "six"]);
    let task = ((six.0 - two.0) / 4, (six.1 - two.1) / 4.0);
    let around = (two.0 - 2 * task.0, two.1 - 2.0 * task.1);
    println!("a task: {task:?}; a sequence around its tasks: {around:?}");
    assert!(task.0 <= 5 && task.1 <= 5.0, "a task: {task:?}");
    assert!(around.0 <= 8 && around.1 <= 14.0, "around its tasks: {around:?}");
}

#[test]
fn where_nobody_asks_what_is_open_a_task_costs_three_write_units() {
    let limits = Limits { polled: false, ..Limits::default() };
    let stand = Stand::with(&shipyard(&["one", "two", "three"], "release"), limits);
    stand.trigger("c1");
    stand.rest();
    say(&stand, "c1", "one", Kind::Started);
    assert_eq!(handled(&stand), (1, 1.0));
    say(&stand, "c1", "one", Kind::Finished);
    let (requests, units) = handled(&stand);
    assert!(requests <= 4 && units <= 2.0, "a `.finished` took {requests} requests and {units} write units");
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
        [(Publishes::Own, (1, 1.0, 0.0), (3, 4.0, 1.5), 0), (Publishes::All, (3, 1.0, 2.0), (5, 4.0, 3.0), 3)]
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
fn a_heartbeat_over_http_is_one_small_write() {
    for (publishes, most) in [(Publishes::Own, (3, 1.0, 2.0)), (Publishes::All, (4, 1.0, 3.0))] {
        let stand = Stand::with(&shipyard(&["one"], "release"), Limits { publishes, ..Limits::default() });
        stand.trigger("c1");
        stand.rest();
        answered_over_http(&stand, "one", Kind::Started);
        let (requests, writes, reads) = answered_over_http(&stand, "one", Kind::StatusChanged);
        println!("a heartbeat over HTTP, {publishes:?}: {:?}", (requests, writes, reads));
        assert!(requests <= most.0 && writes <= most.1 && reads <= most.2, "{publishes:?}: {requests} {writes} {reads}");
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
