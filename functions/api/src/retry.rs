//! `POST /v1/sequence/{project}/{context}/retry`: an ended sequence is repeated from the task on that failed.

use crate::Api;
use crate::hand_in;
use crate::input::{Maybe, Path, given};
use crate::problem::{Answer, Refused};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use keelway_domain::names::Context;
use keelway_engine::ports::Ports;
use keelway_engine::sequences::retry;
use serde::Deserialize;
use serde_json::json;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Command {
    execution: Option<String>,
    stage: Option<String>,
    from: Option<String>,
}

/// Hands the retry in, and answers when it has become an execution.
pub async fn retry<P: Ports + 'static>(
    State(api): State<Api<P>>,
    Path((project, of)): Path<(String, String)>,
    Maybe(body): Maybe<Command>,
) -> Answer<Response> {
    let project = api.engine().find_project(&project).await?.settings.name;
    let of = Context::of(&of);
    tracing::Span::current().record("project", project.as_str()).record("context", of.as_str());
    let wanted = retry::Wanted {
        execution: given(body.execution.as_ref()),
        stage: given(body.stage.as_ref()),
        from: given(body.from.as_ref()),
    };
    let retried = api.engine().retry(&project, &of, wanted).await?;
    let look = || async { Ok::<_, Refused>(api.engine().has_begun(&retried.to).await?.then_some(())) };
    let begun = hand_in::outcome(api.settings().patience, look).await?.is_some();
    let (old, task) = (&retried.old, &retried.task);
    let mut answer = json!({
        "keptnContext": of.as_str(), "execution": retried.to.execution, "retryOf": old.id,
        "stage": old.stage, "sequence": old.sequence, "from": task,
        "detail": format!("sequence {} of service {} in stage {} is repeated from task {task} on", old.sequence, old.service, old.stage),
    });
    if begun {
        return Ok(axum::Json(answer).into_response());
    }
    answer["look"] = json!(format!("/v1/sequence/{project}?keptnContext={of}"));
    Ok((StatusCode::ACCEPTED, axum::Json(answer)).into_response())
}
