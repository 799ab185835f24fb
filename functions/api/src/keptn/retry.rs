//! `POST /v1/sequence/{project}/{context}/retry`: an ended sequence is repeated from the task on that failed.

use crate::Api;
use crate::fence::allowed::{Allowed, act, scope};
use crate::fence::bodies::RetryAnswer;
use crate::fence::hand_in;
use crate::fence::input::{Maybe, Path, given};
use crate::fence::problem::{Answer, Refused};
use crate::keptn::told::subject;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use keelway_domain::access::{Kind, Need};
use keelway_domain::names::Context;
use keelway_engine::sequences::retry;
use serde::Deserialize;

#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[schema(as = RetryRequest)]
#[serde(deny_unknown_fields, default)]
pub struct Command {
    execution: Option<String>,
    stage: Option<String>,
    from: Option<String>,
}

/// Repeats an ended sequence from the task on that failed.
/// 202: it is handed in, and the state does not show it yet.
#[utoipa::path(
    post,
    path = "/v1/sequence/{project}/{context}/retry",
    tag = "sequences",
    request_body(content = Option<Command>, example = json!({"stage": "dev"})),
    responses((status = 200, body = crate::fence::bodies::RetryAnswer), (status = 202, body = crate::fence::bodies::RetryAnswer), (status = 409))
)]
pub(crate) async fn retry(
    caller: Allowed<scope::Anywhere<scope::Trigger>, act::Trigger>,
    api: Api,

    Path((project, of)): Path<(String, String)>,
    Maybe(body): Maybe<Command>,
) -> Answer<Response> {
    caller.told().project.clone_from(&project);
    // The stage is known only when the execution was found.
    if !caller.has_in(Kind::Trigger, Some(&project)) {
        return Err(caller.lacks(Need::Trigger, Some(&project)));
    }
    let project = api.engine().projects().find(&project).await?.settings.name;
    let of = Context::of(&of);
    tracing::Span::current().record("project", project.as_str()).record("context", of.as_str());
    let wanted = retry::Wanted {
        execution: given(body.execution.as_ref()),
        stage: given(body.stage.as_ref()),
        from: given(body.from.as_ref()),
    };
    let retried = api.engine().to_retry(&project, &of, wanted).await?;
    if let Some(behind) = &retried.behind {
        let need = Need::Approve(behind.stage.as_str());
        if !caller.may(need, Some(project.as_str())) {
            let mut refused = caller.lacks(need, Some(project.as_str()));
            refused.problem.detail += &format!(
                "; an approval reaches one execution, and task {} comes behind one: begin with the approval (`from`), or trigger the sequence that asks for it",
                retried.task
            );
            return Err(refused);
        }
        if behind.separate {
            let detail = format!(
                "task {} comes behind an approval that somebody else has to give (`separate`): begin with the approval (`from`)",
                retried.task
            );
            return Err(Refused::new(StatusCode::FORBIDDEN, "forbidden", detail));
        }
    }
    let stage = retried.old.stage.as_str();
    if retried.follow_up {
        caller.starts_follow_up((stage, &retried.old.sequence), Some(project.as_str()))?;
    } else if !caller.may(Need::TriggerIn(stage), Some(project.as_str())) {
        caller.check(Need::Trigger, Some(project.as_str()))?;
    }
    let old = &retried.old;
    let what = subject(old.service.as_str(), old.view.image.as_deref());
    caller.says(format!("repeated {} of {what} in {stage} from {} on ({of})", old.sequence, retried.task));
    api.engine().send_retry(&retried, &caller.known).await?;
    let look = || async { Ok::<_, Refused>(api.engine().has_begun(&retried.to).await?.then_some(())) };
    let begun = hand_in::outcome(api.settings().patience, look).await?.is_some();
    let (old, task) = (&retried.old, &retried.task);
    let detail =
        format!("sequence {} of service {} in stage {} is repeated from task {task} on", old.sequence, old.service, old.stage);
    let answer = RetryAnswer {
        keptn_context: of.to_string(),
        execution: retried.to.execution.to_string(),
        retry_of: old.id.to_string(),
        stage: old.stage.to_string(),
        sequence: old.sequence.to_string(),
        from: task.to_string(),
        detail,
        look: (!begun).then(|| format!("/v1/sequence/{project}?keptnContext={of}")),
    };
    let status = if begun { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok((status, axum::Json(answer)).into_response())
}
