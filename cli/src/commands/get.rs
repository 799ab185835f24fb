//! `get`: what there is.

use super::approve::{hints, listed, open_approvals};
use super::{deployments, environments, evaluations, executions, find, kinds, operations, past, pipelines, queue, shipyard};
use crate::api::Api;
use crate::args::{Format, Get, GetEvents, GetSequences, Scope};
use crate::error::CliError;
use crate::output::{hint, note, one_line, say, say_data};
use crate::pages::{self, Pages};
use crate::table::Table;
use crate::table::print;
use crate::terminal::look;
use crate::timeline::{self, Entry};
use crate::words::{SHORT, short_ids, span};
use crate::{board, delivery};
use keelway_domain::names::{ProjectName, SequenceName, ServiceName, StageName};
use keelway_domain::time::Timestamp;
use keelway_wire::http::{ProjectState, SequencePage};
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Shows what was asked for.
///
/// # Errors
/// As the API answers.
pub async fn get(api: &Api, what: &Get) -> Result<(), CliError> {
    match what {
        Get::Projects { output } => projects(api, output.format).await,
        Get::Services { project, output } => services(api, project, output.format).await,
        Get::Shipyard(what) => shipyard::get(api, what).await,
        Get::Sequences(what) => sequences(api, what).await,
        Get::Executions(what) => executions::executions(api, what).await,
        Get::Events(what) => events(api, what).await,
        Get::Environments { scope, history: true, output } => past::history(api, scope, output.format).await,
        Get::Environments { scope, output, .. } => environments::environments(api, scope, output.format).await,
        Get::Queue { scope, output } => queue::queue(api, scope, output.format).await,
        Get::Approvals { scope, output } => approvals(api, scope, output.format).await,
        Get::Deployments(what) => deployments::everywhere(api, what).await,
        Get::Evaluations(what) => evaluations::get(api, what).await,
        Get::Invalid(what) => operations::invalid(api, what).await,
        Get::Kind(kind) => kinds::get(api, kind).await,
    }
}

async fn projects(api: &Api, format: Format) -> Result<(), CliError> {
    let projects: Vec<ProjectState> = pages::all(api, &["project"], &[]).await?;
    if format.is_data() {
        return say_data(&json!({"items": projects}), format);
    }
    let wide = format.is_wide();
    let mut table = Table::new(&["PROJECT", "STAGES", "SERVICES", "REVISION", "CREATED", "DESCRIPTION"]);
    for project in projects {
        let stages: Vec<&str> = project.stages.iter().map(|stage| stage.stage_name.as_str()).collect();
        let services: Vec<String> = services_of(&project).into_keys().collect();
        table.row(vec![
            project.project_name.clone(),
            stages.join(","),
            services.join(","),
            project.shipyard_version.chars().take(if wide { usize::MAX } else { SHORT }).collect(),
            created(&project.creation_date).chars().take(if wide { usize::MAX } else { "2026-11-22".len() }).collect(),
            one_line(&project.description, 60),
        ]);
    }
    print(table, format, "there is no project yet; apply one: keelway apply -f FILE")
}

/// When something was created, which the API tells in nanoseconds since 1970, as people read it.
fn created(nanoseconds: &str) -> String {
    nanoseconds.parse::<i64>().map_or_else(|_| nanoseconds.to_owned(), |n| Timestamp(n / 1_000_000).rfc3339())
}

fn services_of(project: &ProjectState) -> BTreeMap<String, Vec<&str>> {
    let mut services: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for stage in &project.stages {
        for service in &stage.services {
            services.entry(service.service_name.clone()).or_default().push(&stage.stage_name);
        }
    }
    services
}

async fn services(api: &Api, project: &ProjectName, format: Format) -> Result<(), CliError> {
    let project: ProjectState = api.get(&["project", project.as_str()], &[]).await?;
    let services = services_of(&project);
    if format.is_data() {
        let services: Vec<Value> = services.iter().map(|(name, stages)| json!({"serviceName": name, "stages": stages})).collect();
        return say_data(&json!({"items": services}), format);
    }
    let mut table = Table::new(&["SERVICE", "STAGES"]);
    for (service, stages) in services {
        table.row(vec![service, stages.join(",")]);
    }
    print(table, format, "there is no service yet: the first trigger for one registers it")
}

async fn sequences(api: &Api, what: &GetSequences) -> Result<(), CliError> {
    let mut contexts = vec![];
    for given in &what.context {
        contexts.push(find::place(api, Some(&what.project), given).await?.context.to_string());
    }
    let (contexts, limit, labels) = (contexts.join(","), what.limit.to_string(), what.labels.join(","));
    let query = [
        ("name", what.name.as_ref().map_or("", SequenceName::as_str)),
        ("state", what.state.as_deref().unwrap_or_default()),
        ("keptnContext", &contexts),
        ("labels", &labels),
        ("pageSize", &limit),
    ];
    let mut page: Value = api.get(&["sequence", what.project.as_str()], &query).await?;
    if what.output.format.is_data() {
        return say_data(&json!({"items": page["states"].take(), "now": page["now"]}), what.output.format);
    }
    let page: SequencePage = serde_json::from_value(page).map_err(|error| {
        CliError::Failed(format!("the API's answer is of another version ({error}): use the keelway of its version"))
    })?;
    let empty = "there is no such sequence; start one: keelway trigger delivery --help";
    if what.output.format.is_wide() || page.items.is_empty() {
        return print(timeline::table(&page.items), what.output.format, empty);
    }
    let (look, now) = (look(), Timestamp::parse(&page.extra.now));
    let contexts: Vec<&str> = page.items.iter().map(|state| state.shkeptncontext.as_str()).collect();
    let lines = page.items.iter().zip(short_ids(&contexts)).map(|(state, id)| delivery::line(state, &id, now));
    let lines: Vec<delivery::Line> = lines.collect();
    board::rows(&lines, &look).iter().try_for_each(|row| say(row))?;
    hint(&board::hints(&lines.into_iter().flat_map(|line| line.hints).collect::<Vec<_>>(), &look));
    for state in page.items.iter().filter(|state| state.truncated) {
        let (context, project) = (&state.shkeptncontext, &state.project);
        note(&format!("context {context} has more executions than were looked at: keelway get executions {context} -p {project}"));
    }
    Ok(())
}

