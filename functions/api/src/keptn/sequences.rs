//! Sequences: the list, and their control.

use crate::Api;
use crate::fence::allowed::{Allowed, act, scope};
use crate::fence::bodies::ControlAnswer;
use crate::fence::input::{Json, Params, Path, given, page_size, position, window};
use crate::fence::problem::{Answer, Refused};
use keelway_domain::access::Need;
use keelway_domain::names::Context;
use keelway_engine::sequences::commands::Control;
use keelway_engine::views::{ExecutionFilter, MAX_PAGE, SequenceFilter};
use keelway_wire::http::{Bounded, Clock, ExecutionPage, ExecutionState, Page, STATES, SequencePage, SequenceState};
use serde::Deserialize;
use serde_json::Value;

/// The shortest beginning of a context's name that is looked for.
const SHORTEST: usize = 8;

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Wanted {
    name: Option<String>,
    state: Option<String>,
    labels: Option<String>,
    from_time: Option<String>,
    before_time: Option<String>,
    keptn_context: Option<String>,
    context_prefix: Option<String>,
    page_size: Option<String>,
    next_page_key: Option<String>,
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct WantedExecutions {
    project: Option<String>,
    keptn_context: Option<String>,
    stage: Option<String>,
    service: Option<String>,
    name: Option<String>,
    status: Option<String>,
    open: Option<String>,
    page_size: Option<String>,
    next_page_key: Option<String>,
}

#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[schema(as = ControlRequest)]
#[serde(deny_unknown_fields, default)]
pub struct Command {
    state: Option<String>,
    stage: Option<String>,
}

/// Lists what outside events caused, one entry per context, newest first.
#[utoipa::path(
    get,
    path = "/v1/sequence/{project}",
    tag = "sequences",
    params(Wanted),
    responses((status = 200, body = SequencePage))
)]
pub(crate) async fn list(
    _: Allowed<scope::Read>,
    api: Api,
    Path(project): Path<String>,
    Params(wanted): Params<Wanted>,
) -> Answer<axum::Json<Page<SequenceState, Value>>> {
    let state = state("state", wanted.state.as_ref())?;
    let contexts = given(wanted.keptn_context.as_ref()).unwrap_or_default();
    let contexts: Vec<_> = contexts.split(',').map(str::trim).filter(|text| !text.is_empty()).collect();
    if contexts.len() > MAX_PAGE {
        return Err(Refused::field("keptnContext", format!("lists {} contexts: at most {MAX_PAGE} at once", contexts.len())));
    }
    let filter = SequenceFilter {
        name: given(wanted.name.as_ref()).map(str::to_owned),
        state,
        labels: labels(wanted.labels.as_ref())?,
        window: window(wanted.from_time.as_ref(), wanted.before_time.as_ref())?,
        prefix: prefix(wanted.context_prefix.as_ref())?,
        contexts: contexts.into_iter().map(Context::of).collect(),
    };
    let size = page_size(wanted.page_size.as_ref())?;
    let from = position(wanted.next_page_key.as_ref())?;
    let project = api.engine().projects().find(&project).await?.settings.name;
    let page = api.engine().views().sequences(&project, &filter, size.into(), from).await?;
    Ok(axum::Json(Page::new(page.items, size, page.next).with(Clock::at(api.engine().now()))))
}

/// Lists executions one by one: those of a context, however many, or of a project, contexts newest first; or only what is open.
#[utoipa::path(
    get,
    path = "/v1/sequence-execution",
    tag = "sequences",
    params(WantedExecutions),
    responses((status = 200, body = ExecutionPage), (status = 404))
)]
pub(crate) async fn executions(
    caller: Allowed<scope::Anywhere<scope::Read>>,
    api: Api,

    Params(wanted): Params<WantedExecutions>,
) -> Answer<axum::Json<Page<ExecutionState, Value>>> {
    let Some(project) = given(wanted.project.as_ref()) else {
        return Err(Refused::field("project", "is missing: name the project"));
    };
    caller.check(Need::Read, Some(project))?;
    let own = |text: &Option<String>| given(text.as_ref()).map(str::to_owned);
    let filter = ExecutionFilter {
        context: given(wanted.keptn_context.as_ref()).map(Context::of),
        stage: own(&wanted.stage),
        service: own(&wanted.service),
        name: own(&wanted.name),
        state: state("status", wanted.status.as_ref())?,
    };
    let open = only_open(wanted.open.as_ref(), filter.context.as_ref())?;
    let size = page_size(wanted.page_size.as_ref())?;
    let from = position(wanted.next_page_key.as_ref())?;
    let project = api.engine().projects().find(project).await?.settings.name;
    let views = api.engine().views();
    let (page, truncated) = match open {
        true => views.open_executions(&project, &filter, (size.into(), from)).await?,
        false => (views.executions_in(&project, &filter, size.into(), from).await?, false),
    };
    let bounded = Bounded { now: api.engine().now().rfc3339(), truncated };
    Ok(axum::Json(Page::new(page.items, size, page.next).with(bounded)))
}

