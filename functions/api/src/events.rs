//! Events: accepting them, the history of a context or project, open task triggers.

use crate::Api;
use crate::approvals;
use crate::binding;
use crate::caller::Caller;
use crate::hand_in;
use crate::input::{Params, Path, given, no_page_key, page_size, position, window};
use crate::monitoring;
use crate::problem::{Answer, Refused};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use keelway_domain::access::{Kind as Scope, Need};
use keelway_domain::event::{CloudEvent, EventType, Kind, PREFIX, TaskResult};
use keelway_domain::ids::RecordId;
use keelway_domain::names::{Context, ProjectName, TaskName};
use keelway_domain::shipyard::APPROVAL;
use keelway_domain::time::Timestamp;
use keelway_engine::item::MAX_SORT_BYTES;
use keelway_engine::ports::Ports;
use keelway_engine::protocol::Engine;
use keelway_engine::sequences::preflight::Preflight;
use keelway_engine::sequences::views::{EventFilter, MAX_TASKS, OpenWork, WorkFilter, WorkPage};
use keelway_engine::sequences::{MAX_DECISION_BYTES, Sequences};
use keelway_engine::table;
use keelway_wire::cloudevent::{self, Origin};
use keelway_wire::http::{Accepted, EventPage};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;
use uuid::Uuid;

/// The longest `wait`, in seconds. The function's time limit is longer, and clients' usual limit of 30 s, too.
const MAX_WAIT: u64 = 20;

/// `POST /v1/event`
pub async fn accept<P: Ports + 'static>(State(api): State<Api<P>>, caller: Caller, event: binding::Event) -> Answer<Response> {
    let mut json = event.0;
    cloudevent::fill_id(&mut json, || Uuid::now_v7().to_string());
    let event = cloudevent::parse(&json, Origin::Client, api.engine().ports().now())?;
    cloudevent::check_client_event(&event)?;
    put(&api, &caller, event).await
}

/// Checks a client's well-formed event, and whether this client may send it, and passes it on.
pub async fn put<P: Ports + 'static>(api: &Api<P>, caller: &Caller, event: CloudEvent) -> Answer<Response> {
    let decides = permitted::<P>(caller, &event)?;
    tracing::Span::current().record("context", event.context.as_str());
    if let Some(reason) = api.engine().oversize(&event) {
        return Err(Refused::too_large(reason));
    }
    match api.engine().preflight(&event).await? {
        Preflight::Publish => table::publish(api.engine().ports(), std::slice::from_ref(&event)).await?,
        Preflight::Known => {
            caller.does_nothing();
            tracing::info!(event = event.id, "this event was taken before");
        }
        Preflight::Decision(..) if !decides => return Err(Refused::internal()),
        Preflight::Decision(to, trigger) => {
            let wanted = TaskResult::of(event.text("result"));
            if event.size() > MAX_DECISION_BYTES {
                let detail =
                    format!("the decision has {} bytes, {MAX_DECISION_BYTES} are allowed: send the reason only", event.size());
                return Err(Refused::too_large(detail));
            }
            caller.acts("decide");
            let event = signed(event, caller);
            return approvals::settle(api, caller, (&to, trigger), wanted, |x| api.engine().decision_of(x, &event)).await;
        }
    }
    Ok(axum::Json(Accepted { context: event.context.to_string() }).into_response())
}

/// Whether the caller may send this event; `true`: it decides an approval, and who may is known when its stage is.
fn permitted<P: Ports>(caller: &Caller, event: &CloudEvent) -> Answer<bool> {
    let project = event.text("project");
    match EventType::parse(&event.ty) {
        EventType::Task(task, Kind::Finished) if task.as_str() == APPROVAL => {
            if !caller.has_in(Scope::Approve, project) {
                return Err(caller.lacks("approve:<stage>", project));
            }
            return Ok(true);
        }
        EventType::Task(task, _) => caller.check(Need::Execute(task.as_str()), project)?,
        EventType::Other(name) if Sequences::<P>::is_history(&name) => {
            // What tools note about their work, and nothing follows from.
            if !caller.has_in(Scope::Execute, project) {
                caller.check(Need::Trigger, project)?;
            }
        }
        _ => {
            caller.check(Need::Trigger, project)?;
            caller.acts("trigger");
            let service = event.text("service").unwrap_or_default();
            caller.tells(project.unwrap_or_default(), format!("{} for {service} in context {}", event.ty, event.context));
        }
    }
    Ok(false)
}

/// The decision with the name of its sender. What the event says about that is a note.
fn signed(mut event: CloudEvent, caller: &Caller) -> CloudEvent {
    let said = event.data.get(APPROVAL).and_then(|approval| approval.get("by")).and_then(Value::as_str).map(str::to_owned);
    let said = said.unwrap_or_else(|| event.source.clone());
    let by = caller.by(Some(said));
    let approval = event.data.entry(APPROVAL).or_insert_with(|| json!({}));
    if let Some(approval) = approval.as_object_mut() {
        approval.insert("by".into(), json!(by));
    }
    event
}

#[derive(Debug, Default, Deserialize)]
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

