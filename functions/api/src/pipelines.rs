//! Pipelines as they are read: the list, one with its environments, its manifest, its history, its open pull requests; and their
//! deletion.

use crate::Api;
use crate::allowed::{Allowed, act, scope};
use crate::input::{Params, Path, given, no_page_key, page_size};
use crate::problem::{Answer, Refused};
use crate::{explain, shape};
use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use keelway_domain::access::Need;
use keelway_domain::names::ProjectName;
use keelway_engine::ports::Ports;
use keelway_engine::promotions::Address;
use keelway_engine::promotions::views::View;
use keelway_engine::sequences::definitions::{Refusal, blob_id};
use keelway_wire::http::promotions::{Explanation, HistoryPage, OpenPullRequests, PipelinePage, PipelineState};
use serde::Deserialize;

/// So many names are looked through for one that was probably meant.
pub const KNOWN: u32 = 100;

/// Which entries of a list are wanted.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Wanted {
    /// Only those of this namespace.
    pub namespace: Option<String>,
    /// How many.
    pub page_size: Option<String>,
    /// Where the page before ended.
    pub next_page_key: Option<String>,
}

/// Paging.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Paging {
    /// How many.
    pub page_size: Option<String>,
    /// Where the page before ended.
    pub next_page_key: Option<String>,
}

/// No parameters are taken.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// The size of a page, for the engine.
pub fn limit(size: Option<&String>) -> Answer<u32> {
    page_size(size).map(|size| u32::try_from(size).unwrap_or(KNOWN))
}

/// The last name of the page before. Other texts that cannot be part of a key are refused.
pub fn after(key: Option<&String>) -> Answer<Option<&str>> {
    let Some(key) = given(key).filter(|key| *key != "0") else { return Ok(None) };
    let fits = key.len() <= 300 && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./#:".contains(&byte));
    if fits { Ok(Some(key)) } else { Err(no_page_key(key)) }
}

/// Whether a text follows the rule for names, or is at least no longer than one: then it can be looked for.
pub fn is_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= 63 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
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

/// The address that a path names, if it can be one.
pub fn address(namespace: &str, name: &str) -> Option<Address> {
    let namespace = ProjectName::new(namespace).ok()?.to_string();
    is_name(name).then(|| Address { namespace, name: name.to_owned() })
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
    State(api): State<Api<P>>,

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
    let pipelines: Vec<_> = entries.collect();
    Ok(Json(PipelinePage {
        total_count: pipelines.len() as u64,
        pipelines,
        next_page_key: next.unwrap_or_else(|| "0".into()),
        page_size: u64::from(limit),
        now: api.promotions().now().rfc3339(),
    }))
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
    State(api): State<Api<P>>,
    Path((namespace, name)): Path<(String, String)>,
    Params(Nothing {}): Params<Nothing>,
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
    State(api): State<Api<P>>,
    Path((namespace, name)): Path<(String, String)>,
    Params(Nothing {}): Params<Nothing>,
) -> Answer<Response> {
    let (_, view) = find(&api, &namespace, &name).await?;
    Ok(text(view.applied.source))
}

/// A manifest as it was applied.
pub fn text(source: String) -> Response {
    let tag = format!("\"{}\"", blob_id(&source));
    ([(header::CONTENT_TYPE, "text/yaml; charset=utf-8".to_owned()), (header::ETAG, tag)], source).into_response()
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
    State(api): State<Api<P>>,
    Path((namespace, name)): Path<(String, String)>,
    Params(Nothing {}): Params<Nothing>,
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
    responses((status = 200, body = HistoryPage))
)]
pub async fn history<P: Ports + 'static>(
    _: Allowed<scope::Read>,
    State(api): State<Api<P>>,
    Path((namespace, name)): Path<(String, String)>,
    Params(paging): Params<Paging>,
) -> Answer<Json<HistoryPage>> {
    let limit = limit(paging.page_size.as_ref())?;
    let after = after(paging.next_page_key.as_ref())?;
    let (of, view) = find(&api, &namespace, &name).await?;
    let history = api.promotions().history(&of, after, limit).await?;
    Ok(Json(HistoryPage {
        total_count: (history.promotions.len() + history.commands.len()) as u64,
        promotions: history.promotions.iter().map(shape::past).collect(),
        commands: history.commands.into_iter().map(shape::command).collect(),
        next_page_key: history.next.unwrap_or_else(|| "0".into()),
        page_size: u64::from(limit),
        now: view.now.rfc3339(),
    }))
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
    State(api): State<Api<P>>,
    Path((namespace, name)): Path<(String, String)>,
    Params(Nothing {}): Params<Nothing>,
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
    State(api): State<Api<P>>,
    Path((namespace, name)): Path<(String, String)>,
    Params(Nothing {}): Params<Nothing>,
) -> Answer<Json<OpenPullRequests>> {
    let (_, view) = find(&api, &namespace, &name).await?;
    Ok(Json(OpenPullRequests { pull_requests: shape::pull_requests(&view), now: view.now.rfc3339() }))
}
