//! The commands for a pipeline, including approvals of revisions. They are sent to the engine, and the answer is read from the
//! state. A command that the present state refuses is refused at once; of concurrent commands, the engine obeys one.

use crate::Api;
use crate::fence::allowed::{Allowed, act, scope};
use crate::fence::auth::Authority;
use crate::fence::hand_in;
use crate::fence::input::{self, Anything, Params, Path, given, note};
use crate::fence::names::of as address;
use crate::fence::problem::{Answer, Refused};
use crate::fence::repeated::RequestId;
use crate::fence::signed;
use crate::pipelines::find;
use crate::pipelines::shape;
use axum::extract::{Extension, Request};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use keelway_domain::note::Note;
use keelway_domain::promotions::definition::Strategy;
use keelway_domain::promotions::{At, Command, Made, Phase, Promotion, Refused as Conflict};
use keelway_engine::promotions::Address;
use keelway_engine::promotions::views::{Forecast, View};
use keelway_wire::http::promotions::{ApprovalDecision, ApprovalRequest, CommandAnswer, CommandRequest};
use serde::de::DeserializeOwned;

/// The longest message.
const MESSAGE: usize = 2000;
/// The longest name of a person.
const NAME: usize = 100;
/// The longest revision.
const REVISION: usize = 1024;

/// A command for a subject.
struct Asked {
    to: Address,
    command: Command,
    note: Note,
    environment: Option<String>,
}

/// Approves, rejects, abandons or accepts a revision in an environment. The request may be signed instead of bearing a token.
/// 201: the pull request is open; 202: the state does not show it yet; 204: it is done.
#[utoipa::path(
    post,
    path = "/v1/pipelines/{namespace}/{name}/environments/{environment}/revisions/{revision}/approval",
    tag = "pipelines",
    params(("Idempotency-Key" = Option<String>, Header)),
    request_body(content = Option<ApprovalRequest>, example = json!({"decision": "approve", "by": "ada"})),
    responses((status = 201, body = CommandAnswer, headers(("Location" = String))), (status = 202, body = CommandAnswer), (status = 204), (status = 409), (status = 422))
)]
pub(crate) async fn approval(
    caller: Allowed<scope::OrSigned<scope::Approve>, act::Decide>,
    api: Api,
    path: Result<Path<(String, String, String, String)>, Refused>,
    _: Params<Anything>,
    Extension(RequestId(id)): Extension<RequestId>,

    request: Request,
) -> Answer<Response> {
    let authority = request.extensions().get::<Authority>().copied();
    if authority == Some(Authority::Itself) {
        signed::admit(&api, request.extensions().get()).await?;
    }
    let (parts, body) = request.into_parts();
    let body = input::json_body(Request::from_parts(parts.clone(), body)).await;
    let (caller, id, path, body) = match authority {
        Some(Authority::Token) => (caller.0, id, path?, body?),
        Some(Authority::Itself) => {
            // Before the signature is checked, errors reveal nothing else.
            let (Ok(path), Ok(body)) = (path, body) else { return Err(signed::refusal()) };
            let of = address(&path.0.0, &path.0.1).ok_or_else(signed::refusal)?;
            let signer = signed::check(&api, (&of, &path.0.2), &parts, &body).await?;
            (caller.signed(&signer.key), signer.id, path, body)
        }
        None => return Err(signed::refusal()),
    };
    let Path((namespace, name, environment, revision)) = path;
    let asked: ApprovalRequest = if body.is_empty() { ApprovalRequest::default() } else { read(&body)? };
    let (message, by) = (note("message", asked.message.as_ref(), MESSAGE)?, note("by", asked.by.as_ref(), NAME)?);
    let by = caller.by(by);
    let (to, view) = find(&api, &namespace, &name).await?;
    let run = view.state.run.as_ref().map_or(0, |run| run.number);
    let note = Note { by, at: view.now, message: message.unwrap_or_default(), id, run };
    let at = At { environment: environment.clone(), revision };
    let command = match asked.decision {
        ApprovalDecision::Approve => Command::Approve(at),
        ApprovalDecision::Reject => Command::Reject(at),
        ApprovalDecision::Abandon => Command::GiveUp(at),
        ApprovalDecision::Accept => Command::Accept(at),
    };
    caller.tells(&to.namespace, told(&command, &to.to_string()));
    let approves = asked.decision == ApprovalDecision::Approve;
    let asked = Asked { to, command, note, environment: Some(environment) };
    let (view, done) = carry(&api, &asked, view).await?;
    let promotion = promotion(&view, &asked);
    let body = answer(&asked, &view, done);
    let open = promotion.filter(|promotion| approves && promotion.phase == Phase::Created).and_then(location);
    let settled = done && promotion.is_none_or(|promotion| promotion.approved || !approves) && !under_way(&view, &asked);
    Ok(match open {
        Some(url) => (StatusCode::CREATED, [(header::LOCATION, url)], axum::Json(body)).into_response(),
        None if settled => StatusCode::NO_CONTENT.into_response(),
        None => (StatusCode::ACCEPTED, axum::Json(body)).into_response(),
    })
}

