//! `POST /v1/sequence/{project}/{context}/override`: a context begins in a stage although the stage's windows are closed.

use crate::Api;
use crate::caller::Caller;
use crate::input::{Json, Path, given, note};
use crate::openapi::OverrideAnswer;
use crate::problem::{Answer, Refused};
use axum::extract::State;
use keelway_domain::access::{Kind, Need};
use keelway_domain::names::Context;
use keelway_engine::ports::Ports;
use serde::Deserialize;

/// The longest reason, in characters.
const LONGEST: usize = 500;

#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[schema(as = OverrideRequest)]
#[serde(deny_unknown_fields, default)]
pub struct Command {
    stage: Option<String>,
    reason: Option<String>,
    by: Option<String>,
}

/// Lets what waits in a closed stage begin, and what gets there before the stage opens by itself.
///
/// Whoever may approve in the stage may do it.
#[utoipa::path(
    post,
    path = "/v1/sequence/{project}/{context}/override",
    tag = "sequences",
    request_body(content = Command, example = json!({"stage": "late", "reason": "fixes INC-7", "by": "ann"})),
    responses((status = 200, body = crate::openapi::OverrideAnswer), (status = 409))
)]
pub async fn override_windows<P: Ports + 'static>(
    State(api): State<Api<P>>,
    Path((project, of)): Path<(String, String)>,
    caller: Caller,
    Json(body): Json<Command>,
) -> Answer<axum::Json<OverrideAnswer>> {
    let Some(reason) = note("reason", body.reason.as_ref(), LONGEST)? else {
        return Err(Refused::field("reason", "is missing: say why this cannot wait until the stage opens"));
    };
    let by = caller.by(note("by", body.by.as_ref(), 100)?);
    caller.told().note.clone_from(&reason);
    // Which stage it is may be known only when what waits is found.
    if !caller.has_in(Kind::Approve, Some(&project)) {
        return Err(caller.lacks("approve:<stage>", Some(&project)));
    }
    let project = api.engine().find_project(&project).await?.settings.name;
    let of = Context::of(&of);
    tracing::Span::current().record("project", project.as_str()).record("context", of.as_str());
    let closed = api.engine().closed_stage(&project, &of, given(body.stage.as_ref())).await?;
    caller.check(Need::Approve(&closed.stage), Some(project.as_str()))?;
    caller.tells(project.as_str(), format!("windows of stage {} for context {of}", closed.stage));
    api.engine().override_windows((&project, &of), &closed, (&by, &reason)).await?;
    let what = match closed.held {
        0 => format!("what gets to stage {} begins", closed.stage),
        1 => format!("1 sequence in stage {} begins as soon as it has its turn", closed.stage),
        n => format!("{n} sequences in stage {} begin as soon as they have their turn", closed.stage),
    };
    let detail = format!("{what}, although the stage is closed");
    let until = closed.until.map(|until| until.rfc3339());
    Ok(axum::Json(OverrideAnswer {
        keptn_context: of.to_string(),
        stage: closed.stage.to_string(),
        held: closed.held,
        until,
        detail,
    }))
}
