//! Environments: which version runs where, since when, and which executions are in progress.

use crate::Api;
use crate::fence::allowed::{Allowed, scope};
use crate::fence::input::{Params, Path, given, page_size};
use crate::fence::pages::place;
use crate::fence::problem::Answer;
use keelway_domain::names::ServiceName;
use keelway_engine::views::EnvironmentFilter;
use keelway_wire::http::{Clock, EnvironmentPage, EnvironmentState, Page};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Wanted {
    stage: Option<String>,
    service: Option<String>,
    page_size: Option<String>,
    next_page_key: Option<String>,
}

/// Lists which version runs where, since when, and what is on its way.
#[utoipa::path(
    get,
    path = "/v1/project/{project}/environment",
    tag = "projects",
    params(Wanted),
    responses((status = 200, body = EnvironmentPage))
)]
pub(crate) async fn list(
    _: Allowed<scope::Read>,
    api: Api,
    Path(project): Path<String>,
    Params(wanted): Params<Wanted>,
) -> Answer<axum::Json<Page<EnvironmentState, Value>>> {
    let size = page_size(wanted.page_size.as_ref())?;
    let after = place(wanted.next_page_key.as_ref(), |key| ServiceName::new(key).is_ok().then_some(key))?;
    let filter = filter(wanted.stage.as_ref(), wanted.service.as_ref());
    let project = api.engine().projects().find(&project).await?.settings.name;
    let (environments, next) = api.engine().views().environments(&project, &filter, size.into(), after).await?;
    Ok(axum::Json(Page::new(environments, size, next).with(Clock::at(api.engine().now()))))
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub struct Of {
    stage: Option<String>,
    service: Option<String>,
}

/// Lists what waits for its turn.
#[utoipa::path(
    get,
    path = "/v1/project/{project}/queue",
    tag = "sequences",
    params(Of),
    responses((status = 200, body = keelway_wire::http::QueueList))
)]
pub(crate) async fn queue(
    _: Allowed<scope::Read>,
    api: Api,
    Path(project): Path<String>,
    Params(of): Params<Of>,
) -> Answer<axum::Json<Value>> {
    let filter = filter(of.stage.as_ref(), of.service.as_ref());
    let project = api.engine().projects().find(&project).await?.settings.name;
    let queues = api.engine().views().queues(&project, &filter).await?;
    Ok(axum::Json(json!({"items": queues, "now": api.engine().now().rfc3339()})))
}

fn filter(stage: Option<&String>, service: Option<&String>) -> EnvironmentFilter {
    EnvironmentFilter { stage: given(stage).map(str::to_owned), service: given(service).map(str::to_owned) }
}
