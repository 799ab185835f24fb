//! What the sweep, dead letters and flags cost when there is much of everything, in requests: nothing here depends on how fast a
//! machine is.

use keelway_conformance::stand::{self, BEGIN, Stand, shipyard};
use keelway_domain::ids::SubjectId;
use keelway_domain::names::{Context, ProjectName};
use keelway_domain::sequences::Execution;
use keelway_domain::time::Span;
use keelway_engine::item::Item;
use keelway_engine::keys as common;
use keelway_engine::ports::Write;
use keelway_engine::projects;
use keelway_engine::protocol::create;
use keelway_engine::protocol::dead_letter::{DeadLetter, Redriven};
use keelway_engine::protocol::sweep::{Swept, Tick};
use keelway_engine::sequences::commands::Control;
use keelway_engine::sequences::{Body, Message, NAME};
use serde_json::Value;
use std::collections::BTreeSet;

/// What a function with four minutes does at 25 requests a second, a pessimist's rate.
const REQUESTS_OF_A_TICK: u64 = 6_000;

fn quiet() -> Stand {
    let stand = Stand::new(&shipyard(&["build"], "release"));
    stand.world.core().table.metered = false;
    stand
}

fn project(n: usize) -> ProjectName {
    ProjectName::new(format!("project-{n}")).unwrap()
}

/// An execution like this one, elsewhere.
fn like(x: &Execution, project: ProjectName, context: &str) -> Item {
    let copy = Execution { project, context: Context::new(context).unwrap(), ..x.clone() };
    let Write::Put(item, _) = create(&copy, BEGIN) else { panic!("a subject is created by a put") };
    item
}

/// A tick, page by page: what it did, its requests, and the most requests of one page.
fn tick(stand: &Stand) -> (Swept, u64, u64) {
    let (mut tick, mut all, mut most) = (Tick::default(), Swept::default(), 0);
    let before = stand.world.core().request_count();
    while !all.finished {
        let at = stand.world.core().request_count();
        let page = stand.page(&mut tick);
        all = all.and(page);
        most = most.max(stand.world.core().request_count() - at);
    }
    (all, stand.world.core().request_count() - before, most)
}

#[test]
fn projects_in_which_nothing_is_open_cost_a_sweep_nothing() {
    let stand = quiet();
    for n in 0..10_000 {
        stand.put(Item::new(projects::keys::listed(project(n).as_str())));
        stand.put(Item::new(projects::keys::project(&project(n))).with("v", 1i64).with("rev", "r1"));
    }
    let (swept, requests, _) = tick(&stand);
    assert_eq!((swept.seen, swept.finished), (0, true));
    assert!(requests <= 2 * u64::from(common::SHARDS), "{requests} requests");
    // A few of them have something open that nobody was told of.
    stand.trigger("c1");
    let x = stand.executions("c1").remove(0);
    for n in [17, 4_242, 9_999] {
        stand.put(like(&x, project(n), "c1"));
    }
    stand.world.pass(Span::minutes(30));
    stand.lose_messages();
    let (swept, requests, _) = tick(&stand);
    assert_eq!((swept.seen, swept.sent), (4, 4), "each is sent a message in one tick");
    assert!(requests <= 80, "{requests} requests");
}

#[test]
fn ten_thousand_open_executions_are_one_tick() {
    let stand = quiet();
    stand.trigger("c1");
    let x = stand.executions("c1").remove(0);
    stand.lose_messages();
    for n in 0..9_999 {
        stand.put(like(&x, project(n % 100), &format!("context-{n}")));
    }
    // Nothing is overdue: two reads a page.
    let (swept, requests, most) = tick(&stand);
    assert_eq!((swept.seen, swept.sent), (10_000, 0));
    assert!(requests < REQUESTS_OF_A_TICK / 10 && most <= 12, "{requests} requests, {most} for one page");
    // Everything is overdue: a message to each.
    stand.world.pass(Span::minutes(30));
    let (swept, requests, most) = tick(&stand);
    assert_eq!((swept.seen, swept.sent), (10_000, 10_000));
    assert!(requests < REQUESTS_OF_A_TICK && most <= 25, "{requests} requests, {most} for one page");
    assert_eq!(stand.world.core().queue.messages.len(), 10_000);
}

#[test]
fn a_sweep_that_is_cut_off_after_any_page_goes_on_there() {
    let stand = quiet();
    stand.trigger("c1");
    let x = stand.executions("c1").remove(0);
    for n in 0..1_999 {
        stand.put(like(&x, project(n % 10), &format!("context-{n}")));
    }
    // Each tick has time for three pages, and is then stopped in the middle of the fourth.
    let (mut seen, mut ticks) = (0, 0);
    'ticks: loop {
        ticks += 1;
        let mut tick = Tick::default();
        for _ in 0..3 {
            let page = stand.page(&mut tick);
            seen += page.seen;
            if page.finished {
                break 'ticks;
            }
        }
        assert!(ticks < 50, "it never comes to the end: {seen} seen");
    }
    assert_eq!(seen, 2_000);
    assert!(ticks <= 11, "{ticks} ticks");
}

