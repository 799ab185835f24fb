//! Integrations and their log entries, in Keptn's format.

use crate::Api;
use crate::fence::allowed::{Allowed, act, scope};
use crate::fence::bodies::{Empty, LogsDeleted};
use crate::fence::caller::Caller;
use crate::fence::input::{Json, Params, Path, given, page_size, position, window};
use crate::fence::problem::{Answer, Refused};
use axum::http::StatusCode;
use keelway_domain::access::{Kind as Scope, Need};
use keelway_domain::event::EventType;
use keelway_domain::time::Timestamp;
use keelway_engine::keptn::integrations::{Integration, Subscription, Who};
use keelway_engine::keptn::logs::MAX_ENTRIES;
use keelway_wire::http::keptn::{Identified, IntegrationState, LogPage, Logs, Metadata, SubscriptionFilter, SubscriptionState};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;

fn shown(one: Integration) -> IntegrationState {
    let mut metadata: Metadata = serde_json::from_str(&one.about).unwrap_or_default();
    metadata.lastseen = one.seen.rfc3339();
    let subscriptions = one.subscriptions.into_iter().map(shown_subscription).collect();
    IntegrationState { id: one.id, name: one.who.name, metadata, subscriptions: Some(subscriptions) }
}

fn shown_subscription(one: Subscription) -> SubscriptionState {
    let filter = SubscriptionFilter { projects: Some(one.projects), stages: Some(one.stages), services: Some(one.services) };
    SubscriptionState { id: one.id, event: one.event, filter }
}

fn read(sent: SubscriptionState) -> Subscription {
    let SubscriptionFilter { projects, stages, services } = sent.filter;
    Subscription {
        id: String::new(),
        event: sent.event,
        projects: projects.unwrap_or_default(),
        stages: stages.unwrap_or_default(),
        services: services.unwrap_or_default(),
    }
}

/// The visible part of an executor: its subscriptions that concern a project of the caller.
fn shown_to(caller: &Caller, mut one: Integration) -> Option<Integration> {
    let sees = |project: &String| caller.sees(project) || caller.has_in(Scope::Execute, Some(project));
    let subscribes = !one.subscriptions.is_empty();
    one.subscriptions.retain_mut(|of| {
        let everywhere = of.projects.is_empty();
        of.projects.retain(sees);
        everywhere || !of.projects.is_empty()
    });
    (!subscribes || !one.subscriptions.is_empty()).then_some(one)
}

/// Checks that the caller may execute the tasks of these subscriptions, in each project that they name, or in all projects: nobody
/// may register executors for others.
fn speaks_for(caller: &Caller, subscriptions: &[Subscription]) -> Answer<()> {
    for of in subscriptions {
        let task = match EventType::parse(&of.event) {
            EventType::Task(task, _) => Some(task),
            _ => None,
        };
        for project in places(&of.projects) {
            match &task {
                Some(task) => caller.check(Need::Execute(task.as_str()), project)?,
                None if caller.has_in(Scope::Execute, project) => {}
                None => return Err(caller.lacks("execute:<task>", project)),
            }
        }
    }
    Ok(())
}

/// The named projects. `None`: all projects.
fn places(projects: &[String]) -> Vec<Option<&str>> {
    if projects.is_empty() { vec![None] } else { projects.iter().map(|project| Some(project.as_str())).collect() }
}

/// Checks that the caller may change a registered executor: its owner, as long as they may execute its tasks, or an administrator
/// of its projects. An executor without a stored owner belongs to every caller with access to all of its projects.
fn owns(caller: &Caller, one: &Integration) -> Answer<()> {
    let all: Vec<Option<&str>> = one.subscriptions.iter().flat_map(|of| places(&of.projects)).collect();
    let administers = |project: &Option<&str>| caller.may(Need::Administer, *project);
    if caller.administers_everything() || !all.is_empty() && all.iter().all(administers) {
        return Ok(());
    }
    if one.owner == caller.id || one.owner.is_empty() && !all.is_empty() {
        return speaks_for(caller, &one.subscriptions);
    }
    let detail = format!(
        "this needs the token that registered integration {}, or administer in all projects that it names: register an executor of your own",
        one.id
    );
    Err(Refused::new(StatusCode::FORBIDDEN, "forbidden", detail))
}

/// Like [`owns`], for the executor with this id.
async fn own(api: &Api, caller: &Caller, id: &str) -> Answer<()> {
    owns(caller, &api.engine().integrations().get(id).await?)
}

