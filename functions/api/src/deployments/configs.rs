//! Deployment configs as they are read, and their deletion.

use super::{find, shape, unknown};
use crate::Api;
use crate::fence::allowed::{Allowed, act, scope};
use crate::fence::input::{Params, Path, given, no_page_key};
use crate::fence::manifests::text;
use crate::fence::pages::{after, limit};
use crate::fence::problem::{Answer, Refused};
use axum::Json;
use axum::http::StatusCode;
use axum::response::Response;
use keelway_domain::access::Need;
use keelway_domain::deployments::Config;
use keelway_domain::deployments::definition::Definition;
use keelway_domain::names::ProjectName;
use keelway_engine::deployments::Address;
use keelway_engine::deployments::views::View;
use keelway_engine::ports::Ports;
use keelway_wire::http::Clock;
use keelway_wire::http::deployments::{ConfigPage, ConfigState};
use keelway_wire::manifest::{render, yaml_of};
use serde::Deserialize;

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Wanted {
    namespace: Option<String>,
    page_size: Option<String>,
    next_page_key: Option<String>,
}

/// Lists the state of deployment configs.
#[utoipa::path(
    get,
    path = "/v1/deploymentConfigs",
    tag = "deployments",
    params(Wanted),
    responses((status = 200, body = ConfigPage))
)]
pub async fn list<P: Ports + 'static>(
    caller: Allowed<scope::Anywhere<scope::Read>>,
    api: Api<P>,

    Params(wanted): Params<Wanted>,
) -> Answer<Json<ConfigPage>> {
    let namespace = given(wanted.namespace.as_ref()).map(ProjectName::new).transpose();
    let namespace = namespace.map_err(|error| Refused::field("namespace", error))?;
    let limit = limit(wanted.page_size.as_ref())?;
    let after = after(wanted.next_page_key.as_ref())?;
    let (found, next) = match namespace {
        Some(namespace) => {
            caller.check(Need::Read, Some(namespace.as_str()))?;
            api.deployments().configs().page(namespace.as_str(), after, limit).await?
        }
        None => match after.filter(|key| key.split('/').any(str::is_empty)) {
            Some(key) => return Err(no_page_key(key)),
            None => api.deployments().configs().everywhere(caller.seen().as_deref(), after, limit).await?,
        },
    };
    let addresses: Vec<Address> = found.iter().map(|(of, _)| of.clone()).collect();
    let states = api.deployments().states(&addresses).await?;
    let now = api.deployments().now();
    let shown = found.iter().zip(states).map(|((of, applied), state)| {
        let state = state.unwrap_or_else(|| Config::new(&of.namespace, &of.name, now));
        shape::config_of(of, &state, applied.version, &applied.spec.definition)
    });
    Ok(Json(ConfigPage::new(shown.collect(), limit, next).with(Clock::at(now))))
}

/// A config as a `DeploymentConfig`, with `metadata.resourceVersion` and `status`.
#[utoipa::path(
    get,
    path = "/v1/deploymentConfigs/{id}",
    tag = "deployments",
    responses((status = 200, body = crate::fence::bodies::DeploymentConfigObject, headers(("ETag" = String))))
)]
pub async fn one<P: Ports + 'static>(_: Allowed<scope::Read>, api: Api<P>, Path(id): Path<String>) -> Answer<Response> {
    let (of, view) = find(&api, &id).await?;
    Ok(shape::object(&of, &view, &view.applied.definition, None))
}

/// The manifest as it was applied; after a rollback, what the rollback made of it.
#[utoipa::path(
    get,
    path = "/v1/deploymentConfigs/{id}/manifest",
    tag = "deployments",
    responses((status = 200, body = String, content_type = "text/yaml", headers(("ETag" = String))))
)]
pub async fn manifest<P: Ports + 'static>(_: Allowed<scope::Read>, api: Api<P>, Path(id): Path<String>) -> Answer<Response> {
    let (of, view) = find(&api, &id).await?;
    Ok(text(text_of(&of, &view)))
}

/// The text of a config: as it was applied, or what a rollback made of it.
fn text_of(of: &Address, view: &View) -> String {
    match &view.source {
        Some(source) => source.clone(),
        None => {
            let object = render(&of.namespace, &of.name, &view.applied.definition);
            let said = "# A rollback changed this config: this is what is in force now, and not the manifest that was applied.";
            format!("{said}\n{}", yaml_of(&object))
        }
    }
}

/// The definition of a config and its text, if there is one.
pub async fn in_force<P: Ports>(api: &Api<P>, namespace: &str, name: &str) -> Answer<Option<(Definition, String)>> {
    let of = Address { namespace: namespace.to_owned(), name: name.to_owned() };
    let view = api.deployments().view(&of).await?;
    Ok(view.map(|view| {
        let text = text_of(&of, &view);
        (view.applied.definition, text)
    }))
}

/// The state of a config.
#[utoipa::path(
    get,
    path = "/v1/deploymentConfigs/{id}/status",
    tag = "deployments",
    responses((status = 200, body = ConfigState))
)]
pub async fn status<P: Ports + 'static>(_: Allowed<scope::Read>, api: Api<P>, Path(id): Path<String>) -> Answer<Json<ConfigState>> {
    let (of, view) = find(&api, &id).await?;
    Ok(Json(shape::config(&of, &view)))
}

/// Deletes a config. What is on its way is cancelled; what is deployed stays.
#[utoipa::path(
    delete,
    path = "/v1/deploymentConfigs/{id}",
    tag = "deployments",
    responses((status = 204))
)]
pub async fn delete<P: Ports + 'static>(
    _: Allowed<scope::Administer, act::Delete>,
    api: Api<P>,
    Path(id): Path<String>,
) -> Answer<StatusCode> {
    if let Some(of) = super::address(&id)
        && api.deployments().delete(&of).await?
    {
        return Ok(StatusCode::NO_CONTENT);
    }
    Err(unknown(&api, &id).await?)
}
