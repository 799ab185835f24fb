//! The events about a config: `dev.keelway.deployment.*` and its siblings, and the answers to tasks of sequences. Their ids are
//! derived from their content.

use super::deployment::{Deployment, Status, Why};
use super::origin::Task;
use super::state::Config;
use super::template::revision;
use crate::event::Object;
use crate::ids::{event_id, hash64};
use crate::json::canonical;
use crate::level::Level;
use crate::record::{Answers, Draft};
use crate::time::Timestamp;
use serde_json::{Value, json};

/// The `source` of the events of deployment configs.
pub const SOURCE: &str = "keelway-deployments";
/// The type of the event that reports facts to the promotions engine.
const OBSERVED: &str = "dev.keelway.target.observed";

/// An event about a config. `what`: the end of its type, such as `triggers.suspended`.
pub(super) fn about_config(x: &Config, what: &str, mut data: Object, now: Timestamp) -> Draft {
    data.insert("project".into(), x.namespace.as_str().into());
    data.insert("config".into(), x.name.as_str().into());
    draft(x, what, data, now)
}

/// An event about a version.
pub(super) fn about(x: &Config, d: &Deployment, what: &str, now: Timestamp) -> Draft {
    let causes = serde_json::to_value(&d.causes).unwrap_or_default();
    let mut data = Object::from_iter([
        ("project".into(), x.namespace.as_str().into()),
        ("config".into(), x.name.as_str().into()),
        ("name".into(), x.version_name(d.n).into()),
        ("version".into(), d.n.into()),
        ("attempt".into(), d.attempt.into()),
        ("status".into(), d.status.to_string().into()),
        ("message".into(), d.message.as_str().into()),
        ("causes".into(), causes),
        ("images".into(), json!(d.content.images)),
    ]);
    if !d.reason.is_empty() {
        data.insert("reason".into(), d.reason.as_str().into());
    }
    if let Some(rollback) = &d.rollback {
        data.insert("rollbackTo".into(), rollback.release.into());
    }
    draft(x, &format!("deployment.{what}"), data, now)
}

/// The event that offers a version to deployers. It contains no secret: a deployer gets its token when it claims the version.
pub(super) fn offer(x: &Config, d: &Deployment, now: Timestamp) -> Draft {
    let mut draft = about(x, d, "requested", now);
    draft.data.insert("from".into(), x.active.as_ref().map_or(Value::Null, |active| x.version_name(active.n).into()));
    draft.data.insert("claimUntil".into(), d.due.map_or(Value::Null, |due| due.rfc3339().into()));
    draft
}

fn draft(x: &Config, what: &str, data: Object, now: Timestamp) -> Draft {
    // The same content may be published again later, so the id contains the time as well.
    let content = hash64(&[canonical(&Value::Object(data.clone())).as_bytes(), &now.0.to_be_bytes()]);
    Draft {
        id: Some(event_id(x.id(), &format!("{what}/{content:016x}")).to_string()),
        ty: format!("dev.keelway.{what}"),
        source: SOURCE.into(),
        time: now,
        data,
        ..Draft::default()
    }
}

/// An answer to the task that a deployment carries out: `.finished` with this result and message, or `.started` for `None`.
pub(super) fn task(x: &Config, task: &Task, result: Option<(&str, &str)>, version: Option<&Deployment>, now: Timestamp) -> Draft {
    let [project, stage, service] = &task.place;
    let mut data = Object::from_iter([
        ("project".into(), project.as_str().into()),
        ("stage".into(), stage.as_str().into()),
        ("service".into(), service.as_str().into()),
    ]);
    let mut about = Object::from_iter([("config".into(), x.name.as_str().into())]);
    if let Some(version) = version {
        about.insert("version".into(), x.version_name(version.n).into());
        about.insert("images".into(), json!(version.content.images));
        // The image that runs in the stage from then on, for the view of environments.
        let image = version.content.images.values().find(|image| revision(image) == version.content.revision);
        about.extend(image.map(|image| ("image".into(), image.as_str().into())));
    }
    data.insert(task.name.clone(), Value::Object(about));
    let kind = match result {
        None => "started",
        Some((result, message)) => {
            data.insert("status".into(), if result == "aborted" { "aborted" } else { "succeeded" }.into());
            data.insert("result".into(), if result == "pass" { "pass" } else { "fail" }.into());
            data.insert("message".into(), message.into());
            "finished"
        }
    };
    Draft {
        id: Some(event_id(x.id(), &format!("task/{}/{kind}", task.triggered)).to_string()),
        ty: format!("sh.keptn.event.{}.{kind}", task.name),
        source: SOURCE.into(),
        time: now,
        answers: Answers::Event(task.triggered.clone()),
        context: Some(task.context.clone()),
        data,
        ..Draft::default()
    }
}

/// The fact that a version reports to pipelines about the target with the config's name.
pub(super) fn observed(x: &Config, d: &Deployment, now: Timestamp) -> Draft {
    // The version of the fact rises with each version, each attempt, and the end of an attempt.
    let version = d.n.saturating_mul(1_000_000) + u64::from(d.attempt) * 10 + u64::from(d.status.is_final());
    let runs = json!({"revision": d.content.revision, "ready": d.status == Status::Complete, "version": version});
    let mut told = fact(x, &format!("{}/{}/{}", d.n, d.attempt, d.status), runs, now);
    let authors: Vec<&str> = d.causes.iter().filter_map(Why::author).collect();
    if !authors.is_empty() {
        told.data.insert("by".into(), json!(authors));
    }
    told
}

/// The fact that a config reports before its first version, if no trigger cuts one.
pub(super) fn nothing_runs(x: &Config, now: Timestamp) -> Draft {
    // A config that was deleted may be applied again, so the id contains the time.
    fact(x, &format!("0/{}", now.0), json!({"ready": false, "version": 0}), now)
}

fn fact(x: &Config, id: &str, mut fact: Value, now: Timestamp) -> Draft {
    fact["apiVersion"] = "keelway.dev/v1".into();
    fact["kind"] = "DeploymentConfig".into();
    fact["name"] = x.name.as_str().into();
    fact["namespace"] = x.namespace.as_str().into();
    fact["observedAt"] = now.rfc3339().into();
    Draft {
        id: Some(event_id(x.id(), &format!("observed/{id}")).to_string()),
        ty: OBSERVED.into(),
        source: SOURCE.into(),
        time: now,
        data: Object::from_iter([("facts".into(), json!([fact]))]),
        ..Draft::default()
    }
}