/// `GET /v1/event`
pub async fn list<P: Ports + 'static>(
    State(api): State<Api<P>>,
    caller: Caller,
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
    let named = match given(wanted.project.as_ref()) {
        Some(name) => Some(api.engine().find_project(name).await?.settings.name),
        None => None,
    };
    if let Some(project) = &named
        && !caller.has_in(Scope::Execute, Some(project.as_str()))
    {
        caller.check(Need::Read, Some(project.as_str()))?;
    }
    let page = match (named, of) {
        (Some(project), Some(of)) => api.engine().events_of(&project, &of, &filter, size, from).await?,
        (Some(project), None) => api.engine().events_in(&project, &filter, size, from).await?,
        (None, Some(of)) if filter.ty.as_deref() == Some(monitoring::CONFIGURED) && !monitoring::configures(&api).await? => {
            return Ok(event_page(vec![monitoring::nothing_configured(&of, api.engine().now())], size, None, api.engine().now()));
        }
        (None, Some(of)) => match api.engine().project_of(&of).await? {
            Some(project) => api.engine().events_of(&project, &of, &filter, size, from).await?,
            None => return Ok(event_page(vec![], size, None, api.engine().now())),
        },
        (None, None) => return Err(Refused::field("keptnContext", "is missing, and project is, too: name one of them")),
    };
    let items = page.items.into_iter().filter(|event| shown_to(&caller, event)).collect();
    Ok(event_page(items, size, (page.next != 0).then(|| page.next.to_string()), api.engine().now()))
}

/// Whether a caller is shown an event: who may see the project, and of the events of a task, who carries it out.
fn shown_to(caller: &Caller, event: &Value) -> bool {
    let project = event.pointer("/data/project").and_then(Value::as_str);
    let carries_out = || match EventType::parse(event["type"].as_str().unwrap_or_default()) {
        EventType::Task(task, _) => caller.may(Need::Execute(task.as_str()), project),
        _ => false,
    };
    caller.may(Need::Read, project) || carries_out()
}

fn event_page(events: Vec<Value>, size: usize, next: Option<String>, now: Timestamp) -> axum::Json<EventPage> {
    let (n, next_page_key) = (events.len() as u64, next.unwrap_or_else(|| "0".into()));
    axum::Json(EventPage { events, next_page_key, page_size: size as u64, total_count: n, fingerprint: None, now: now.rfc3339() })
}

#[derive(Debug, Default, Deserialize)]
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

/// `GET /v1/event/triggered/{type}`
pub async fn triggered<P: Ports + 'static>(
    State(api): State<Api<P>>,
    caller: Caller,
    Path(ty): Path<String>,
    Params(wanted): Params<WantedWork>,
) -> Answer<axum::Json<EventPage>> {
    let tasks = tasks_of(&ty)?;
    let size = page_size(wanted.page_size.as_ref())?;
    let wait = waiting(wanted.wait.as_ref())?;
    let project = match given(wanted.project.as_ref()) {
        Some(name) => Some(known_project(&api, name).await?),
        None => None,
    };
    let id = match given(wanted.event_id.as_ref()).map(RecordId::from_uuid) {
        Some(None) => return Ok(event_page(vec![], size, None, api.engine().now())),
        Some(id) => id,
        None => None,
    };
    for task in &tasks {
        // Whoever names no project is shown the triggers of their own.
        if let Some(project) = &project
            && !caller.may(Need::Execute(task.as_str()), Some(project.as_str()))
        {
            caller.check(Need::Read, Some(project.as_str()))?;
        }
    }
    let own = |text: &Option<String>| given(text.as_ref()).map(str::to_owned);
    let filter = WorkFilter { project, stage: own(&wanted.stage), service: own(&wanted.service), id };
    let after = given(wanted.next_page_key.as_ref()).filter(|key| *key != "0");
    if let Some(after) = after.filter(|after| !is_work_key(after)) {
        return Err(no_page_key(after));
    }
    if let (Some(after), Some(_)) = (after, wait) {
        return Err(Refused::field("wait", format!("does not go with nextPageKey {after:?}: wait on the first page only")));
    }
    let none_open = OpenWork::default().fingerprint();
    let known = own(&wanted.unless).or_else(|| none_open.filter(|_| wait.is_some()));
    let look = || async {
        let open = api.engine().open_work(&tasks, &filter, after).await?;
        Ok::<_, Refused>((open.fingerprint().is_none() || open.fingerprint() != known).then_some(open))
    };
    // What is known is not read again: an answer without news costs queries of the index only.
    let Some(open) = hand_in::outcome(wait.unwrap_or_default(), look).await? else {
        let mut page = event_page(vec![], size, None, api.engine().now());
        page.0.fingerprint = known;
        return Ok(page);
    };
    let WorkPage { events, next } = api.engine().work_page(&open, size).await?;
    let events = events.into_iter().filter(|event| shown_to(&caller, event)).collect();
    let mut page = event_page(events, size, next, api.engine().now());
    page.0.fingerprint = open.fingerprint().filter(|_| after.is_none());
    Ok(page)
}

/// A project that exists, or did a minute ago: executors ask every second.
async fn known_project<P: Ports>(api: &Api<P>, name: &str) -> Answer<ProjectName> {
    let now = api.engine().now();
    if let Some(known) = api.projects().get(name, now) {
        return Ok(known);
    }
    let found = api.engine().find_project(name).await?.settings.name;
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

/// Whether a page of open triggers may have ended with it: a time, then names.
fn is_work_key(key: &str) -> bool {
    let time = key.split_once('~').map(|(time, _)| time).unwrap_or_default();
    time.len() == 13 && time.bytes().all(|b| b.is_ascii_digit()) && key.len() <= MAX_SORT_BYTES
}

/// The tasks that full types or tasks' names, with commas between, mean.
fn tasks_of(types: &str) -> Answer<Vec<TaskName>> {
    let mut tasks = types.split(',').map(task_of).collect::<Answer<Vec<TaskName>>>()?;
    tasks.sort();
    tasks.dedup();
    if tasks.len() > MAX_TASKS {
        return Err(Refused::field("type", format!("names {} tasks: at most {MAX_TASKS} are looked for together", tasks.len())));
    }
    Ok(tasks)
}

/// The task that a full type or a task's name means.
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
