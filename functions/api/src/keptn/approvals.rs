//! Decisions about approvals. They are sent to the engine, and the answer is read from the state.

use crate::Api;
use crate::fence::allowed::{Allowed, act, scope};
use crate::fence::caller::Caller;
use crate::fence::hand_in;
use crate::fence::input::{Json, Path, note};
use crate::fence::problem::{Answer, Refused};
use crate::keptn::told::subject;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use keelway_domain::access::{Kind, Need};
use keelway_domain::event::{CloudEvent, TaskResult};
use keelway_domain::ids::RecordId;
use keelway_domain::names::Context;
use keelway_domain::sequences::Execution;
use keelway_engine::sequences::Address;
use keelway_engine::sequences::commands::{Approval, Verdict, approval_address};
use keelway_wire::http::Decided;
use serde::Deserialize;

#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[schema(as = DecisionRequest)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    decision: String,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    by: Option<String>,
}

/// Decides an approval.
/// 202: the decision is handed in, and the state does not show it yet.
#[utoipa::path(
    post,
    path = "/v1/project/{project}/approval/{context}/{trigger}",
    tag = "sequences",
    request_body(content = Decision, example = json!({"decision": "approve", "message": "looks good", "by": "ada"})),
    responses((status = 200, body = Decided), (status = 202, body = Decided), (status = 409))
)]
pub(crate) async fn decide(
    caller: Allowed<scope::Anywhere<scope::Approve>, act::Decide>,
    api: Api,
    Path((project, of, trigger)): Path<(String, String, String)>,

    Json(decision): Json<Decision>,
) -> Answer<Response> {
    let approve = match decision.decision.as_str() {
        "approve" => true,
        "decline" => false,
        other => {
            let other: String = other.chars().take(50).collect();
            return Err(Refused::field("decision", format!("{other:?} is none: send \"approve\" or \"decline\"")));
        }
    };
    let (message, said) = (note("message", decision.message.as_ref(), 2000)?, note("by", decision.by.as_ref(), 100)?);
    let verdict = Verdict { approve, message, by: Some(caller.by(said)) };
    // The stage is known only when the approval was found.
    if !caller.has_in(Kind::Approve, Some(&project)) {
        return Err(caller.lacks("approve:<stage>", Some(&project)));
    }
    let project = api.engine().projects().find(&project).await?.settings.name;
    let of = Context::of(&of);
    tracing::Span::current().record("project", project.as_str()).record("context", of.as_str());
    let (to, trigger) = approval_address(&project, &of, &trigger)?;
    let wanted = if approve { TaskResult::Pass } else { TaskResult::Fail };
    settle(&api, &caller, (&to, trigger), wanted, |x| api.engine().decision_event(x, trigger, &verdict)).await
}

/// Sends a decision to the engine if the approval is open, and answers with the result in the state.
pub(crate) async fn settle(
    api: &Api,
    caller: &Caller,
    (to, trigger): (&Address, RecordId),
    wanted: TaskResult,
    event: impl FnOnce(&Execution) -> CloudEvent,
) -> Answer<Response> {
    let x = match api.engine().approval(to, trigger).await? {
        Approval::Open(x) => x,
        over => {
            caller.does_nothing();
            return outcome(to, wanted, over);
        }
    };
    caller.check(Need::Approve(x.stage.as_str()), Some(to.project.as_str()))?;
    let decided = if wanted == TaskResult::Fail { "declined" } else { "approved" };
    let what = subject(x.service.as_str(), x.view.image.as_deref());
    caller.tells(to.project.as_str(), format!("{decided} {what} for {} ({})", x.stage, to.context));
    if wanted != TaskResult::Fail
        && let Some(why) = api.engine().own_approval(&x, &caller.known).await?
    {
        return Err(Refused::new(StatusCode::FORBIDDEN, "forbidden", why));
    }
    api.engine().decide(&x, trigger, &event(&x)).await?;
    let look = || async {
        let now = api.engine().approval(to, trigger).await?;
        Ok::<_, Refused>((!matches!(now, Approval::Open(_))).then_some(now))
    };
    match hand_in::outcome(api.settings().patience, look).await? {
        Some(over) => outcome(to, wanted, over),
        None => Ok(under_way(to)),
    }
}

fn under_way(to: &Address) -> Response {
    let look = format!("/v1/sequence/{}?keptnContext={}", to.project, to.context);
    let body = Decided { context: to.context.to_string(), result: None, look: Some(look) };
    (StatusCode::ACCEPTED, axum::Json(body)).into_response()
}

fn outcome(to: &Address, wanted: TaskResult, over: Approval) -> Answer<Response> {
    let conflict =
        |how: String| Err(Refused::new(StatusCode::CONFLICT, "conflict", format!("the approval is not open any more: {how}")));
    match over {
        Approval::Decided { result, .. } if result == wanted => {
            let body = Decided { context: to.context.to_string(), result: Some(result.as_str().into()), look: None };
            Ok(axum::Json(body).into_response())
        }
        Approval::Decided { result, by, at } => {
            let what = if result == TaskResult::Fail { "declined" } else { "approved" };
            conflict(format!("it was {what} ({}) by {by} at {}", result.as_str(), at.rfc3339()))
        }
        Approval::Closed(why) => conflict(why.to_owned()),
        Approval::Open(_) => Ok(under_way(to)),
    }
}
