//! `POST /v1/sequence/{project}/{context}/override`: a context begins in a stage although the stage's windows are closed.

use crate::Api;
use crate::fence::allowed::{Allowed, act, scope};
use crate::fence::bodies::OverrideAnswer;
use crate::fence::caller::Caller;
use crate::fence::input::{Json, Path, given, note};
use crate::fence::problem::{Answer, Refused};
use crate::keptn::told::triggered;
use keelway_domain::access::{Kind, Need};
use keelway_domain::event::{self, CloudEvent, EventType};
use keelway_domain::names::Context;
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

/// What a trigger may say about the windows of its stage.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub struct AtTrigger {
    /// Why it begins although windows keep the stage closed; it takes the scope `approve:<stage>`.
    #[serde(rename = "override")]
    pub reason: Option<String>,
    /// Who says so.
    pub by: Option<String>,
}

impl AtTrigger {
    /// Parses the override. Only triggers of sequences may have one.
    ///
    /// # Errors
    /// Another event.
    pub fn fits(&self, event: &CloudEvent) -> Answer<()> {
        let is_trigger = matches!(EventType::parse(&event.ty), EventType::Sequence(_, _, event::Kind::Triggered));
        if self.reason.is_none() || is_trigger {
            return Ok(());
        }
        let message = "goes with the trigger of a sequence, sh.keptn.event.<stage>.<sequence>.triggered: leave it out";
        Err(Refused::field("override", message))
    }
}

/// Overrides the closed windows of a trigger's stage, if the trigger has an override.
pub(crate) async fn at_trigger(api: &Api, caller: &Caller, event: &CloudEvent, said: &AtTrigger) -> Answer<()> {
    let Some(reason) = note("override", said.reason.as_ref(), LONGEST)? else { return Ok(()) };
    let closed = api.engine().closed_to(event).await?;
    let stage = event.text("stage").unwrap_or_default();
    caller.check(Need::Approve(stage), event.text("project"))?;
    let Some(closed) = closed else { return Ok(()) };
    let by = caller.by(note("by", said.by.as_ref(), 100)?);
    caller.told().note.clone_from(&reason);
    caller.acts("override");
    let project = event.text("project").unwrap_or_default();
    caller.tells(project, format!("{}, although stage {stage} is closed", triggered(event)));
    Ok(api.engine().override_for(event, &closed, (&by, &reason)).await?)
}

/// Lets what waits in a closed stage begin, and what gets there before the stage opens by itself.
///
/// Whoever may approve in the stage may do it.
#[utoipa::path(
    post,
    path = "/v1/sequence/{project}/{context}/override",
    tag = "sequences",
    request_body(content = Command, example = json!({"stage": "late", "reason": "fixes INC-7", "by": "ann"})),
    responses((status = 200, body = crate::fence::bodies::OverrideAnswer), (status = 409))
)]
pub(crate) async fn override_windows(
    caller: Allowed<scope::Anywhere<scope::Approve>, act::Override>,
    api: Api,
    Path((project, of)): Path<(String, String)>,

    Json(body): Json<Command>,
) -> Answer<axum::Json<OverrideAnswer>> {
    let Some(reason) = note("reason", body.reason.as_ref(), LONGEST)? else {
        return Err(Refused::field("reason", "is missing: say why this cannot wait until the stage opens"));
    };
    let by = caller.by(note("by", body.by.as_ref(), 100)?);
    caller.told().note.clone_from(&reason);
    // The stage may be known only when the waiting execution was found.
    if !caller.has_in(Kind::Approve, Some(&project)) {
        return Err(caller.lacks("approve:<stage>", Some(&project)));
    }
    let project = api.engine().projects().find(&project).await?.settings.name;
    let of = Context::of(&of);
    tracing::Span::current().record("project", project.as_str()).record("context", of.as_str());
    let closed = api.engine().closed_stage(&project, &of, given(body.stage.as_ref())).await?;
    caller.check(Need::Approve(&closed.stage), Some(project.as_str()))?;
    caller.tells(project.as_str(), format!("overrode the windows of {} ({of})", closed.stage));
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