fn location(promotion: &Promotion) -> Option<HeaderValue> {
    match &promotion.effect {
        Some(Made::PullRequest { url, .. }) => HeaderValue::from_str(url).ok(),
        _ => None,
    }
}

/// What a command does, for the audit.
fn told(command: &Command, to: &str) -> String {
    match command {
        Command::Approve(at) => format!("approved {} for {} of {to}", at.revision, at.environment),
        Command::Reject(at) => format!("declined {} for {} of {to}", at.revision, at.environment),
        Command::Suspend => format!("suspended {to}"),
        Command::Resume => format!("resumed {to}"),
        Command::Hold(at) => format!("held {} of {to} on {}", at.environment, at.revision),
        Command::Release(environment) => format!("released {environment} of {to}"),
        Command::Abandon(revision) => format!("abandoned {revision} of {to}"),
        Command::GiveUp(at) => format!("abandoned {} for {} of {to}", at.revision, at.environment),
        Command::Retry(environment) => format!("retried the promotion into {environment} of {to}"),
        Command::Abort(environment) => format!("aborted the promotion into {environment} of {to}"),
        Command::Accept(at) => format!("accepted {} in {} of {to} as it is", at.revision, at.environment),
    }
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Answer<T> {
    let wrong = |why: String| {
        Refused::new(StatusCode::BAD_REQUEST, "invalid body", format!("the body is not what is expected here: {why}"))
    };
    let body = input::json(body)?;
    if !body.is_object() {
        return Err(wrong("send a JSON object, for example {\"decision\": \"approve\"}".into()));
    }
    serde_json::from_value(body).map_err(|error| wrong(error.to_string()))
}

/// Asks something of a pipeline.
/// 202: it is handed in, and the state does not show it yet.
#[utoipa::path(
    post,
    path = "/v1/pipelines/{namespace}/{name}/commands",
    tag = "pipelines",
    params(("Idempotency-Key" = Option<String>, Header)),
    request_body(content = CommandRequest, example = json!({"command": "suspend", "by": "ada", "message": "the fair"})),
    responses((status = 200, body = CommandAnswer), (status = 202, body = CommandAnswer), (status = 409), (status = 422))
)]
pub(crate) async fn command(
    caller: Allowed<scope::Trigger, act::Control>,
    api: Api,
    Path((namespace, name)): Path<(String, String)>,
    Extension(RequestId(id)): Extension<RequestId>,

    input::Json(asked): input::Json<CommandRequest>,
) -> Answer<Response> {
    let (message, by) = (note("message", asked.message.as_ref(), MESSAGE)?, note("by", asked.by.as_ref(), NAME)?);
    let (to, view) = find(&api, &namespace, &name).await?;
    let command = meant(&asked, &view)?;
    let run = view.state.run.as_ref().map_or(0, |run| run.number);
    caller.tells(&to.namespace, told(&command, &to.to_string()));
    let note = Note { by: caller.by(by), at: view.now, message: message.unwrap_or_default(), id, run };
    let asked = Asked { to, command, note, environment: given(asked.environment.as_ref()).map(str::to_owned) };
    let (view, done) = carry(&api, &asked, view).await?;
    let status = if done { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok((status, axum::Json(answer(&asked, &view, done))).into_response())
}

/// The command in a request.
fn meant(asked: &CommandRequest, view: &View) -> Answer<Command> {
    let environment = given(asked.environment.as_ref()).map(str::to_owned);
    let revision = given(asked.revision.as_ref()).map(str::to_owned);
    if revision.as_ref().is_some_and(|revision| revision.len() > REVISION || revision.chars().any(char::is_control)) {
        return Err(Refused::field(
            "revision",
            format!("is no revision: it has at most {REVISION} bytes and no control characters"),
        ));
    }
    let word: String = asked.command.chars().take(50).collect();
    let needs = |field: &str| Refused::field(field, format!("is missing: {word} needs it"));
    let extra = |field: &str| Refused::field(field, format!("is not taken by {word}: leave it out"));
    match (asked.command.as_str(), environment, revision) {
        ("suspend" | "resume", Some(_), _) => Err(extra("environment")),
        ("suspend" | "resume" | "release" | "retry" | "abort", _, Some(_)) => Err(extra("revision")),
        ("suspend", None, None) => Ok(Command::Suspend),
        ("resume", None, None) => Ok(Command::Resume),
        ("hold" | "release" | "retry" | "abort", None, _) => Err(needs("environment")),
        ("hold", Some(environment), Some(revision)) => Ok(Command::Hold(At { environment, revision })),
        ("hold", Some(environment), None) => {
            let state = view.state.environments.get(&environment);
            let healthy = state.and_then(|state| state.healthy.as_ref()).map(|(revision, _)| revision.clone());
            let known = view.applied.spec.environment(&environment).is_some();
            match healthy {
                None if known => {
                    let message = format!("is missing: {environment} is not healthy on any revision, so say on which to hold it");
                    Err(Refused::field("revision", message))
                }
                // The engine refuses an environment that does not exist.
                healthy => Ok(Command::Hold(At { environment, revision: healthy.unwrap_or_default() })),
            }
        }
        ("release", Some(environment), None) => Ok(Command::Release(environment)),
        ("abandon", _, None) => Err(needs("revision")),
        ("abandon", None, Some(revision)) => Ok(Command::Abandon(revision)),
        ("abandon", Some(environment), Some(revision)) => Ok(Command::GiveUp(At { environment, revision })),
        ("retry", Some(environment), None) => Ok(Command::Retry(environment)),
        ("abort", Some(environment), None) => Ok(Command::Abort(environment)),
        ("", ..) => Err(Refused::field("command", format!("is missing: send {COMMANDS}"))),
        _ => Err(Refused::field("command", format!("{word:?} is none: send {COMMANDS}"))),
    }
}

const COMMANDS: &str = "\"suspend\", \"resume\", \"hold\", \"release\", \"abandon\", \"retry\" or \"abort\"";

/// Sends a command to the engine, and waits until the state shows the result. Returns the last view; `true`: it shows the result.
async fn carry(api: &Api, asked: &Asked, view: View) -> Answer<(View, bool)> {
    if view.state.obeyed.contains(&asked.note.id) {
        return Ok((view, true));
    }
    match view.forecast(&asked.command, &asked.note) {
        Forecast::Refused(why) => return Err(refused(&view, &asked.command, why)),
        Forecast::AlreadySo => return Ok((view, true)),
        Forecast::Changes => api.promotions().hand_in(&asked.to, &asked.command, &asked.note).await?,
    }
    let look = || async {
        let (view, done) = seen(api, asked).await?;
        Ok::<_, Refused>((done && !under_way(&view, asked)).then_some((view, done)))
    };
    match hand_in::outcome(api.settings().patience, look).await? {
        Some(outcome) => Ok(outcome),
        None => seen(api, asked).await,
    }
}

/// The state, and whether it shows that this command, or another one with the same effect, was obeyed.
async fn seen(api: &Api, asked: &Asked) -> Answer<(View, bool)> {
    let (_, view) = find(api, &asked.to.namespace, &asked.to.name).await?;
    if view.state.obeyed.contains(&asked.note.id) {
        return Ok((view, true));
    }
    match view.forecast(&asked.command, &asked.note) {
        Forecast::Refused(why) => Err(refused(&view, &asked.command, why)),
        Forecast::AlreadySo => Ok((view, true)),
        Forecast::Changes => Ok((view, false)),
    }
}

/// The promotion of a command, unless one of another revision has taken its place.
fn promotion<'v>(view: &'v View, asked: &Asked) -> Option<&'v Promotion> {
    let promotion = view.state.environments.get(asked.environment.as_ref()?)?.promotion.as_ref()?;
    let decided = match &asked.command {
        Command::Approve(at) | Command::Reject(at) | Command::GiveUp(at) | Command::Accept(at) => Some(&at.revision),
        _ => None,
    };
    decided.is_none_or(|revision| *revision == promotion.revision).then_some(promotion)
}

