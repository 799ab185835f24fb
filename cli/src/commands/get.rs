//! `get`: what there is.

use super::approve::open_approvals;
use super::pages::{PAGES, all_events, is_last};
use crate::api::Api;
use crate::args::{Format, Get, GetEvents, GetSequences, Scope};
use crate::error::CliError;
use crate::output::{colours, one_line, say, say_json};
use crate::table::Table;
use crate::timeline::{self, Entry};
use keelway_domain::names::{Context, ProjectName, SequenceName, ServiceName, StageName};
use keelway_wire::http::{ProjectPage, ProjectState, SequencePage};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Shows what was asked for.
///
/// # Errors
/// As the API answers.
pub async fn get(api: &Api, what: &Get) -> Result<(), CliError> {
    match what {
        Get::Projects { output } => projects(api, output.format).await,
        Get::Services { project, output } => services(api, project, output.format).await,
        Get::Sequences(what) => sequences(api, what).await,
        Get::Events(what) => events(api, what).await,
        Get::Approvals { scope, output } => approvals(api, scope, output.format).await,
    }
}

fn print(table: &Table, empty: &str) -> Result<(), CliError> {
    if table.is_empty() {
        eprintln!("{empty}");
        return Ok(());
    }
    say(&table.render(colours()))
}

async fn projects(api: &Api, format: Format) -> Result<(), CliError> {
    let (mut projects, mut key): (Vec<ProjectState>, String) = (vec![], String::new());
    for _ in 0..PAGES {
        let page: ProjectPage = api.get(&["project"], &[("pageSize", "100"), ("nextPageKey", &key)]).await?;
        projects.extend(page.projects);
        key = page.next_page_key;
        if is_last(&key) {
            break;
        }
    }
    if format == Format::Json {
        return say_json(&json!({"projects": projects}));
    }
    let mut table = Table::new(&["PROJECT", "STAGES", "SERVICES", "REVISION", "CREATED", "DESCRIPTION"]);
    for project in projects {
        let stages: Vec<&str> = project.stages.iter().map(|stage| stage.stage_name.as_str()).collect();
        let services: Vec<String> = services_of(&project).into_keys().collect();
        table.row(vec![
            project.project_name.clone(),
            stages.join(","),
            services.join(","),
            project.shipyard_version.clone(),
            project.creation_date.clone(),
            one_line(&project.description, 60),
        ]);
    }
    print(&table, "there is no project yet; apply one: keelway apply -f FILE")
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
    if format == Format::Json {
        let services: Vec<Value> = services.iter().map(|(name, stages)| json!({"serviceName": name, "stages": stages})).collect();
        return say_json(&json!({"services": services}));
    }
    let mut table = Table::new(&["SERVICE", "STAGES"]);
    for (service, stages) in services {
        table.row(vec![service, stages.join(",")]);
    }
    print(&table, "there is no service yet: the first trigger for one registers it")
}

async fn sequences(api: &Api, what: &GetSequences) -> Result<(), CliError> {
    let contexts: Vec<&str> = what.context.iter().map(Context::as_str).collect();
    let (contexts, limit) = (contexts.join(","), what.limit.to_string());
    let query = [
        ("name", what.name.as_ref().map_or("", SequenceName::as_str)),
        ("state", what.state.as_deref().unwrap_or_default()),
        ("keptnContext", &contexts),
        ("pageSize", &limit),
    ];
    let page: Value = api.get(&["sequence", what.project.as_str()], &query).await?;
    if what.output.format == Format::Json {
        return say_json(&page);
    }
    let page: SequencePage = serde_json::from_value(page).map_err(|error| {
        CliError::Failed(format!("the API's answer is of another version ({error}): use the keelway of its version"))
    })?;
    print(&timeline::table(&page.states), "there is no such sequence; start one: keelway trigger delivery …")
}

async fn events(api: &Api, what: &GetEvents) -> Result<(), CliError> {
    let scope = &what.scope;
    let limit = usize::try_from(what.limit).unwrap_or(usize::MAX);
    let page_size = limit.min(100).to_string();
    let query = [
        ("keptnContext", what.context.as_ref().map_or("", Context::as_str)),
        ("project", scope.project.as_ref().map_or("", ProjectName::as_str)),
        ("stage", scope.stage.as_ref().map_or("", StageName::as_str)),
        ("service", scope.service.as_ref().map_or("", ServiceName::as_str)),
        ("type", what.ty.as_deref().unwrap_or_default()),
        ("pageSize", &page_size),
    ];
    let mut events = all_events(api, &["event"], &query, limit).await?;
    events.truncate(limit);
    if what.output.format == Format::Json {
        return say_json(&json!({"events": events}));
    }
    let mut table = Table::new(&["TIME", "CONTEXT", "SERVICE", "STAGE", "TYPE", "RESULT", "SOURCE", "ID", "VERDICT"]);
    for event in &events {
        let entry = Entry::of(event);
        let text = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
        let ty = text("type");
        let ty = ty.strip_prefix(keelway_domain::event::PREFIX).unwrap_or(&ty).to_owned();
        let (context, source, id, verdict) = (text("shkeptncontext"), text("source"), text("id"), text("verdict"));
        table.row(vec![text("time"), context, entry.service, entry.stage, ty, entry.result, source, id, verdict]);
    }
    print(&table, "there is no such event")
}

async fn approvals(api: &Api, scope: &Scope, format: Format) -> Result<(), CliError> {
    let open = open_approvals(api, scope).await?;
    if format == Format::Json {
        let events: Vec<&Value> = open.iter().map(|approval| &approval.event).collect();
        return say_json(&json!({"events": events}));
    }
    print(&super::approve::listed(&open), "nothing waits for approval")
}
