//! A limit that is met ends a sequence by name: no message is refused for ever because a record or an event would be too large.

use keelway_conformance::stand::{Stand, context, delivery, project, shipyard, stage, task};
use keelway_domain::event::{EventType, Kind};
use keelway_domain::names::SequenceName;
use keelway_domain::sequences::Execution;
use keelway_domain::shipyard::{MAX_FOLLOW_UPS, Sequence, Shipyard};
use keelway_engine::protocol::record;
use keelway_engine::sequences::keys;
use serde_json::json;

const LARGE: usize = 210 * 1024;

fn labels() -> serde_json::Value {
    json!({"note": "x".repeat(LARGE)})
}

fn dev(stand: &Stand) -> Option<Execution> {
    stand.executions("c1").into_iter().find(|x| x.stage == "dev")
}

/// Why inputs of the context were not taken.
fn refused(stand: &Stand) -> Vec<String> {
    let partition = keys::context_partition(&project(), &context("c1"));
    let core = stand.world.core();
    core.table.partition(&partition).filter_map(|item| item.text("vd")).map(str::to_owned).collect()
}

#[test]
fn a_trigger_with_large_labels_is_refused_by_name() {
    let stand = Stand::new(&shipyard(&["build", "deploy"], "release"));
    let mut trigger = stand.trigger_event("c1");
    trigger.data.insert("labels".into(), labels());
    stand.emit(trigger);
    stand.rest_with(|trigger| trigger.both());
    assert!(dev(&stand).is_none());
    assert!(refused(&stand).iter().any(|reason| reason.contains("data.labels has")), "{:?}", refused(&stand));
}

#[test]
fn an_answer_with_large_labels_is_refused_by_name() {
    let stand = Stand::new(&shipyard(&["build"], "release"));
    stand.trigger("c1");
    let open = stand.published("c1", "sh.keptn.event.build.triggered").unwrap();
    stand.emit(stand.event("dev", "c1", EventType::task("build", Kind::Started), open["id"].as_str(), "s"));
    let mut finished = stand.event("dev", "c1", EventType::task("build", Kind::Finished), open["id"].as_str(), "f");
    let taken = finished.clone();
    finished.id = "too-large".into();
    finished.data.insert("labels".into(), labels());
    stand.emit(finished);
    stand.rest();
    assert!(refused(&stand).iter().any(|reason| reason.contains("data.labels has")), "{:?}", refused(&stand));
    // The task is still open for an answer that can be taken.
    stand.emit(taken);
    stand.rest();
    assert!(stand.published("c1", "sh.keptn.event.release.triggered").is_some());
}

/// As much payload as an event may have, under a name of its own: it travels once in a record.
#[test]
fn a_payload_near_the_limit_goes_through_every_task_or_ends_by_name() {
    for size in [200 * 1024, 230 * 1024] {
        let stand = Stand::new(&shipyard(&["build", "deploy"], "release"));
        let mut trigger = stand.trigger_event("c1");
        trigger.data.insert("notes".into(), json!("x".repeat(size)));
        stand.emit(trigger);
        stand.rest_with(|trigger| trigger.both());
        let x = dev(&stand).expect("it is taken");
        let finished = stand.published("c1", &x.event_type(Kind::Finished)).expect("it ends");
        let named = finished["data"]["message"].as_str().is_some_and(|reason| reason.contains("data.notes"));
        assert!(named || finished["data"]["result"] == "pass", "{size}: {finished}");
    }
}

#[test]
fn more_follow_ups_than_are_allowed_are_noted() {
    let mut stages = vec![stage("dev", vec![delivery(vec![task("build")], None)])];
    let follow_up = |n: usize| Sequence {
        name: SequenceName::new(format!("follow-up-{n}")).unwrap(),
        ..delivery(vec![task("release")], Some("dev.delivery.finished"))
    };
    stages.extend((0..33).map(|n| stage(&format!("stage-{n}"), (0..45).map(follow_up).collect())));
    let stand = Stand::new(&Shipyard { stages });
    stand.trigger("c1");
    stand.answer("c1", "build");
    assert!(dev(&stand).is_some_and(|x| x.outcome.is_some()), "the last answer is taken");
    // As many as one event may set off, and a note in the timeline about the others.
    assert_eq!(stand.executions("c1").len() - 1, MAX_FOLLOW_UPS);
    let noted = format!("more than {MAX_FOLLOW_UPS} sequences are triggered on this");
    let partition = keys::context_partition(&project(), &context("c1"));
    let core = stand.world.core();
    assert!(core.table.partition(&partition).any(|item| record::text(item).is_some_and(|record| record.contains(&noted))));
}
