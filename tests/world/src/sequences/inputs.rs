//! Events as a case puts them in.

use super::Keptn;
use crate::case::{Step, Telling, merge, remove};
use keelway_domain::event::PREFIX;
use keelway_domain::time::Timestamp;
use serde_json::{Map, Value, json};

/// The `.triggered` event a reaction answers: by alias, or the newest of the context.
pub(super) fn answered<'s>(story: &'s Telling<'_, Keptn>, step: &Step<Keptn>, task: &str) -> Result<&'s Value, String> {
    if let Some(alias) = &step.own.to {
        return story.event(alias);
    }
    let context = story.context(step.about());
    let ty = format!("{PREFIX}{task}.triggered");
    let fits = |event: &&Value| {
        let same = |field: &str, wanted: &Option<String>| wanted.as_ref().is_none_or(|wanted| event["data"][field] == **wanted);
        event["type"] == ty
            && event["shkeptncontext"] == context
            && same("stage", &step.own.stage)
            && same("service", &step.own.service)
    };
    story.sent.iter().rfind(fits).ok_or_else(|| format!("nothing to answer: {task}.triggered was not sent in that context"))
}

/// The event of a step, in structured JSON.
pub(super) fn event(story: &Telling<'_, Keptn>, step: &Step<Keptn>, now: Timestamp) -> Result<Value, String> {
    adapted(story, step, composed(story, step, now)?)
}

/// An event with what the step changes in it.
pub(super) fn adapted(story: &Telling<'_, Keptn>, step: &Step<Keptn>, event: Value) -> Result<Value, String> {
    let mut event = event;
    let attributes = story.resolve(&Value::Object(step.own.attributes.clone()))?;
    if let (Some(event), Some(attributes)) = (event.as_object_mut(), attributes.as_object()) {
        merge(event, attributes);
    }
    for path in &step.own.without {
        remove(&mut event, path);
    }
    Ok(event)
}

fn composed(story: &Telling<'_, Keptn>, step: &Step<Keptn>, now: Timestamp) -> Result<Value, String> {
    let mut event = json!({
        "specversion": "1.0", "datacontenttype": "application/json", "shkeptnspecversion": "0.2.4",
        "id": story.fresh_id(), "time": now.rfc3339(), "shkeptncontext": story.context(step.about()),
    });
    let mut data;
    if let Some(name) = &step.own.trigger {
        let stage = step.own.stage.as_deref().or_else(|| name.split('.').next()).unwrap_or_default();
        event["type"] = format!("{PREFIX}{name}.triggered").into();
        event["source"] = step.own.by.as_deref().unwrap_or("client").into();
        data = json!({
            "project": story.project(step.own.project.as_deref().unwrap_or("p")),
            "stage": stage, "service": step.own.service.as_deref().unwrap_or("svc"),
        });
        if step.own.anonymous {
            remove(&mut event, "shkeptncontext");
        }
    } else {
        let kinds = [(&step.own.started, "started"), (&step.own.changed, "status.changed"), (&step.own.finished, "finished")];
        let (task, kind) = kinds.iter().find_map(|(task, kind)| Some((task.as_ref()?, *kind))).ok_or("the step has no input")?;
        let trigger = answered(story, step, task)?;
        event["type"] = format!("{PREFIX}{task}.{kind}").into();
        event["source"] = step.own.by.as_deref().unwrap_or("executor").into();
        event["triggeredid"] = trigger["id"].clone();
        let scope = |field: &str| trigger["data"][field].clone();
        data = json!({"project": scope("project"), "stage": scope("stage"), "service": scope("service")});
        if kind == "finished" {
            data["result"] = "pass".into();
            data["status"] = "succeeded".into();
        }
    }
    for (field, value) in [("result", &step.own.result), ("status", &step.own.status)] {
        if let Some(value) = value {
            data[field] = value.clone();
        }
    }
    let own = story.resolve(&Value::Object(step.own.data.clone()))?;
    let mut data: Map<String, Value> = data.as_object().cloned().unwrap_or_default();
    merge(&mut data, own.as_object().unwrap_or(&Map::new()));
    event["data"] = Value::Object(data);
    Ok(event)
}
