//! What must not be done again: messages that are left over, meant for others, or unreadable publish nothing and stop nobody.

use keelway_conformance::stand::{Stand, context, gate, object, project, shipyard, task};
use keelway_domain::event::{EventType, Kind};
use keelway_domain::ids::RecordId;
use keelway_domain::time::Span;
use keelway_engine::item::{Item, Key};
use keelway_engine::protocol::Handled;
use keelway_engine::sequences::{Address, Body, Message, keys};
use serde_json::json;

fn conform(on: &str) -> Message {
    Message::Conform { project: project(), context: context(on), after: String::new() }
}

#[test]
fn a_wake_up_left_over_by_an_ended_execution_publishes_nothing() {
    let stand = Stand::new(&shipyard(&["build"], "release"));
    stand.trigger("c1");
    stand.answer("c1", "build");
    stand.answer("c1", "release");
    let before = stand.publications();
    stand.world.pass(Span::minutes(30));
    stand.rest();
    assert_eq!(stand.publications(), before);
}

#[test]
fn flags_that_concern_another_stage_publish_nothing() {
    let stand = Stand::new(&shipyard(&["build"], "release"));
    stand.trigger("c1");
    let before = stand.publications();
    assert_eq!(stand.own(conform("c1")), Handled::Committed);
    stand.rest();
    assert_eq!(stand.publications(), before);
}

#[test]
fn a_sweep_does_not_ask_a_person_again_for_ever() {
    let mut shipyard = shipyard(&["build"], "release");
    shipyard.stages[0].sequences[0].tasks.push(gate());
    let stand = Stand::new(&shipyard);
    stand.trigger("c1");
    stand.answer("c1", "build");
    assert!(stand.published("c1", "sh.keptn.event.approval.triggered").is_some());
    stand.world.pass(Span::minutes(40));
    stand.rest();
    let before = stand.publications();
    stand.sweep_for(60);
    assert_eq!(stand.publications(), before);
}

#[test]
fn a_sweep_does_not_repeat_for_ever_what_waits_for_its_lane() {
    let mut shipyard = shipyard(&["build"], "release");
    let tasks = &mut shipyard.stages[0].sequences[0].tasks;
    tasks[0].start_deadline = Some(Span::minutes(24 * 60));
    tasks.extend([gate(), task("deploy")]);
    let stand = Stand::new(&shipyard);
    stand.trigger("c1");
    stand.answer("c1", "build");
    stand.trigger("holder");
    let asked = stand.published("c1", "sh.keptn.event.approval.triggered").unwrap();
    let trigger = RecordId::from_uuid(asked["id"].as_str().unwrap()).unwrap();
    let to = Address { project: project(), context: context("c1"), execution: trigger.subject };
    let mut event = asked.clone();
    event["type"] = json!("sh.keptn.event.approval.finished");
    event["id"] = json!("decision");
    stand.own(Message::Decide { to, trigger, event });
    stand.rest();
    assert!(stand.published("c1", "sh.keptn.event.approval.finished").is_some());
    assert!(stand.published("c1", "sh.keptn.event.deploy.triggered").is_none(), "another one holds the lane");
    stand.world.pass(Span::minutes(40));
    stand.rest();
    // The holder's task is out and unanswered: its trigger is repeated once.
    stand.sweep();
    stand.rest();
    let before = stand.publications();
    stand.sweep_for(60);
    assert_eq!(stand.publications(), before);
}

#[test]
fn a_follow_up_runs_the_revision_that_was_in_force_at_its_cause() {
    let stand = Stand::new(&shipyard(&["build"], "release"));
    stand.trigger("c1");
    let open = stand.published("c1", "sh.keptn.event.build.triggered").unwrap();
    let open = open["id"].as_str();
    stand.emit(stand.event("dev", "c1", EventType::task("build", Kind::Started), open, "s"));
    stand.emit(stand.event("dev", "c1", EventType::task("build", Kind::Finished), open, "f"));
    // The end is committed when its follow-up's message is next.
    stand.rest_until(|body| !matches!(body, Body::Event(_)));
    stand.apply("r2", &shipyard(&["build"], "other"));
    stand.rest();
    assert!(stand.published("c1", "sh.keptn.event.release.triggered").is_some());
    assert!(stand.published("c1", "sh.keptn.event.other.triggered").is_none());
}

#[test]
fn who_is_aborted_in_the_queue_leaves_it_at_once() {
    let stand = Stand::new(&shipyard(&["build"], "release"));
    stand.trigger("holder");
    for n in 0..3 {
        stand.trigger(&format!("waits-{n}"));
    }
    assert_eq!(stand.queue(), 3);
    let flags = Item::new(keys::context(&project(), &context("waits-1"))).with("v", 9i64).with("ep", 1i64).with("ea", 1i64);
    stand.put(flags);
    stand.own(conform("waits-1"));
    stand.rest();
    assert_eq!(stand.queue(), 2);
}

#[test]
fn an_execution_that_cannot_be_read_stops_no_sweep() {
    let stand = Stand::new(&shipyard(&["build"], "release"));
    stand.put(
        Item::new(Key::new("C#p#c0", "X#2222222222222"))
            .with("v", 1i64)
            .with("f", 99i64)
            .with("gp2", keys::open_executions(&project()))
            .with("gs2", "p#0000000000001#c0#2222222222222"),
    );
    stand.trigger("c1");
    stand.world.pass(Span::minutes(5));
    let swept = stand.sweep();
    assert_eq!((swept.seen, swept.sent, swept.finished), (2, 1, true));
    stand.own(conform("c0"));
}

/// A function that handles nothing: the sweep sends wake-ups, and nobody takes them.
#[test]
fn what_does_not_go_on_although_the_sweep_reminded_of_it_is_stuck() {
    let stand = Stand::new(&shipyard(&["build"], "release"));
    stand.trigger("c1");
    let stuck_after = |minutes| {
        stand.world.pass(Span::minutes(minutes));
        stand.sweep().stuck
    };
    // The start deadline of ten minutes is over, and then a quarter of an hour more.
    assert_eq!((stuck_after(10), stuck_after(5), stuck_after(5), stuck_after(6), stuck_after(5)), (0, 0, 0, 1, 1));
    stand.rest();
    assert_eq!(stand.sweep().stuck, 0, "its task has timed out");
}

#[test]
fn names_of_any_length_are_refused_and_recorded() {
    let stand = Stand::new(&shipyard(&["build"], "release"));
    for (field, n) in [("stage", 110), ("stage", 150_000), ("project", 230_000)] {
        let mut event = stand.trigger_event("c1");
        event.id = format!("{field}-{n}");
        event.data.extend(object(json!({field: "x".repeat(n)})));
        stand.emit(event);
        let (id, delivery) = stand.receive().unwrap();
        assert_eq!(stand.handle(&delivery), Ok(Handled::Invalid), "{field} {n}");
        stand.world.core().queue.acknowledge(id);
    }
    assert_eq!(stand.publications(), 0);
}