/// Registers an executor. 201: it is new.
#[utoipa::path(
    post,
    path = "/v1/uniform/registration",
    tag = "executors",
    request_body(content = IntegrationState, example = json!({"name": "helm-service", "metadata": {"hostname": "node-1", "integrationversion": "1.4.5", "location": "control-plane", "kubernetesmetadata": {"namespace": "keptn"}}, "subscriptions": [{"event": "sh.keptn.event.deployment.triggered", "filter": {"projects": ["shop"], "stages": [], "services": []}}]})),
    responses((status = 200, body = Identified), (status = 201, body = Identified), (status = 409))
)]
pub(crate) async fn register(
    caller: Allowed<scope::Anywhere<scope::Execute>>,
    api: Api,

    Json(sent): Json<IntegrationState>,
) -> Answer<(StatusCode, axum::Json<Identified>)> {
    let metadata = &sent.metadata;
    let who = Who {
        name: sent.name.clone(),
        namespace: metadata.kubernetesmetadata.namespace.clone(),
        hostname: metadata.hostname.clone(),
    };
    let about = serde_json::to_string(&Metadata { lastseen: String::new(), ..metadata.clone() }).unwrap_or_default();
    let subscriptions: Vec<Subscription> = sent.subscriptions.unwrap_or_default().into_iter().map(read).collect();
    speaks_for(&caller, &subscriptions)?;
    let new = Integration { id: String::new(), owner: caller.id.clone(), who, about, subscriptions, seen: Timestamp(0) };
    let (id, is_new) = api.engine().integrations().register(&new, |known| owns(&caller, known).is_ok()).await?;
    api.pings().forget(&id);
    Ok((if is_new { StatusCode::CREATED } else { StatusCode::OK }, axum::Json(Identified { id })))
}

/// Says that an executor is there, and answers its subscriptions.
///
/// Executors send it every 5 s. The table is asked once a minute, and is told as often that the executor is there; a change of the
/// subscriptions is seen a minute later at most.
#[utoipa::path(
    put,
    path = "/v1/uniform/registration/{id}/ping",
    tag = "executors",
    responses((status = 200, body = IntegrationState))
)]
pub(crate) async fn ping(
    caller: Allowed<scope::Anywhere<scope::Execute>>,
    api: Api,

    Path(id): Path<String>,
) -> Answer<axum::Json<IntegrationState>> {
    let now = api.engine().now();
    if let Some(known) = api.pings().get(&id, now) {
        owns(&caller, &known)?;
        return Ok(axum::Json(shown(known)));
    }
    let found = api.engine().integrations().ping(&id, |found| owns(&caller, found)).await??;
    api.pings().put(&id, found.clone(), now);
    Ok(axum::Json(shown(found)))
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub struct Wanted {
    name: Option<String>,
    id: Option<String>,
    namespace: Option<String>,
    hostname: Option<String>,
    project: Option<String>,
    stage: Option<String>,
    service: Option<String>,
}

/// Lists the executors that registered themselves.
#[utoipa::path(
    get,
    path = "/v1/uniform/registration",
    tag = "executors",
    params(Wanted),
    responses((status = 200, body = Vec<IntegrationState>))
)]
pub(crate) async fn list(
    caller: Allowed<scope::Anywhere<(scope::Read, scope::Execute)>>,
    api: Api,

    Params(wanted): Params<Wanted>,
) -> Answer<axum::Json<Vec<IntegrationState>>> {
    let is = |wanted: &Option<String>, has: &str| given(wanted.as_ref()).is_none_or(|wanted| wanted == has);
    let has =
        |wanted: &Option<String>, list: &[String]| given(wanted.as_ref()).is_none_or(|wanted| list.iter().any(|one| one == wanted));
    let all = api.engine().integrations().all().await?;
    let mut all: Vec<Integration> = all.into_iter().filter_map(|one| shown_to(&caller, one)).collect();
    all.retain(|one| {
        let by_name = is(&wanted.name, &one.who.name) && is(&wanted.id, &one.id);
        let by_place = is(&wanted.namespace, &one.who.namespace) && is(&wanted.hostname, &one.who.hostname);
        let takes = |of: &Subscription| {
            has(&wanted.project, &of.projects) && has(&wanted.stage, &of.stages) && has(&wanted.service, &of.services)
        };
        let unfiltered = [&wanted.project, &wanted.stage, &wanted.service].iter().all(|one| given(one.as_ref()).is_none());
        by_name && by_place && (unfiltered || one.subscriptions.iter().any(takes))
    });
    Ok(axum::Json(all.into_iter().map(shown).collect()))
}

