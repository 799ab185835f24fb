//! The commands for a config, except rollbacks.

use super::carry::{Asked, Outcome, carry, outcome_version};
use super::{MESSAGE, NAME, PAUSED, error, find, generate, id, refused};
use crate::Api;
use crate::fence::allowed::{Allowed, act, scope};
use crate::fence::caller::Caller;
use crate::fence::input::{self, Path, note};
use crate::fence::problem::{Answer, Refused};
use crate::fence::repeated::RequestId;
use axum::extract::Extension;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use keelway_domain::deployments::{Command, Latest, Refused as Conflict, change_that_waits, request_that_waits};
use keelway_domain::note::Note;
use keelway_engine::deployments::Address;
use keelway_engine::deployments::views::View;
use keelway_wire::http::deployments::{InstantiateRequest, SteerAnswer, SteerRequest};

const COMMANDS: &str = "instantiate, rollback, pause, resume, cancel, retry, proceed, triggers/suspend and triggers/resume";

/// Pauses, resumes, cancels, retries or lets proceed.
/// 202: it is handed in, and the state does not show it yet.
#[utoipa::path(
    post,
    path = "/v1/deploymentConfigs/{id}/{command}",
    tag = "deployments",
    params(("Idempotency-Key" = Option<String>, Header)),
    request_body(content = Option<SteerRequest>, example = json!({"by": "ada", "message": "the fair"})),
    responses((status = 200, body = SteerAnswer), (status = 202, body = SteerAnswer), (status = 409), (status = 422))
)]
pub(crate) async fn steer(
    caller: Allowed<scope::Trigger, act::Control>,
    api: Api,
    Path((of, command)): Path<(String, String)>,
    Extension(request): Extension<RequestId>,

    input::Maybe(asked): input::Maybe<SteerRequest>,
) -> Answer<Response> {
    let command = match command.as_str() {
        "pause" => Command::Pause,
        "resume" => Command::Resume,
        "cancel" if asked.and_what_waits => Command::CancelAll,
        "cancel" => Command::Cancel,
        "retry" => Command::Retry,
        "proceed" => Command::Proceed,
        other => return Err(no_command(other)),
    };
    ask(&api, &of, command, (&caller, request), &asked).await
}

/// Suspends or resumes the triggers of a config.
/// 202: it is handed in, and the state does not show it yet.
#[utoipa::path(
    post,
    path = "/v1/deploymentConfigs/{id}/triggers/{command}",
    tag = "deployments",
    params(("Idempotency-Key" = Option<String>, Header)),
    request_body(content = Option<SteerRequest>, example = json!({"by": "ada", "message": "the fair"})),
    responses((status = 200, body = SteerAnswer), (status = 202, body = SteerAnswer), (status = 422))
)]
pub(crate) async fn triggers(
    caller: Allowed<scope::Trigger, act::Control>,
    api: Api,
    Path((of, command)): Path<(String, String)>,
    Extension(request): Extension<RequestId>,

    input::Maybe(asked): input::Maybe<SteerRequest>,
) -> Answer<Response> {
    let command = match command.as_str() {
        "suspend" => Command::SuspendTriggers,
        "resume" => Command::ResumeTriggers,
        other => return Err(no_command(&format!("triggers/{other}"))),
    };
    ask(&api, &of, command, (&caller, request), &asked).await
}

fn no_command(word: &str) -> Refused {
    let word: String = word.chars().take(50).collect();
    let detail = format!("a deployment config takes no command {word:?}: it takes {COMMANDS}");
    Refused::new(StatusCode::NOT_FOUND, "unknown command", detail)
}