/// Whether an approval has started an attempt that will soon have a pull request.
fn under_way(view: &View, asked: &Asked) -> bool {
    let attempting = |promotion: &Promotion| {
        promotion.phase == Phase::Attempting && matches!(promotion.strategy, Some(Strategy::PullRequest(_)))
    };
    matches!(asked.command, Command::Approve(_)) && promotion(view, asked).is_some_and(attempting)
}

fn answer(asked: &Asked, view: &View, done: bool) -> CommandAnswer {
    let Address { namespace, name } = &asked.to;
    CommandAnswer {
        namespace: namespace.clone(),
        name: name.clone(),
        done,
        promotion: promotion(view, asked).map(shape::promotion),
        waiting_approval: asked.environment.as_ref().and_then(|environment| shape::waiting(view, environment)),
        look: (!done).then(|| format!("/v1/pipelines/{namespace}/{name}")),
    }
}

/// The status for a refused decision: 422 if nothing waits for a decision, 409 if it was decided differently.
fn refused(view: &View, command: &Command, why: Conflict) -> Refused {
    match (command, why) {
        (_, Conflict::Unknown(detail)) => Refused::new(StatusCode::NOT_FOUND, "unknown environment", detail),
        (Command::Approve(at) | Command::Reject(at) | Command::GiveUp(at) | Command::Accept(at), Conflict::Conflict(detail))
            if !awaited(view, at) =>
        {
            Refused::new(StatusCode::UNPROCESSABLE_ENTITY, "not awaited", detail)
        }
        (_, Conflict::Conflict(detail) | Conflict::Nothing(detail)) => Refused::new(StatusCode::CONFLICT, "conflict", detail),
    }
}

fn awaited(view: &View, at: &At) -> bool {
    let promotion = view.state.environments.get(&at.environment).and_then(|state| state.promotion.as_ref());
    let run = view.state.run.as_ref();
    run.zip(promotion).is_some_and(|(run, promotion)| run.number == promotion.run && promotion.revision == at.revision)
}
