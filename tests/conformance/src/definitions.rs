//! Small shipyards for direct tests.

use crate::stand::object;
use keelway_domain::event::Object;
use keelway_domain::names::{SequenceName, StageName, TaskName};
use keelway_domain::schedules::Spec;
use keelway_domain::shipyard::{Sequence, Shipyard, Stage, Task, Trigger};
use keelway_domain::stored::Stored;
use keelway_wire::manifest::{self, Document};
use serde_json::json;
use std::sync::Arc;

/// A schedule that triggers the delivery of `dev` every hour.
pub fn hourly() -> Spec {
    let spec =
        json!({"stage": "dev", "sequence": "delivery", "services": ["svc"], "when": {"cron": "0 * * * *"}, "concurrency": "skip"});
    Spec::from_value(&spec).expect("it has all members")
}

/// A task without options.
pub fn task(name: &str) -> Task {
    Task {
        name: TaskName::new(name).expect("a name"),
        triggered_after: None,
        properties: Object::new(),
        start_deadline: None,
        timeout: None,
    }
}

/// An approval that a person decides.
pub fn gate() -> Task {
    Task { properties: object(json!({"pass": "manual"})), ..task("approval") }
}

/// A sequence named `delivery`.
pub fn delivery(tasks: Vec<Task>, after: Option<&str>) -> Sequence {
    let trigger = |event: &str| Trigger { event: event.to_owned(), selector: None };
    Sequence {
        name: SequenceName::new("delivery").expect("a name"),
        triggered_on: after.map(trigger).into_iter().collect(),
        tasks,
        timeout: None,
        supersede: false,
        ignore_windows: None,
    }
}

/// A stage with these sequences.
pub fn stage(name: &str, sequences: Vec<Sequence>) -> Stage {
    Stage { name: StageName::new(name).expect("a name"), windows: vec![], sequences }
}

/// `dev.delivery` with these tasks; `prod.delivery` follows it with a task of its own.
pub fn shipyard(tasks: &[&str], follow_up: &str) -> Shipyard {
    let first = tasks.iter().map(|name| task(name)).collect();
    let prod = delivery(vec![task(follow_up)], Some("dev.delivery.finished"));
    Shipyard { stages: vec![stage("dev", vec![delivery(first, None)]), stage("prod", vec![prod])] }
}

/// A shipyard with these stages, written as in a manifest.
pub fn stages(text: &str) -> Arc<Shipyard> {
    let text =
        format!("apiVersion: spec.keptn.sh/0.2.3\nkind: Shipyard\nmetadata: {{name: shipyard}}\nspec: {{stages: [{text}]}}\n");
    let parsed = manifest::parse(&text, "-");
    match parsed.documents.into_iter().next() {
        Some(Document::Shipyard(shipyard)) => Arc::new(shipyard.shipyard),
        _ => panic!("{:?}", parsed.findings),
    }
}
