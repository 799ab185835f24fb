//! Events as a case puts them in.

use super::expect::{merge, remove};
use super::format::Step;
use super::run::Story;
use keelway_domain::event::PREFIX;
use keelway_domain::ids::context_of;
use keelway_domain::time::Timestamp;
use serde_json::{Map, Value, json};

/// The `.triggered` event a reaction answers: by alias, or the newest of the context.
pub(super) fn answered<'s>(story: &'s Story<'_>, step: &Step, task: &str) -> Result<&'s Value, String> {
    if let Some(alias) = &step.to {
        return story.event(alias);
    }
    let context = story.context(step.context.as_deref().unwrap_or("C1"));
    let ty = format!("{PREFIX}{task}.triggered");
    let fits = |event: &&Value| {
        let same = |field: &str, wanted: &Option<String>| wanted.as_ref().is_none_or(|wanted| event["data"][field] == **wanted);
        event["type"] == ty && event["shkeptncontext"] == context && same("stage", &step.stage) && same("service", &step.service)
    };
    story.sent.iter().rfind(fits).ok_or_else(|| format!("nothing to answer: {task}.triggered was not sent in that context"))
}

/// The event of a step, in structured JSON.
pub(super) fn event(story: &Story<'_>, step: &Step, now: Timestamp) -> Result<Value, String> {
    if let Some(alias) = &step.duplicate {
        let last = || story.inputs.last().ok_or("there is no event before it".to_owned());
        return if alias == "last" { last().cloned() } else { story.event(alias).cloned() };
    }
    let mut event = match &step.event {
        Some(event) => story.resolve(event)?,
        None => composed(story, step, now)?,
    };
    let attributes = story.resolve(&Value::Object(step.attributes.clone()))?;
    if let (Some(event), Some(attributes)) = (event.as_object_mut(), attributes.as_object()) {
        merge(event, attributes);
    }
    for path in &step.without {
        remove(&mut event, path);
    }
    Ok(event)
}

fn composed(story: &Story<'_>, step: &Step, now: Timestamp) -> Result<Value, String> {
    let id = context_of(&format!("{}{}", story.case.id, story.salt), &format!("event {}", story.step)).to_string();
    let mut event = json!({
        "specversion": "1.0", "datacontenttype": "application/json", "shkeptnspecversion": "0.2.4",
        "id": id, "time": now.rfc3339(), "shkeptncontext": story.context(step.context.as_deref().unwrap_or("C1")),
    });
    let mut data;
    if let Some(name) = &step.trigger {
        let stage = step.stage.as_deref().or_else(|| name.split('.').next()).unwrap_or_default();
        event["type"] = format!("{PREFIX}{name}.triggered").into();
        event["source"] = step.by.as_deref().unwrap_or("client").into();
        data = json!({
            "project": story.project(step.project.as_deref().unwrap_or("p")),
            "stage": stage, "service": step.service.as_deref().unwrap_or("svc"),
        });
        if step.anonymous {
            remove(&mut event, "shkeptncontext");
        }
    } else {
        let kinds = [(&step.started, "started"), (&step.changed, "status.changed"), (&step.finished, "finished")];
        let (task, kind) = kinds.iter().find_map(|(task, kind)| Some((task.as_ref()?, *kind))).ok_or("the step has no input")?;
        let trigger = answered(story, step, task)?;
        event["type"] = format!("{PREFIX}{task}.{kind}").into();
        event["source"] = step.by.as_deref().unwrap_or("executor").into();
        event["triggeredid"] = trigger["id"].clone();
        let scope = |field: &str| trigger["data"][field].clone();
        data = json!({"project": scope("project"), "stage": scope("stage"), "service": scope("service")});
        if kind == "finished" {
            data["result"] = "pass".into();
            data["status"] = "succeeded".into();
        }
    }
    for (field, value) in [("result", &step.result), ("status", &step.status)] {
        if let Some(value) = value {
            data[field] = value.clone();
        }
    }
    let own = story.resolve(&Value::Object(step.data.clone()))?;
    let mut data: Map<String, Value> = data.as_object().cloned().unwrap_or_default();
    merge(&mut data, own.as_object().unwrap_or(&Map::new()));
    event["data"] = Value::Object(data);
    Ok(event)
}
