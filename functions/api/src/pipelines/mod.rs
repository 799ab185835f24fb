//! Pipelines as they are read: the list, one with its environments, its manifest, its history, its open pull requests; and their
//! deletion.

mod commands;
mod explain;
mod observations;
mod registry;
mod shape;
mod webhooks;

use crate::Api;
use crate::fence::allowed::{Allowed, act, scope};
use crate::fence::input::{Params, Path, given, no_page_key};
use crate::fence::manifests::text;
use crate::fence::names::of as address;
use crate::fence::pages::{KNOWN, Paging, Wanted, after, limit};
use crate::fence::problem::{Answer, Refused};
use crate::fence::route::{Route, route};
use axum::Json;
use axum::http::StatusCode;
use axum::response::Response;
use keelway_domain::access::Need;
use keelway_domain::names::ProjectName;
use keelway_engine::ports::Ports;
use keelway_engine::promotions::Address;
use keelway_engine::promotions::views::View;
use keelway_engine::secrets::Secrets;
use keelway_engine::sequences::definitions::Refusal;
use keelway_wire::http::Clock;
use keelway_wire::http::promotions::{Commands, Explanation, OpenPullRequests, PipelineHistoryPage, PipelinePage, PipelineState};

/// The routes.
pub fn routes<P: Ports + Secrets + 'static>() -> Vec<Route<P>> {
    vec![
        route!(list),
        route!(one),
        route!(delete),
        route!(manifest),
        route!(history),
        route!(explain),
        route!(pull_requests),
        route!(commands::command).once(),
        route!(commands::approval).once(),
        route!(observations::report),
        route!(webhooks::wake),
        route!(registry::clusters),
        route!(registry::cluster_one),
        route!(registry::cluster_delete),
        route!(registry::cluster_manifest),
        route!(registry::cluster_observe),
        route!(registry::git_hosts),
        route!(registry::git_host_one),
        route!(registry::git_host_delete),
        route!(registry::git_host_manifest),
    ]
}

/// The pipeline in a path.
pub async fn find<P: Ports>(api: &Api<P>, namespace: &str, name: &str) -> Answer<(Address, View)> {
    if let Some(of) = address(namespace, name) {
        tracing::Span::current().record("project", namespace);
        if let Some(view) = api.promotions().view(&of).await? {
            return Ok((of, view));
        }
    }
    Err(unknown(api, namespace, name).await?)
}

/// The refusal of a pipeline that does not exist, with those that do.
async fn unknown<P: Ports>(api: &Api<P>, namespace: &str, name: &str) -> Answer<Refused> {
    let known = match ProjectName::new(namespace) {
        Ok(namespace) => api.promotions().pipelines().page(namespace.as_str(), None, KNOWN).await?.0,
        Err(_) => vec![],
    };
    let refusal = Refusal::unknown("pipeline", name, known.iter().map(|(of, _)| of.name.as_str()));
    let Refusal::Unknown { kind, name, hint } = refusal else { return Ok(refusal.into()) };
    let namespace: String = namespace.chars().take(100).collect();
    let detail = format!("{kind} {name:?} does not exist in namespace {namespace:?}: {hint}");
    Ok(Refused::new(StatusCode::NOT_FOUND, "unknown pipeline", detail))
}

/// Lists the pipelines.
#[utoipa::path(
    get,
    path = "/v1/pipelines",
    tag = "pipelines",
    params(Wanted),
    responses((status = 200, body = PipelinePage))
)]
pub async fn list<P: Ports + 'static>(
    caller: Allowed<scope::Anywhere<scope::Read>>,
    api: Api<P>,

    Params(wanted): Params<Wanted>,
) -> Answer<Json<PipelinePage>> {
    let namespace = given(wanted.namespace.as_ref()).map(ProjectName::new).transpose();
    let namespace = namespace.map_err(|error| Refused::field("namespace", error))?;
    let limit = limit(wanted.page_size.as_ref())?;
    let after = after(wanted.next_page_key.as_ref())?;
    let (found, next) = match namespace {
        Some(namespace) => {
            caller.check(Need::Read, Some(namespace.as_str()))?;
            api.promotions().pipelines().page(namespace.as_str(), after, limit).await?
        }
        None => match after.filter(|key| key.split('/').any(str::is_empty)) {
            Some(key) => return Err(no_page_key(key)),
            None => api.promotions().pipelines().everywhere(caller.seen().as_deref(), after, limit).await?,
        },
    };
    let addresses: Vec<Address> = found.iter().map(|(of, _)| of.clone()).collect();
    let states = api.promotions().states(&addresses).await?;
    let entries = found.iter().zip(&states).map(|((of, applied), state)| shape::entry(of, applied, state.as_ref()));
    Ok(Json(PipelinePage::new(entries.collect(), limit, next).with(Clock::at(api.promotions().now()))))
}