async fn ask(api: &Api, of: &str, command: Command, from: (&Caller, RequestId), asked: &SteerRequest) -> Answer<Response> {
    let (to, view) = find(api, of).await?;
    if asked.and_what_waits && command != Command::CancelAll {
        return Err(Refused::invalid(vec![error("andWhatWaits", "Invalid", "is for `cancel` only: leave it out")]));
    }
    let note = said((asked.by.as_ref(), asked.message.as_ref()), &view, from)?;
    let caller = from.0;
    let before = view.state.latest;
    caller.says(told(&command, &to.to_string()));
    let asked = Asked { to, command, note };
    let follows = match asked.command {
        Command::Cancel => follows(&view),
        Command::CancelAll => cancelled_too(&view),
        _ => None,
    };
    match carry(api, &asked, view).await? {
        Outcome::Refused(view, Conflict::Nothing(why)) => {
            let answer = SteerAnswer { nothing: Some(why), ..answer(&asked.to, &view, before, true) };
            Ok(axum::Json(answer).into_response())
        }
        Outcome::Refused(_, why) => Err(refused(why)),
        Outcome::Done(view) => Ok(axum::Json(SteerAnswer { follows, ..answer(&asked.to, &view, before, true) }).into_response()),
        Outcome::Open(view) => {
            let answer = SteerAnswer { follows, ..answer(&asked.to, &view, before, false) };
            Ok((StatusCode::ACCEPTED, axum::Json(answer)).into_response())
        }
    }
}

/// What a command does, for the audit.
fn told(command: &Command, of: &str) -> String {
    match command {
        Command::Pause => format!("paused {of}"),
        Command::Resume => format!("resumed {of}"),
        Command::Cancel => format!("cancelled the running deployment of {of}"),
        Command::CancelAll => format!("cancelled the running deployment of {of} and what waits"),
        Command::Retry => format!("retried the latest version of {of}"),
        Command::Proceed => format!("let the canary of {of} proceed"),
        Command::SuspendTriggers => format!("suspended the triggers of {of}"),
        Command::ResumeTriggers => format!("resumed the triggers of {of}"),
        Command::Latest(_) | Command::Rollback(_) => format!("asked for a version of {of}"),
    }
}

/// What follows a cancellation of the running deployment.
fn follows(view: &View) -> Option<String> {
    let x = &view.state;
    let waits = x.pending.as_ref().map(|pending| {
        format!("{}, which waited, is given up as well: ask for the version again if it is wanted", x.version_name(pending.n))
    });
    let change = || {
        changes(view).then(|| {
            let next = x.version_name(x.latest + 1);
            format!(
                "a newer change waits, and is deployed next as {next}: to keep it from that, cancel with `andWhatWaits`, or suspend the triggers"
            )
        })
    };
    waits.or_else(change)
}

/// What is cancelled together with the running deployment.
fn cancelled_too(view: &View) -> Option<String> {
    let x = &view.state;
    let version = x.pending.as_ref().map(|pending| format!("{}, which waited, is cancelled, too", x.version_name(pending.n)));
    let change = changes(view)
        .then(|| "the change that waited is not deployed, until something else changes or somebody asks for a version".to_owned());
    let said: Vec<String> = version.into_iter().chain(change).collect();
    Some(if said.is_empty() { "nothing waited".to_owned() } else { said.join("; ") })
}

/// Whether a change becomes a version as soon as nothing runs.
fn changes(View { state, applied, heads, .. }: &View) -> bool {
    change_that_waits(state, applied, heads).is_some() || request_that_waits(state, applied).is_some()
}

/// The caller, the time and the reason.
fn said((by, message): (Option<&String>, Option<&String>), view: &View, from: (&Caller, RequestId)) -> Answer<Note> {
    let (message, by) = (note("message", message, MESSAGE)?, note("by", by, NAME)?);
    let (caller, RequestId(id)) = from;
    Ok(Note { by: caller.by(by), at: view.now, message: message.unwrap_or_default(), id, run: 0 })
}

fn answer(of: &Address, view: &View, before: u64, done: bool) -> SteerAnswer {
    SteerAnswer {
        namespace: of.namespace.clone(),
        name: of.name.clone(),
        done,
        nothing: None,
        follows: None,
        deployment: outcome_version(of, view, before),
        look: (!done).then(|| format!("/v1/deploymentConfigs/{}/status", id(of))),
    }
}