/// `open=true`: only what is open, from the index of open work, so that nothing that has ended is read.
fn only_open(text: Option<&String>, context: Option<&Context>) -> Answer<bool> {
    match given(text) {
        None | Some("false") => Ok(false),
        Some("true") if context.is_none() => Ok(true),
        Some("true") => Err(Refused::field("open", "does not go with keptnContext: read the context, or what is open")),
        Some(_) => Err(Refused::field("open", "is neither \"true\" nor \"false\"")),
    }
}

/// A state that a sequence can be in.
fn state(field: &str, text: Option<&String>) -> Answer<Option<String>> {
    match given(text) {
        Some(state) if !STATES.contains(&state) => {
            let shown: String = state.chars().take(50).collect();
            Err(Refused::field(field, format!("{shown:?} is none: there are {}", STATES.join(", "))))
        }
        state => Ok(state.map(str::to_owned)),
    }
}

/// `labels=team=checkout,urgent`: names, with or without values.
fn labels(text: Option<&String>) -> Answer<Vec<(String, Option<String>)>> {
    let each = given(text).unwrap_or_default().split(',').map(str::trim).filter(|label| !label.is_empty());
    let read = |label: &str| match label.split_once('=') {
        Some(("", _)) => Err(Refused::field("labels", format!("{label:?} has no name: send name=value, or a name"))),
        Some((name, value)) => Ok((name.to_owned(), Some(value.to_owned()))),
        None => Ok((label.to_owned(), None)),
    };
    each.map(read).collect()
}

/// The prefix of a context's name, as people type it.
fn prefix(text: Option<&String>) -> Answer<Option<String>> {
    let Some(text) = given(text) else { return Ok(None) };
    if text.chars().count() < SHORTEST {
        return Err(Refused::field("contextPrefix", format!("{text:?} is too short: give at least {SHORTEST} characters")));
    }
    let prefix = Context::new(text).map_err(|error| Refused::field("contextPrefix", error))?;
    Ok(Some(prefix.to_string()))
}

/// Pauses, resumes or aborts the sequences of a context, or of a stage of it.
#[utoipa::path(
    post,
    path = "/v1/sequence/{project}/{context}/control",
    tag = "sequences",
    request_body(content = Command, example = json!({"state": "pause", "stage": ""})),
    responses((status = 200, body = crate::fence::bodies::ControlAnswer))
)]
pub(crate) async fn control(
    caller: Allowed<scope::Trigger, act::Control>,
    api: Api,
    Path((project, of)): Path<(String, String)>,

    Json(body): Json<Command>,
) -> Answer<axum::Json<ControlAnswer>> {
    let Some(state) = given(body.state.as_ref()) else {
        return Err(Refused::field("state", "is missing: send \"pause\", \"resume\" or \"abort\""));
    };
    let Some(what) = Control::parse(state) else {
        let state: String = state.chars().take(50).collect();
        return Err(Refused::field("state", format!("{state:?} is none: send \"pause\", \"resume\" or \"abort\"")));
    };
    let project = api.engine().projects().find(&project).await?.settings.name;
    let of = Context::of(&of);
    tracing::Span::current().record("project", project.as_str()).record("context", of.as_str());
    let stage = given(body.stage.as_ref());
    let open = api.engine().control(&project, &of, stage, what).await?;
    let place = stage.map_or_else(|| format!("context {of}"), |stage| format!("stage {stage} of context {of}"));
    let did = match what {
        Control::Abort => "aborted",
        Control::Pause => "paused",
        Control::Resume => "resumed",
    };
    let inside = stage.map(|stage| format!(" in {stage}")).unwrap_or_default();
    caller.tells(project.as_str(), format!("{did} what is open{inside} ({of})"));
    let detail = done(what, open, &place);
    Ok(axum::Json(ControlAnswer { keptn_context: of.to_string(), open, detail }))
}

/// What a control request did.
fn done(what: Control, open: usize, place: &str) -> String {
    let sequences = if open == 1 { "1 open sequence".to_owned() } else { format!("{open} open sequences") };
    match (what, open) {
        (Control::Abort, 0) => format!("nothing was aborted: no sequence of {place} is open"),
        (Control::Abort, _) => format!("{sequences} of {place} will end as aborted"),
        (Control::Pause, 0) => format!("no sequence of {place} is open: those that start later are paused until it is resumed"),
        (Control::Pause, _) => format!("{sequences} of {place} will be paused, and so will those that start before it is resumed"),
        (Control::Resume, 0) => format!("no sequence of {place} is open: those that start later are not paused"),
        (Control::Resume, _) => format!("{sequences} of {place} will go on"),
    }
}
