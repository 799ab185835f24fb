//! Where answers are kept: in the record of the commit that they complete a task with, or in items of their own.

use keelway_conformance::stand::{Stand, context, project, shipyard};
use keelway_domain::event::{CloudEvent, EventType, Kind};
use keelway_domain::sequences::{Bare, Execution};
use keelway_engine::protocol::{Handled, record};
use keelway_engine::sequences::commands::Control;
use keelway_engine::sequences::{Body, Incoming, keys};
use keelway_engine::views::EventFilter;
use keelway_world::core::{Fault, Method};
use keelway_world::exec::block_on;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A stand whose execution waits for a task, and an answer with a note of that length.
fn asked(note: usize) -> (Stand, CloudEvent) {
    let stand = Stand::new(&shipyard(&["build", "deploy"], "release"));
    stand.trigger("c1");
    stand.rest();
    let answer = |kind: Kind| {
        let trigger = stand.published("c1", &EventType::task("build", Kind::Triggered)).expect("triggered");
        let id = trigger["id"].as_str().unwrap();
        stand.event("dev", "c1", EventType::task("build", kind), Some(id), &format!("{id}-{}", kind.as_str()))
    };
    stand.emit(answer(Kind::Started));
    stand.rest();
    let mut finished = answer(Kind::Finished);
    finished.data.insert("status".into(), json!("succeeded"));
    finished.data.insert("result".into(), json!("pass"));
    finished.data.insert("note".into(), json!("a note ".repeat(note / 7)));
    finished.git_commit_id = Some("4711".into());
    (stand, finished)
}

/// What the history of the context tells of an event.
fn told(stand: &Stand, event: &CloudEvent) -> Vec<Value> {
    let filter = EventFilter { id: Some(event.id.clone()), ..EventFilter::default() };
    block_on(stand.engine.views().events_of(&project(), &context("c1"), &filter, 100, 0)).unwrap().items
}

/// How many items of the context have the event themselves.
fn items(stand: &Stand, event: &CloudEvent) -> usize {
    let core = stand.world.core();
    let partition = keys::context_partition(&project(), &context("c1"));
    let own = |item: &&Arc<_>| keelway_engine::sequences::history::decode(item).as_ref() == Some(event);
    core.table.partition(&partition).filter(own).count()
}

/// The answers that records of the context have, and whether each record is packed.
fn recorded(stand: &Stand) -> Vec<(String, bool)> {
    let core = stand.world.core();
    let partition = keys::context_partition(&project(), &context("c1"));
    let records = core.table.partition(&partition).filter_map(|item| {
        let record = record::decode::<Execution>(Some(item))?;
        Some(Bare::all(&record).into_iter().map(|bare| (bare.id, item.text("j").is_none())).collect::<Vec<_>>())
    });
    records.flatten().collect()
}

fn shows_once(stand: &Stand, event: &CloudEvent) {
    let mut shown = told(stand, event);
    assert_eq!(shown.len(), 1, "{shown:?}");
    shown[0].as_object_mut().unwrap().remove("received");
    assert_eq!(shown[0], event.to_json(), "as it came");
}

#[test]
fn the_answer_that_completes_a_task_is_in_its_record() {
    for (note, packed) in [(10, false), (3000, true)] {
        let (stand, finished) = asked(note);
        stand.emit(finished.clone());
        stand.rest();
        assert_eq!(items(&stand, &finished), 0);
        assert!(recorded(&stand).contains(&(finished.id.clone(), packed)), "{:?}", recorded(&stand));
        shows_once(&stand, &finished);
    }
}

#[test]
fn a_large_answer_has_an_item_of_its_own() {
    let (stand, finished) = asked(20_000);
    stand.emit(finished.clone());
    stand.rest();
    assert_eq!(items(&stand, &finished), 1);
    assert!(recorded(&stand).iter().all(|(id, _)| *id != finished.id));
    shows_once(&stand, &finished);
}

#[test]
fn an_answer_whose_short_form_is_another_event_has_an_item_of_its_own() {
    let (stand, mut finished) = asked(100);
    finished.triggered_id = finished.triggered_id.map(|id| id.to_uppercase());
    stand.emit(finished.clone());
    stand.rest();
    assert_eq!(items(&stand, &finished), 1);
    shows_once(&stand, &finished);
}

#[test]
fn an_answer_in_the_record_of_a_lost_race_is_kept_as_what_it_became() {
    let (stand, finished) = asked(3000);
    let delivery = Incoming { sent: stand.world.now(), again: false, body: Body::Event(finished.clone()) };
    let stops = Arc::new(AtomicBool::new(true));
    let once = stops.clone();
    stand.world.core().faults =
        Some(Box::new(
            move |_, method| {
                if method == Method::Write && once.swap(false, Ordering::Relaxed) { Fault::Throttled } else { Fault::None }
            },
        ));
    assert!(stand.handle(&delivery).is_err() && !stops.load(Ordering::Relaxed), "it stops before the commit");
    assert!(recorded(&stand).contains(&(finished.id.clone(), true)), "the record is there, and nobody names it");
    assert_eq!(told(&stand, &finished), Vec::<Value>::new());
    stand.tell("c1", Control::Abort);
    stand.rest();
    assert_eq!(stand.handle(&Incoming { again: true, ..delivery }), Ok(Handled::Stale));
    let shown = told(&stand, &finished);
    assert_eq!((items(&stand, &finished), shown.len()), (1, 1));
    assert_eq!(shown[0]["verdict"], "stale");
}
