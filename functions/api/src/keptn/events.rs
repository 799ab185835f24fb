//! Events: the history of a context or project, open task triggers.

use crate::Api;
use crate::fence::allowed::{Allowed, scope};
use crate::fence::caller::Caller;
use crate::fence::hand_in;
use crate::fence::input::{Params, Path, given, page_size, position, window};
use crate::fence::pages::place;
use crate::fence::problem::{Answer, Refused};
use crate::keptn::monitoring;
use axum::http::StatusCode;
use keelway_domain::access::{Kind as Scope, Need};
use keelway_domain::event::{EventType, Kind, PREFIX};
use keelway_domain::ids::RecordId;
use keelway_domain::names::{Context, ProjectName, TaskName};
use keelway_domain::time::Timestamp;
use keelway_engine::item::MAX_SORT_BYTES;
use keelway_engine::views::{EventFilter, MAX_TASKS, OpenWork, WorkFilter, WorkPage};
use keelway_wire::http::{EventPage, News};
use serde::Deserialize;
use serde_json::Value;
use std::time::Duration;

/// The longest `wait`, in seconds. The function's time limit is longer, and clients' usual limit of 30 s, too.
const MAX_WAIT: u64 = 20;

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Wanted {
    keptn_context: Option<String>,
    project: Option<String>,
    stage: Option<String>,
    service: Option<String>,
    #[serde(rename = "type")]
    ty: Option<String>,
    source: Option<String>,
    #[serde(rename = "eventID")]
    event_id: Option<String>,
    from_time: Option<String>,
    before_time: Option<String>,
    page_size: Option<String>,
    next_page_key: Option<String>,
}

/// Lists the events of a context or of a project, oldest first within a context.
#[utoipa::path(
    get,
    path = "/v1/event",
    tag = "events",
    params(Wanted),
    responses((status = 200, body = EventPage), (status = 404))
)]
pub(crate) async fn list(
    caller: Allowed<scope::Anywhere<(scope::Read, scope::Execute)>>,
    api: Api,

    Params(wanted): Params<Wanted>,
) -> Answer<axum::Json<EventPage>> {
    let own = |text: &Option<String>| given(text.as_ref()).map(str::to_owned);
    let filter = EventFilter {
        stage: own(&wanted.stage),
        service: own(&wanted.service),
        ty: own(&wanted.ty),
        source: own(&wanted.source),
        id: own(&wanted.event_id),
        window: window(wanted.from_time.as_ref(), wanted.before_time.as_ref())?,
    };
    let size = page_size(wanted.page_size.as_ref())?;
    let from = position(wanted.next_page_key.as_ref())?;
    let of = given(wanted.keptn_context.as_ref()).map(Context::of);
    let asked = given(wanted.project.as_ref());
    // Checked first, because other callers must not learn which projects exist.
    if asked.is_some() && !caller.has_in(Scope::Execute, asked) {
        caller.check(Need::Read, asked)?;
    }
    let named = match asked {
        Some(name) => Some(api.engine().projects().find(name).await?.settings.name),
        None => None,
    };
    let page = match (named, of) {
        (Some(project), Some(of)) => api.engine().views().events_of(&project, &of, &filter, size.into(), from).await?,
        (Some(project), None) => api.engine().views().events_in(&project, &filter, size.into(), from).await?,
        (None, Some(of)) if filter.ty.as_deref() == Some(monitoring::CONFIGURED) && !monitoring::configures(&api).await? => {
            return Ok(event_page(vec![monitoring::nothing_configured(&of, api.engine().now())], size, None, api.engine().now()));
        }
        (None, Some(of)) => {
            match api.engine().views().projects_of(&of).await?.into_iter().find(|project| sees_some(&caller, project)) {
                Some(project) => api.engine().views().events_of(&project, &of, &filter, size.into(), from).await?,
                None => return Ok(event_page(vec![], size, None, api.engine().now())),
            }
        }
        (None, None) => return Err(Refused::field("keptnContext", "is missing, and project is, too: name one of them")),
    };
    let items = page.items.into_iter().filter(|event| shown_to(&caller, event)).collect();
    Ok(event_page(items, size, (page.next != 0).then(|| page.next.to_string()), api.engine().now()))
}

/// Whether a caller may see some events of a project.
fn sees_some(caller: &Caller, project: &ProjectName) -> bool {
    caller.sees(project.as_str()) || caller.has_in(Scope::Execute, Some(project.as_str()))
}

/// Whether a caller may see an event: with the scope `read`, or, for events of a task, with its scope `execute`.
fn shown_to(caller: &Caller, event: &Value) -> bool {
    let project = event.pointer("/data/project").and_then(Value::as_str);
    let carries_out = || match EventType::parse(event["type"].as_str().unwrap_or_default()) {
        EventType::Task(task, _) => caller.may(Need::Execute(task.as_str()), project),
        _ => false,
    };
    caller.may(Need::Read, project) || carries_out()
}