/// Asks for a version.
/// 202: it is handed in, and the state does not show it yet. 204: nothing has changed.
#[utoipa::path(
    post,
    path = "/v1/deploymentConfigs/{id}/instantiate",
    tag = "deployments",
    params(("Idempotency-Key" = Option<String>, Header)),
    request_body(content = Option<InstantiateRequest>, example = json!({"latest": true, "force": true, "by": "ada"})),
    responses((status = 200, body = SteerAnswer), (status = 202, body = SteerAnswer), (status = 204), (status = 409), (status = 422))
)]
pub(crate) async fn instantiate(
    caller: Allowed<scope::Trigger, act::Trigger>,
    api: Api,
    Path(of): Path<String>,
    Extension(request): Extension<RequestId>,

    input::Maybe(asked): input::Maybe<InstantiateRequest>,
) -> Answer<Response> {
    let (to, view) = find(&api, &of).await?;
    let latest = meant(&asked, &to)?;
    let (paused, newest) = (view.state.paused.is_some() && !latest.resume, !latest.again && latest.image.is_empty());
    let unresolved = if newest && !paused && !latest.if_changed { generate::unresolved(&view) } else { vec![] };
    if !unresolved.is_empty() {
        return Err(Refused::invalid(unresolved));
    }
    let note = said((asked.by.as_ref(), asked.message.as_ref()), &view, (&caller, request))?;
    let before = view.state.latest;
    let what = if latest.again { "the images of the latest version" } else { "a new version" };
    caller.says(format!("asked for {what} of {to}"));
    let asked = Asked { to, command: Command::Latest(latest), note };
    match carry(&api, &asked, view).await? {
        Outcome::Refused(_, Conflict::Nothing(_)) => Ok(StatusCode::NO_CONTENT.into_response()),
        Outcome::Refused(_, Conflict::Conflict(why)) if paused => Err(Refused::invalid(vec![error(PAUSED, "Conflict", why)])),
        Outcome::Refused(_, why) => Err(refused(why)),
        Outcome::Done(view) => Ok(axum::Json(answer(&asked.to, &view, before, true)).into_response()),
        Outcome::Open(view) => Ok((StatusCode::ACCEPTED, axum::Json(answer(&asked.to, &view, before, false))).into_response()),
    }
}

fn meant(asked: &InstantiateRequest, to: &Address) -> Answer<Latest> {
    let mut errors = vec![];
    if !asked.kind.is_empty() && asked.kind != "DeploymentRequest" {
        errors.push(error("kind", "Invalid", format!("{:?} is not \"DeploymentRequest\": leave it out", asked.kind)));
    }
    if !asked.name.is_empty() && asked.name != to.name {
        errors.push(error(
            "name",
            "Invalid",
            format!("{:?} is not the config of the path, {:?}: leave it out", asked.name, to.name),
        ));
    }
    for (place, excluded) in asked.exclude_triggers.iter().enumerate() {
        if !matches!(excluded.as_str(), "ImageChange" | "ConfigChange") {
            let message = format!("{excluded:?} is no type of a trigger: write \"ImageChange\" or \"ConfigChange\"");
            errors.push(error(format!("excludeTriggers[{place}]"), "Invalid", message));
        }
    }
    if !errors.is_empty() {
        return Err(Refused::invalid(errors));
    }
    let image = note("image", asked.image.as_ref(), 1000)?.unwrap_or_default();
    if asked.suspend_triggers && asked.resume_triggers {
        let message = "contradicts `resumeTriggers`: say one of them";
        return Err(Refused::invalid(vec![error("suspendTriggers", "Invalid", message)]));
    }
    let excluded = asked.exclude_triggers.iter().any(|excluded| excluded == "ImageChange");
    Ok(Latest {
        again: !asked.latest || excluded,
        supersede: asked.supersede,
        resume: asked.resume,
        resume_triggers: asked.resume_triggers,
        if_changed: !asked.force && image.trim().is_empty(),
        image: image.trim().to_owned(),
        suspend: asked.suspend_triggers,
        task: None,
    })
}
