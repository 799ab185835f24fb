//! Events as clients and executors send them.

use keelway_domain::event::PREFIX;
use keelway_domain::time::Timestamp;
use serde_json::{Map, Value, json};

/// A new id or context.
pub fn fresh() -> String {
    uuid::Uuid::now_v7().to_string()
}

fn event(ty: String, source: &str, context: &str, data: Value) -> Value {
    json!({
        "specversion": "1.0", "id": fresh(), "source": source, "type": ty, "time": Timestamp(crate::cloud::now_millis()).rfc3339(),
        "datacontenttype": "application/json", "shkeptnspecversion": "0.2.4", "shkeptncontext": context, "data": data,
    })
}

/// An event for observers only: its type is none that the engine is given.
pub fn mark() -> Value {
    event("dev.keelway.test.mark".into(), "test", "", json!({}))
}

/// An event that the engine is given, keeps and does nothing about.
pub fn history(context: &str) -> Value {
    event("sh.keptn.log.error".into(), "test", context, json!({}))
}

/// Where a sequence runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Scope {
    /// The project.
    pub project: String,
    /// The stage.
    pub stage: String,
    /// The service.
    pub service: String,
}

impl Scope {
    /// In this place.
    pub fn new(project: &str, stage: &str, service: &str) -> Self {
        Self { project: project.into(), stage: stage.into(), service: service.into() }
    }

    /// A sequence's trigger.
    pub fn trigger(&self, sequence: &str, context: &str, data: Map<String, Value>) -> Value {
        let mut all = json!({"project": self.project, "stage": self.stage, "service": self.service});
        if let Some(all) = all.as_object_mut() {
            all.extend(data);
        }
        event(format!("{PREFIX}{}.{sequence}.triggered", self.stage), "client", context, all)
    }
}

/// An executor's answer to a task's trigger: `started` or `finished` (with result `pass` unless `data` says otherwise).
pub fn answer(trigger: &Value, kind: &str, source: &str, data: Map<String, Value>) -> Value {
    let ty = trigger["type"].as_str().unwrap_or_default();
    let stem = ty.strip_suffix(".triggered").unwrap_or(ty);
    let mut all = Map::new();
    for field in ["project", "stage", "service"] {
        all.insert(field.into(), trigger["data"][field].clone());
    }
    if kind == "finished" {
        all.insert("result".into(), "pass".into());
        all.insert("status".into(), "succeeded".into());
    }
    all.extend(data);
    let context = trigger["shkeptncontext"].as_str().unwrap_or_default();
    let mut event = event(format!("{stem}.{kind}"), source, context, Value::Object(all));
    event["triggeredid"] = trigger["id"].clone();
    event
}

/// Whether it is a task's trigger, not a sequence's.
pub fn is_task_trigger(event: &Value) -> bool {
    let ty = event["type"].as_str().unwrap_or_default();
    let task = ty.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(".triggered"));
    task.is_some_and(|task| !task.contains('.'))
}
