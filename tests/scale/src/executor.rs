//! Executors that a rule invokes: they say `.started`, and `.finished` a second later.

use keelway_domain::event::{CloudEvent, EventType, Kind, Object};
use keelway_domain::names::Context;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::ports::BusEntry;
use keelway_world::account::Actor;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How long an executor takes to say that it has begun.
const BEGUN: Span = Span(50);
/// How long a task takes.
pub(super) const TASK: Span = Span::seconds(1);

fn object(value: Value) -> Object {
    value.as_object().cloned().unwrap_or_default()
}

/// An event of a client.
pub(super) fn event((project, service): (&str, &str), context: &str, (ty, id): (String, String), at: Timestamp) -> CloudEvent {
    CloudEvent {
        id,
        source: "client".into(),
        ty,
        time: at,
        context: Context::of(context),
        authors: vec![],
        triggered_id: None,
        git_commit_id: None,
        data: object(json!({"project": project, "stage": "dev", "service": service})),
    }
}

/// The trigger of a delivery. About a kilobyte, as the price model has it.
pub(super) fn trigger(to: (&str, &str), context: &str, at: Timestamp) -> CloudEvent {
    let named = ("sh.keptn.event.dev.delivery.triggered".to_owned(), format!("trigger-{context}-{}", to.1));
    let mut event = event(to, context, named, at);
    event.data.insert("note".into(), "x".repeat(700).into());
    event
}

/// What an executor says to a trigger; nothing to anything else.
pub(super) fn answers(trigger: &Value, now: Timestamp) -> Vec<(Span, CloudEvent)> {
    let EventType::Task(task, Kind::Triggered) = EventType::parse(trigger["type"].as_str().unwrap_or_default()) else {
        return vec![];
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let data = &trigger["data"];
    let say = |kind: Kind| CloudEvent {
        id: format!("{}-{}", text(&trigger["id"]), kind.as_str()),
        source: "executor".into(),
        ty: EventType::task(task.as_str(), kind),
        time: now,
        context: Context::of(&text(&trigger["shkeptncontext"])),
        authors: vec![],
        triggered_id: Some(text(&trigger["id"])),
        git_commit_id: None,
        data: object(json!({
            "project": data["project"], "stage": data["stage"], "service": data["service"], "status": "succeeded",
        })),
    };
    let mut finished = say(Kind::Finished);
    finished.data.insert("result".into(), "pass".into());
    vec![(BEGUN, say(Kind::Started)), (TASK, finished)]
}

/// Whether an event asks for a task.
fn asks(entry: &BusEntry) -> bool {
    matches!(EventType::parse(&entry.detail_type), EventType::Task(_, Kind::Triggered))
}

/// An executor that answers while it is there.
pub(super) fn executor(there: Arc<AtomicBool>) -> Actor {
    let told = move |entry: &BusEntry, now: Timestamp| {
        if !there.load(Ordering::Relaxed) {
            return vec![];
        }
        answers(&serde_json::from_str(&entry.detail).unwrap_or_default(), now)
    };
    Actor { takes: asks, told: Box::new(told) }
}

/// One that is always there.
pub(super) fn present() -> Actor {
    executor(Arc::new(AtomicBool::new(true)))
}