fn event_page(events: Vec<Value>, size: u16, next: Option<String>, now: Timestamp) -> axum::Json<EventPage> {
    axum::Json(EventPage::new(events, size, next).with(News { now: now.rfc3339(), fingerprint: None }))
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct WantedWork {
    project: Option<String>,
    stage: Option<String>,
    service: Option<String>,
    #[serde(rename = "eventID")]
    event_id: Option<String>,
    page_size: Option<String>,
    next_page_key: Option<String>,
    wait: Option<String>,
    unless: Option<String>,
}

/// Lists the open triggers of tasks, oldest first; can wait for the first one.
#[utoipa::path(
    get,
    path = "/v1/event/triggered/{type}",
    tag = "events",
    params(WantedWork),
    responses((status = 200, body = EventPage))
)]
pub(crate) async fn triggered(
    caller: Allowed<scope::Anywhere<(scope::Read, scope::Execute)>>,
    api: Api,

    Path(ty): Path<String>,
    Params(wanted): Params<WantedWork>,
) -> Answer<axum::Json<EventPage>> {
    let tasks = tasks_of(&ty)?;
    let size = page_size(wanted.page_size.as_ref())?;
    let wait = waiting(wanted.wait.as_ref())?;
    let asked = given(wanted.project.as_ref());
    for task in &tasks {
        // Without a project in the request, callers see the triggers of their own projects, and do not learn which others exist.
        if asked.is_some() && !caller.may(Need::Execute(task.as_str()), asked) {
            caller.check(Need::Read, asked)?;
        }
        // An executor without the scope would wait for ever, so it gets an error.
        if asked.is_none() && !caller.executes(task.as_str()) && !caller.has(Scope::Read) {
            return Err(caller.lacks_anywhere(Need::Execute(task.as_str())));
        }
    }
    let project = match asked {
        Some(name) => Some(known_project(&api, name).await?),
        None => None,
    };
    let id = match given(wanted.event_id.as_ref()).map(RecordId::from_uuid) {
        Some(None) => return Ok(event_page(vec![], size, None, api.engine().now())),
        Some(id) => id,
        None => None,
    };
    let own = |text: &Option<String>| given(text.as_ref()).map(str::to_owned);
    let filter = WorkFilter { project, stage: own(&wanted.stage), service: own(&wanted.service), id };
    let after = place(wanted.next_page_key.as_ref(), |key| is_work_key(key).then_some(key))?;
    if let (Some(after), Some(_)) = (after, wait) {
        return Err(Refused::field("wait", format!("does not go with nextPageKey {after:?}: wait on the first page only")));
    }
    let none_open = OpenWork::default().fingerprint();
    let known = own(&wanted.unless).or_else(|| none_open.filter(|_| wait.is_some()));
    let shown = |task: &str, project: &str| caller.may(Need::Read, Some(project)) || caller.may(Need::Execute(task), Some(project));
    let look = || async {
        let open = api.engine().views().open_work(&tasks, &filter, after, &shown).await?;
        Ok::<_, Refused>((open.fingerprint().is_none() || open.fingerprint() != known).then_some(open))
    };
    // Known triggers are not read again: an answer without news costs only queries of the index.
    let Some(open) = hand_in::outcome(wait.unwrap_or_default(), look).await? else {
        let mut page = event_page(vec![], size, None, api.engine().now());
        page.0.extra.fingerprint = known;
        return Ok(page);
    };
    let WorkPage { events, next } = api.engine().views().work_page(&open, size.into()).await?;
    let mut page = event_page(events, size, next, api.engine().now());
    page.0.extra.fingerprint = open.fingerprint().filter(|_| after.is_none());
    Ok(page)
}

/// Whether a project exists, from a cache of one minute, because executors ask every second.
async fn known_project(api: &Api, name: &str) -> Answer<ProjectName> {
    let now = api.engine().now();
    if let Some(known) = api.projects().get(name, now) {
        return Ok(known);
    }
    let found = api.engine().projects().find(name).await?.settings.name;
    api.projects().put(name, found.clone(), now);
    Ok(found)
}

/// `wait`: whole seconds.
fn waiting(text: Option<&String>) -> Answer<Option<Duration>> {
    let Some(text) = given(text) else { return Ok(None) };
    let seconds = text.parse().ok().filter(|seconds| *seconds <= MAX_WAIT);
    let refused = || Refused::field("wait", format!("{text:?} is not a number of seconds from 0 to {MAX_WAIT}"));
    seconds.map(|seconds| Some(Duration::from_secs(seconds))).ok_or_else(refused)
}

/// Whether a text can be the end of a page of open triggers: a time, then a hash.
fn is_work_key(key: &str) -> bool {
    let time = key.split_once('~').map(|(time, _)| time).unwrap_or_default();
    time.len() == 13 && time.bytes().all(|b| b.is_ascii_digit()) && key.len() <= MAX_SORT_BYTES
}

/// The tasks in a list of full types or names, separated by commas.
fn tasks_of(types: &str) -> Answer<Vec<TaskName>> {
    let mut tasks = types.split(',').map(task_of).collect::<Answer<Vec<TaskName>>>()?;
    tasks.sort();
    tasks.dedup();
    if tasks.len() > MAX_TASKS {
        return Err(Refused::field("type", format!("names {} tasks: at most {MAX_TASKS} are looked for together", tasks.len())));
    }
    Ok(tasks)
}

/// The task of a full type or a name.
fn task_of(ty: &str) -> Answer<TaskName> {
    let full =
        if ty.starts_with(PREFIX) { ty.to_owned() } else { format!("{PREFIX}{}.triggered", ty.trim_end_matches(".triggered")) };
    match EventType::parse(&full) {
        EventType::Task(task, Kind::Triggered) => Ok(task),
        _ => {
            let ty: String = ty.chars().take(100).collect();
            let detail = format!("type: {ty:?} is no task's trigger: send a task's name or sh.keptn.event.<task>.triggered");
            Err(Refused::new(StatusCode::BAD_REQUEST, "invalid request", detail))
        }
    }
}