async fn events(api: &Api, what: &GetEvents) -> Result<(), CliError> {
    let scope = &what.scope;
    let limit = usize::try_from(what.limit).unwrap_or(usize::MAX);
    let place = match &what.context {
        Some(given) => Some(find::place(api, scope.project.as_ref(), given).await?),
        None => None,
    };
    let project =
        place.as_ref().and_then(|place| place.project.clone()).or_else(|| scope.project.as_ref().map(ToString::to_string));
    let (mut events, mut now): (Vec<Value>, _) = (vec![], None);
    for ty in types(what.ty.as_deref()) {
        let query = [
            ("keptnContext", place.as_ref().map_or("", |place| place.context.as_str())),
            ("project", project.as_deref().unwrap_or_default()),
            ("stage", scope.stage.as_ref().map_or("", StageName::as_str)),
            ("service", scope.service.as_ref().map_or("", ServiceName::as_str)),
            ("type", &ty),
        ];
        // A context is read to its end, where the newest are; of a project, the newest contexts come first.
        let enough = if place.is_some() { usize::MAX } else { limit };
        let mut pages = Pages::<Value>::of(api, &["event"], &query, enough);
        while events.len() < enough
            && let Some(page) = pages.next().await?
        {
            events.extend(page.items);
            now = Timestamp::parse(&page.extra.now);
        }
        if !events.is_empty() {
            break;
        }
    }
    let events = newest(events, limit);
    if what.output.format.is_data() {
        return say_data(&json!({"items": events}), what.output.format);
    }
    let format = what.output.format;
    print(if format.is_wide() { wide_events(&events) } else { event_table(&events, now) }, format, "there is no such event")
}

/// The newest of these events, at most `limit`, in the order in which they are listed.
fn newest(events: Vec<Value>, limit: usize) -> Vec<Value> {
    let mut places: Vec<usize> = (0..events.len()).collect();
    places.sort_by_cached_key(|n| Reverse((Entry::of(&events[*n]).time, *n)));
    let kept: BTreeSet<usize> = places.into_iter().take(limit).collect();
    events.into_iter().enumerate().filter(|(n, _)| kept.contains(n)).map(|(_, event)| event).collect()
}

/// What a type may stand for, likeliest first: tables show types without the prefix that most have, and types of others have none.
fn types(given: Option<&str>) -> Vec<String> {
    match given {
        None => vec![String::new()],
        Some(whole) if ["sh.keptn.", "dev.keelway."].iter().any(|prefix| whole.starts_with(prefix)) => vec![whole.to_owned()],
        Some(ty) => vec![format!("{}{ty}", keelway_domain::event::PREFIX), ty.to_owned()],
    }
}

/// The type without the prefix that most have.
fn short_type(event: &Value) -> String {
    let ty = event["type"].as_str().unwrap_or_default();
    ty.strip_prefix(keelway_domain::event::PREFIX).unwrap_or(ty).to_owned()
}

fn event_table(events: &[Value], now: Option<Timestamp>) -> Table {
    let contexts: Vec<&str> = events.iter().map(|event| event["shkeptncontext"].as_str().unwrap_or_default()).collect();
    let mut table = Table::new(&["AGE", "CONTEXT", "SERVICE", "STAGE", "TYPE", "RESULT", "NOTE"]);
    for (event, id) in events.iter().zip(short_ids(&contexts)) {
        let entry = Entry::of(event);
        let age = entry.time.zip(now).map(|(time, now)| span((now - time).0)).unwrap_or_default();
        table.row(vec![age, id, entry.service, entry.stage, short_type(event), entry.result, entry.note]);
    }
    table
}

fn wide_events(events: &[Value]) -> Table {
    let mut table = Table::new(&["TIME", "CONTEXT", "SERVICE", "STAGE", "TYPE", "RESULT", "SOURCE", "ID", "VERDICT"]);
    for event in events {
        let entry = Entry::of(event);
        let text = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
        let time = entry.time.map(Timestamp::rfc3339).unwrap_or_default();
        let (context, source, id, verdict) = (text("shkeptncontext"), text("source"), text("id"), text("verdict"));
        table.row(vec![time, context, entry.service, entry.stage, short_type(event), entry.result, source, id, verdict]);
    }
    table
}

async fn approvals(api: &Api, scope: &Scope, format: Format) -> Result<(), CliError> {
    let open = open_approvals(api, scope).await?;
    // Promotions have no stage and no service.
    let promotions = match scope {
        Scope { project, stage: None, service: None } => pipelines::waiting(api, project.as_ref()).await?,
        _ => vec![],
    };
    if format.is_data() {
        let events = open.iter().map(|approval| approval.event.clone());
        let items: Vec<Value> = events.chain(promotions.iter().map(pipelines::Waiting::data)).collect();
        return say_data(&json!({"items": items}), format);
    }
    if promotions.is_empty() || !open.is_empty() {
        print(listed(&open, format), format, "nothing waits for approval")?;
        hint(&hints(&open));
    }
    if !promotions.is_empty() {
        if !open.is_empty() {
            say("")?;
        }
        print(pipelines::table(&promotions), format, "")?;
        hint(&pipelines::hints(&promotions));
    }
    Ok(())
}
