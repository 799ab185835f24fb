//! The events about a pipeline: `dev.keelway.promotion.*`. Their ids are derived from their content.

use super::facts::Attempt;
use super::state::{Made, Pipeline, Promotion, Run};
use crate::address::Address;
use crate::event::{CloudEvent, Object};
use crate::ids::{SubjectId, context_of, event_id, hash64};
use crate::json::canonical;
use crate::level::Level;
use crate::names::Context;
use crate::record::Draft;
use crate::time::Timestamp;
use serde_json::{Value, json};

/// The `source` of the events of pipelines.
pub const SOURCE: &str = "keelway-promotions";
/// The type of the event that asks for a promotion.
pub const NEEDED: &str = "dev.keelway.promotion.needed";

/// An event about a promotion. `what`: the last word of its type; `detail` distinguishes repetitions.
pub(super) fn about(x: &Pipeline, environment: &str, promotion: &Promotion, what: &str, detail: &str, now: Timestamp) -> Draft {
    let identity = Attempt::of(environment, promotion).identity(&x.namespace, &x.name);
    let mut data = Object::from_iter([
        ("project".into(), x.namespace.as_str().into()),
        ("pipeline".into(), x.name.as_str().into()),
        ("environment".into(), environment.into()),
        ("revision".into(), promotion.revision.as_str().into()),
        ("run".into(), promotion.run.into()),
        ("attempt".into(), promotion.attempt.into()),
    ]);
    if !promotion.why.reason.is_empty() {
        data.insert("reason".into(), promotion.why.reason.as_str().into());
        data.insert("message".into(), promotion.why.message.as_str().into());
    }
    match &promotion.effect {
        Some(Made::PullRequest { number, url, .. }) => {
            drop(data.insert("pullRequest".into(), json!({"number": number, "url": url})))
        }
        Some(Made::Sequence { context }) => drop(data.insert("keptnContext".into(), context.as_str().into())),
        Some(Made::Notification { .. }) | None => {}
    }
    // The same content may be published again, for example when a gate closes twice, so the id contains content and time.
    let content = hash64(&[canonical(&Value::Object(data.clone())).as_bytes(), &now.0.to_be_bytes()]);
    Draft {
        id: Some(event_id(x.id(), &format!("{identity:016x}/{what}/{detail}/{content:016x}")).to_string()),
        ty: format!("dev.keelway.promotion.{what}"),
        source: SOURCE.into(),
        time: now,
        data,
        ..Draft::default()
    }
}

/// The event that Keelway has suspended a pipeline, with the run that it stopped at.
pub(super) fn suspended(x: &Pipeline, environment: &str, run: &Run, message: &str, now: Timestamp) -> Draft {
    let data = Object::from_iter([
        ("project".into(), x.namespace.as_str().into()),
        ("pipeline".into(), x.name.as_str().into()),
        ("environment".into(), environment.into()),
        ("revision".into(), run.revision.as_str().into()),
        ("run".into(), run.number.into()),
        ("reason".into(), "Circle".into()),
        ("message".into(), message.into()),
    ]);
    Draft {
        id: Some(event_id(x.id(), &format!("suspended/{}", run.number)).to_string()),
        ty: "dev.keelway.promotion.suspended".into(),
        source: SOURCE.into(),
        time: now,
        data,
        ..Draft::default()
    }
}

/// The event that asks for a promotion which became necessary at this time. It is the same for all attempts.
pub fn needed(of: &Address, attempt: &Attempt, since: Timestamp) -> CloudEvent {
    let pipeline = of.to_string();
    let data = Object::from_iter([
        ("project".into(), of.namespace.as_str().into()),
        ("pipeline".into(), of.name.as_str().into()),
        ("environment".into(), attempt.environment.as_str().into()),
        ("revision".into(), attempt.revision.as_str().into()),
        ("run".into(), attempt.run.into()),
        ("message".into(), format!("Promote {pipeline} in {} to {}", attempt.environment, attempt.revision).into()),
        // The format of Weave's notifications.
        ("metadata".into(), json!({"environment": attempt.environment, "version": attempt.revision})),
    ]);
    CloudEvent {
        id: event_id(SubjectId(attempt.identity(&of.namespace, &of.name)), "needed").to_string(),
        source: SOURCE.into(),
        ty: NEEDED.into(),
        time: since,
        context: Context::of(&context_of("pipeline", &pipeline).to_string()),
        authors: vec![],
        triggered_id: None,
        git_commit_id: None,
        data,
    }
}