/// Forgets an executor.
#[utoipa::path(
    delete,
    path = "/v1/uniform/registration/{id}",
    tag = "executors",
    responses((status = 200, body = crate::fence::bodies::Empty))
)]
pub(crate) async fn unregister(
    caller: Allowed<scope::Anywhere<scope::Execute>>,
    api: Api,

    Path(id): Path<String>,
) -> Answer<axum::Json<Empty>> {
    own(&api, &caller, &id).await?;
    api.engine().integrations().unregister(&id).await?;
    api.pings().forget(&id);
    Ok(axum::Json(Empty {}))
}

/// Lists what an executor subscribes to.
#[utoipa::path(
    get,
    path = "/v1/uniform/registration/{id}/subscription",
    tag = "executors",
    responses((status = 200, body = Vec<SubscriptionState>))
)]
pub(crate) async fn subscriptions(
    caller: Allowed<scope::Anywhere<(scope::Read, scope::Execute)>>,
    api: Api,

    Path(id): Path<String>,
) -> Answer<axum::Json<Vec<SubscriptionState>>> {
    let found = shown_to(&caller, api.engine().integrations().get(&id).await?);
    let subscriptions = found.map(|found| found.subscriptions).unwrap_or_default();
    Ok(axum::Json(subscriptions.into_iter().map(shown_subscription).collect()))
}

/// A subscription.
#[utoipa::path(
    get,
    path = "/v1/uniform/registration/{id}/subscription/{subscription}",
    tag = "executors",
    responses((status = 200, body = SubscriptionState))
)]
pub(crate) async fn subscription(
    caller: Allowed<scope::Anywhere<(scope::Read, scope::Execute)>>,
    api: Api,

    Path((id, subscription)): Path<(String, String)>,
) -> Answer<axum::Json<SubscriptionState>> {
    let found = shown_to(&caller, api.engine().integrations().get(&id).await?);
    let mut found = found.map(|found| found.subscriptions).unwrap_or_default();
    found.retain(|one| one.id == subscription);
    let detail = || format!("subscription {subscription:?} does not exist: integration {id} does not have it");
    let found = found.pop().ok_or_else(|| Refused::new(StatusCode::NOT_FOUND, "unknown subscription", detail()))?;
    Ok(axum::Json(shown_subscription(found)))
}

/// Adds a subscription.
#[utoipa::path(
    post,
    path = "/v1/uniform/registration/{id}/subscription",
    tag = "executors",
    request_body(content = SubscriptionState, example = json!({"event": "sh.keptn.event.test.triggered", "filter": {"projects": ["shop"], "stages": ["dev"], "services": []}})),
    responses((status = 201, body = Identified), (status = 409))
)]
pub(crate) async fn subscribe(
    caller: Allowed<scope::Anywhere<scope::Execute>>,
    api: Api,

    Path(id): Path<String>,
    Json(sent): Json<SubscriptionState>,
) -> Answer<(StatusCode, axum::Json<Identified>)> {
    let new = read(sent);
    speaks_for(&caller, std::slice::from_ref(&new))?;
    own(&api, &caller, &id).await?;
    let subscription = api.engine().integrations().subscribe(&id, &new, None).await?;
    api.pings().forget(&id);
    Ok((StatusCode::CREATED, axum::Json(Identified { id: subscription })))
}

/// Replaces a subscription.
#[utoipa::path(
    put,
    path = "/v1/uniform/registration/{id}/subscription/{subscription}",
    tag = "executors",
    request_body(content = SubscriptionState, example = json!({"event": "sh.keptn.event.test.triggered", "filter": {"projects": ["shop"], "stages": ["dev"], "services": []}})),
    responses((status = 200, body = Identified), (status = 409))
)]
pub(crate) async fn replace(
    caller: Allowed<scope::Anywhere<scope::Execute>>,
    api: Api,

    Path((id, subscription)): Path<(String, String)>,
    Json(sent): Json<SubscriptionState>,
) -> Answer<axum::Json<Identified>> {
    let new = read(sent);
    speaks_for(&caller, std::slice::from_ref(&new))?;
    own(&api, &caller, &id).await?;
    let subscription = api.engine().integrations().subscribe(&id, &new, Some(&subscription)).await?;
    api.pings().forget(&id);
    Ok(axum::Json(Identified { id: subscription }))
}

