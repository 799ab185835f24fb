//! Pipelines: how they are shown, their history, their open pull requests; and what people and clusters tell about them.

mod commands;
pub mod compare;
pub mod explain;
mod observations;
mod plan;
pub mod shape;
mod webhooks;

use crate::Api;
use crate::fence::allowed::{Allowed, act, scope};
use crate::fence::input::{Params, Path};
use crate::fence::pages::{Paging, Wanted, after, limit};
use crate::fence::problem::Answer;
use crate::fence::route::{Route, route};
use crate::kinds::routes::{Listed, Listing, Named, Shown, kind_routes};
use axum::Json;
use axum::http::StatusCode;
use keelway_engine::promotions::Address;
use keelway_engine::promotions::views::View;
use keelway_wire::http::Clock;
use keelway_wire::http::promotions::{Commands, Explanation, OpenPullRequests, PipelineHistoryPage, PipelinePage, PipelineState};
use keelway_wire::manifest::{ClusterManifest, PipelineManifest};

/// The routes.
pub fn routes() -> Vec<Route> {
    let routes = vec![
        route!(history),
        route!(explain),
        route!(plan::plan),
        route!(pull_requests),
        route!(commands::command).once(),
        route!(commands::approval).once(),
        route!(observations::report),
        route!(webhooks::wake),
        route!(observe),
    ];
    of_kind().into_iter().chain(routes).collect()
}

/// The pipeline in a path.
pub(crate) async fn find(api: &Api, namespace: &str, name: &str) -> Answer<(Address, View)> {
    let named = Named::new(namespace, name);
    if let Some(of) = named.at()
        && let Some(view) = api.promotions().view(&of).await?
    {
        return Ok((of, view));
    }
    Err(named.unknown::<PipelineManifest>(api).await?)
}

impl Shown for PipelineManifest {
    type One = Json<PipelineState>;

    async fn one(api: &Api, of: &Address) -> Answer<Option<Self::One>> {
        Ok(api.promotions().view(of).await?.map(|view| Json(shape::pipeline(of, &view))))
    }
}

impl Listed for PipelineManifest {
    type Page = PipelinePage;

    async fn list(api: &Api, listing: &Listing) -> Answer<PipelinePage> {
        let (found, next) = listing.declared::<Self>(api).await?;
        let addresses: Vec<Address> = found.iter().map(|(of, _)| of.clone()).collect();
        let states = api.promotions().states(&addresses).await?;
        let entries = found.iter().zip(&states).map(|((of, applied), state)| shape::entry(of, applied, state.as_ref()));
        Ok(PipelinePage::new(entries.collect(), listing.limit, next).with(Clock::at(api.promotions().now())))
    }
}

kind_routes! {
    PipelineManifest, "pipelines";
    /// Lists the pipelines.
    list Anywhere<Wanted> "/v1/pipelines" -> PipelinePage;
    /// A pipeline, with its environments.
    one "/v1/pipelines/{namespace}/{name}" -> PipelineState;
    /// The manifest as it was applied.
    manifest "/v1/pipelines/{namespace}/{name}/manifest";
    /// Deletes a pipeline, and closes the pull requests that it opened.
    delete "/v1/pipelines/{namespace}/{name}";
}

/// Lists what happened to a pipeline, newest first.
#[utoipa::path(
    get,
    path = "/v1/pipelines/{namespace}/{name}/history",
    tag = "pipelines",
    params(Paging),
    responses((status = 200, body = PipelineHistoryPage))
)]
pub(crate) async fn history(
    _: Allowed<scope::Read>,
    api: Api,
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
pub(crate) async fn explain(
    _: Allowed<scope::Read>,
    api: Api,
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
pub(crate) async fn pull_requests(
    _: Allowed<scope::Read>,
    api: Api,
    Path((namespace, name)): Path<(String, String)>,
) -> Answer<Json<OpenPullRequests>> {
    let (_, view) = find(&api, &namespace, &name).await?;
    Ok(Json(OpenPullRequests { pull_requests: shape::pull_requests(&view), now: view.now.rfc3339() }))
}

/// Has everything that pipelines name in the cluster be read now.
///
/// Reading it takes its time, so nothing is said yet about how that went: the pipelines show it.
#[utoipa::path(
    post,
    path = "/v1/clusters/{namespace}/{name}/observe",
    tag = "pipelines",
    responses((status = 202))
)]
pub(crate) async fn observe(caller: Allowed<scope::Trigger, act::Control>, api: Api, named: Named) -> Answer<StatusCode> {
    if let Some(of) = named.at()
        && api.promotions().observe_cluster(&of).await?
    {
        caller.says(format!("had cluster {} read", named.name));
        return Ok(StatusCode::ACCEPTED);
    }
    Err(named.unknown::<ClusterManifest>(&api).await?)
}