/// A pipeline, with its environments.
#[utoipa::path(
    get,
    path = "/v1/pipelines/{namespace}/{name}",
    tag = "pipelines",
    responses((status = 200, body = PipelineState))
)]
pub async fn one<P: Ports + 'static>(
    _: Allowed<scope::Read>,
    api: Api<P>,
    Path((namespace, name)): Path<(String, String)>,
) -> Answer<Json<PipelineState>> {
    let (of, view) = find(&api, &namespace, &name).await?;
    Ok(Json(shape::pipeline(&of, &view)))
}

/// The manifest as it was applied.
#[utoipa::path(
    get,
    path = "/v1/pipelines/{namespace}/{name}/manifest",
    tag = "pipelines",
    responses((status = 200, body = String, content_type = "text/yaml", headers(("ETag" = String))))
)]
pub async fn manifest<P: Ports + 'static>(
    _: Allowed<scope::Read>,
    api: Api<P>,
    Path((namespace, name)): Path<(String, String)>,
) -> Answer<Response> {
    let (_, view) = find(&api, &namespace, &name).await?;
    Ok(text(view.applied.source))
}

/// Deletes a pipeline, and closes the pull requests that it opened.
#[utoipa::path(
    delete,
    path = "/v1/pipelines/{namespace}/{name}",
    tag = "pipelines",
    responses((status = 204))
)]
pub async fn delete<P: Ports + 'static>(
    _: Allowed<scope::Administer, act::Delete>,
    api: Api<P>,
    Path((namespace, name)): Path<(String, String)>,
) -> Answer<StatusCode> {
    if let Some(of) = address(&namespace, &name)
        && api.promotions().delete(&of).await?
    {
        return Ok(StatusCode::NO_CONTENT);
    }
    Err(unknown(&api, &namespace, &name).await?)
}

/// Lists what happened to a pipeline, newest first.
#[utoipa::path(
    get,
    path = "/v1/pipelines/{namespace}/{name}/history",
    tag = "pipelines",
    params(Paging),
    responses((status = 200, body = PipelineHistoryPage))
)]
pub async fn history<P: Ports + 'static>(
    _: Allowed<scope::Read>,
    api: Api<P>,
    Path((namespace, name)): Path<(String, String)>,
    Params(paging): Params<Paging>,
) -> Answer<Json<PipelineHistoryPage>> {
    let limit = limit(paging.page_size.as_ref())?;
    let after = after(paging.next_page_key.as_ref())?;
    let (of, view) = find(&api, &namespace, &name).await?;
    let history = api.promotions().history(&of, after, limit).await?;
    let commands: Vec<_> = history.commands.into_iter().map(shape::command).collect();
    let mut page = PipelineHistoryPage::new(history.promotions.iter().map(shape::past).collect(), limit, history.next);
    page.total_count += commands.len() as u64;
    Ok(Json(page.with(Commands { commands, now: view.now.rfc3339() })))
}

/// What each environment waits for.
#[utoipa::path(
    get,
    path = "/v1/pipelines/{namespace}/{name}/explain",
    tag = "pipelines",
    responses((status = 200, body = Explanation))
)]
pub async fn explain<P: Ports + 'static>(
    _: Allowed<scope::Read>,
    api: Api<P>,
    Path((namespace, name)): Path<(String, String)>,
) -> Answer<Json<Explanation>> {
    let (of, view) = find(&api, &namespace, &name).await?;
    Ok(Json(explain::explain(&of, &view)))
}

/// Lists the open pull requests of a pipeline.
#[utoipa::path(
    get,
    path = "/v1/pipelines/{namespace}/{name}/pull-requests",
    tag = "pipelines",
    responses((status = 200, body = OpenPullRequests))
)]
pub async fn pull_requests<P: Ports + 'static>(
    _: Allowed<scope::Read>,
    api: Api<P>,
    Path((namespace, name)): Path<(String, String)>,
) -> Answer<Json<OpenPullRequests>> {
    let (_, view) = find(&api, &namespace, &name).await?;
    Ok(Json(OpenPullRequests { pull_requests: shape::pull_requests(&view), now: view.now.rfc3339() }))
}