/// Removes a subscription.
#[utoipa::path(
    delete,
    path = "/v1/uniform/registration/{id}/subscription/{subscription}",
    tag = "executors",
    responses((status = 200, body = crate::fence::bodies::Empty))
)]
pub(crate) async fn unsubscribe(
    caller: Allowed<scope::Anywhere<scope::Execute>>,
    api: Api,

    Path((id, subscription)): Path<(String, String)>,
) -> Answer<axum::Json<Empty>> {
    own(&api, &caller, &id).await?;
    api.engine().integrations().unsubscribe(&id, &subscription).await?;
    api.pings().forget(&id);
    Ok(axum::Json(Empty {}))
}

/// Keeps what executors log, for five days.
#[utoipa::path(
    post,
    path = "/v1/log",
    tag = "executors",
    request_body(content = Logs, example = json!({"logs": [{"integrationid": "8e2ddf6d1e7b3e0d2f5a4c3b2a190807f6e5d4c3", "message": "the chart is missing", "task": "deployment"}]})),
    responses((status = 200, body = crate::fence::bodies::Empty), (status = 404))
)]
pub(crate) async fn log(
    caller: Allowed<scope::Anywhere<scope::Execute>>,
    api: Api,
    Json(sent): Json<Logs>,
) -> Answer<axum::Json<Empty>> {
    let entries = sent.logs.unwrap_or_default();
    let of: BTreeSet<&str> = entries.iter().map(|entry| entry.integrationid.as_str()).collect();
    // Larger numbers are refused below. An administrator of the installation may also log for executors that are no longer
    // registered.
    let checked = if caller.administers_everything() { 0 } else { MAX_ENTRIES };
    for id in of.into_iter().take(checked) {
        match api.pings().get(id, api.engine().now()) {
            Some(known) => owns(&caller, &known)?,
            None => own(&api, &caller, id).await?,
        }
    }
    let entries: Vec<(String, Value)> =
        entries.into_iter().map(|entry| (entry.integrationid.clone(), serde_json::to_value(entry).unwrap_or_default())).collect();
    api.engine().logs().keep(&entries).await?;
    Ok(axum::Json(Empty {}))
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct WantedLogs {
    integration_id: Option<String>,
    from_time: Option<String>,
    before_time: Option<String>,
    page_size: Option<String>,
    next_page_key: Option<String>,
}

/// Lists what executors logged, newest first.
#[utoipa::path(
    get,
    path = "/v1/log",
    tag = "executors",
    params(WantedLogs),
    responses((status = 200, body = LogPage))
)]
pub(crate) async fn logged(_: Allowed<scope::Read>, api: Api, Params(wanted): Params<WantedLogs>) -> Answer<axum::Json<LogPage>> {
    let window = window(wanted.from_time.as_ref(), wanted.before_time.as_ref())?;
    let (size, from) = (page_size(wanted.page_size.as_ref())?, position(wanted.next_page_key.as_ref())?);
    let page = api.engine().logs().page(given(wanted.integration_id.as_ref()), window, size.into(), from).await?;
    let logs = page.items.into_iter().filter_map(|entry| serde_json::from_value(entry).ok()).collect();
    Ok(axum::Json(LogPage::new(logs, size, page.next)))
}

/// Deletes what executors logged; without filters, everything.
#[utoipa::path(
    delete,
    path = "/v1/log",
    tag = "executors",
    params(WantedLogs),
    responses((status = 200, body = crate::fence::bodies::LogsDeleted))
)]
pub(crate) async fn delete_logged(
    caller: Allowed<scope::Administer, act::Delete>,
    api: Api,
    Params(wanted): Params<WantedLogs>,
) -> Answer<axum::Json<LogsDeleted>> {
    let window = window(wanted.from_time.as_ref(), wanted.before_time.as_ref())?;
    let integration = given(wanted.integration_id.as_ref());
    let deleted = api.engine().logs().delete(integration, window).await?;
    let of = integration.map(|id| format!(" of integration {id}")).unwrap_or_default();
    caller.says(format!("deleted {deleted} entries of the log{of}"));
    Ok(axum::Json(LogsDeleted { deleted }))
}