/// So many services are triggered at once, and each delivers through both stages: requests and write units that it took, and the
/// most requests of one message.
fn delivered(services: usize) -> (u64, f64, u64) {
    let stand = Stand::new(&shipyard(&["build"], "release"));
    let service = |n: usize| format!("service-{n}");
    for n in 0..services {
        let mut event = stand.trigger_event(&format!("c{n}"));
        event.data.insert("service".into(), service(n).into());
        stand.emit(event);
    }
    let (mut seen, mut most) = (0, 0);
    while let Some((id, delivery)) = stand.receive() {
        let at = stand.world.core().request_count();
        stand.handle(&delivery).unwrap();
        most = most.max(stand.world.core().request_count() - at);
        stand.world.core().queue.acknowledge(id);
        let fresh = stand.world.core().bus.log[seen..].to_vec();
        seen += fresh.len();
        fresh.iter().filter_map(|told| stand.asked(told)).flat_map(|asked| asked.both()).for_each(|answer| stand.emit(answer));
    }
    let outgoing = stand.world.outgoing();
    let ended = outgoing.iter().filter(|told| told.detail_type == "sh.keptn.event.prod.delivery.finished");
    let ended: Vec<Value> = ended.map(|told| serde_json::from_str(&told.detail).unwrap()).collect();
    assert!(ended.len() == services && ended.iter().all(|event| event["data"]["result"] == "pass"), "each delivers once");
    let of: BTreeSet<&str> = ended.iter().filter_map(|event| event["data"]["service"].as_str()).collect();
    assert_eq!(of.len(), services);
    let known = stand.count(&projects::keys::project_partition(&stand::project()), projects::keys::SERVICE);
    assert_eq!(known, services, "each is known as a service of the project");
    let requests = stand.world.core().request_count();
    let units = stand.world.core().table.units.write;
    let (swept, sweep, _) = tick(&stand);
    assert!(swept.seen == 0 && sweep <= 2 * u64::from(common::SHARDS), "{swept:?} in {sweep} requests");
    (requests, units, most)
}

#[test]
fn three_hundred_services_cost_ten_times_what_thirty_cost() {
    let (few, many) = (delivered(30), delivered(300));
    println!("30 services: {few:?}; 300: {many:?}");
    assert!(many.0 <= 10 * few.0 && many.1 <= 10.0 * few.1, "it grows faster than the services");
    assert_eq!(many.2, few.2, "no message takes more requests because there are more services");
}

fn letter(n: usize, body: &str) -> DeadLetter {
    DeadLetter {
        engine: NAME.into(),
        queue: "sequences-dead-letters".into(),
        message_id: format!("m-{n}"),
        sent: BEGIN,
        body: body.to_owned(),
        receives: 10,
        reason: None,
    }
}

#[test]
fn fifty_thousand_dead_letters_are_sent_again_in_a_few_ticks() {
    const LETTERS: usize = 50_000;
    let stand = quiet();
    for n in 0..LETTERS {
        stand.store_letter(&letter(n, r#"{"detail-type":"x","source":"y","detail":{}}"#));
    }
    let before = stand.world.core().request_count();
    let (mut sent, mut most) = (0, 0);
    loop {
        let at = stand.world.core().request_count();
        let now = stand.redrive();
        most = most.max(stand.world.core().request_count() - at);
        if now == 0 {
            break;
        }
        sent += now;
    }
    let requests = stand.world.core().request_count() - before;
    assert_eq!(sent, LETTERS);
    assert_eq!(stand.world.core().queue.messages.len(), LETTERS);
    // Ten at a time, so that bodies as large as a message may be fit into memory.
    assert!(most <= 4, "{most} requests for one batch");
    assert!(requests <= 4 * (LETTERS as u64).div_ceil(10) + 4, "{requests} requests");
    // All of them handled: nothing of them stays.
    let again: Vec<_> = std::mem::take(&mut stand.world.core().queue.messages).into_values().collect();
    for message in again {
        stand.letter_handled(&Redriven::parse(&message.parcel.text()).unwrap());
    }
    for partition in [common::DEAD_LETTERS, common::DUE_LETTERS] {
        assert_eq!(stand.count(partition, ""), 0, "{partition}");
    }
}

#[test]
fn letters_as_large_as_a_message_fit_into_memory_and_into_requests() {
    let stand = quiet();
    let body = format!(r#"{{"detail-type":"x","source":"y","detail":{{"text":"{}"}}}}"#, "x".repeat(240 * 1024));
    for n in 0..40 {
        stand.store_letter(&letter(n, &body));
    }
    let mut calls = 0;
    while stand.redrive() > 0 {
        calls += 1;
    }
    assert_eq!((calls, stand.world.core().queue.messages.len()), (4, 40));
}

#[test]
fn an_abort_of_a_context_with_ten_thousand_executions_is_bounded_per_message() {
    let stand = quiet();
    stand.trigger("c1");
    let mut x = stand.executions("c1").remove(0);
    for n in 1..10_000u64 {
        x.id = SubjectId(n);
        stand.put(like(&x, x.project.clone(), "c1"));
    }
    stand.tell("c1", Control::Abort);
    let (mut messages, mut told) = (0, 0);
    while let Some((id, delivery)) = stand.receive() {
        if matches!(delivery.body, Body::Own(Message::Conform { .. })) {
            let at = stand.world.core().request_count();
            stand.handle(&delivery).unwrap();
            let requests = stand.world.core().request_count() - at;
            assert!(requests <= 120, "{requests} requests for one message");
            messages += 1;
        } else {
            told += 1;
        }
        stand.world.core().queue.acknowledge(id);
    }
    assert_eq!(told, 10_000);
    assert!(messages <= 11, "{messages} messages");
}
