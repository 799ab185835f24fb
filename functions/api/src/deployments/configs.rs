//! Deployment configs as they are read.

use super::{find, shape};
use crate::Api;
use crate::fence::allowed::{Allowed, scope};
use crate::fence::bodies::DeploymentConfigObject;
use crate::fence::input::Path;
use crate::fence::pages::Unexplained;
use crate::fence::problem::Answer;
use crate::kinds::routes::{Listed, Listing, Shown, kind_routes};
use axum::Json;
use axum::response::Response;
use keelway_domain::deployments::Config;
use keelway_engine::deployments::Address;
use keelway_wire::http::Clock;
use keelway_wire::http::deployments::{ConfigPage, ConfigState};
use keelway_wire::manifest::DeploymentConfigManifest;

impl Shown for DeploymentConfigManifest {
    type One = Response;

    async fn one(api: &Api, of: &Address) -> Answer<Option<Response>> {
        Ok(api.deployments().view(of).await?.map(|view| shape::object(of, &view, &view.applied.definition, None)))
    }
}

impl Listed for DeploymentConfigManifest {
    type Page = ConfigPage;

    async fn list(api: &Api, listing: &Listing) -> Answer<ConfigPage> {
        let (found, next) = listing.declared::<Self>(api).await?;
        let addresses: Vec<Address> = found.iter().map(|(of, _)| of.clone()).collect();
        let states = api.deployments().states(&addresses).await?;
        let now = api.deployments().now();
        let shown = found.iter().zip(states).map(|((of, applied), state)| {
            let state = state.unwrap_or_else(|| Config::new(&of.namespace, &of.name, now));
            shape::config_of(of, &state, applied.version, &applied.spec)
        });
        Ok(ConfigPage::new(shown.collect(), listing.limit, next).with(Clock::at(now)))
    }
}

kind_routes! {
    DeploymentConfigManifest, "deployments";
    /// Lists the state of deployment configs.
    list Anywhere<Unexplained> "/v1/deploymentConfigs" -> ConfigPage;
    /// A config as a `DeploymentConfig`, with `metadata.resourceVersion` and `status`.
    one "/v1/deploymentConfigs/{id}" -> DeploymentConfigObject[headers(("ETag" = String))];
    /// The manifest as it was applied; after a rollback, what the rollback made of it.
    manifest "/v1/deploymentConfigs/{id}/manifest";
    /// Deletes a config. What is on its way is cancelled; what is deployed stays.
    delete "/v1/deploymentConfigs/{id}";
}

/// The state of a config.
#[utoipa::path(
    get,
    path = "/v1/deploymentConfigs/{id}/status",
    tag = "deployments",
    responses((status = 200, body = ConfigState))
)]
pub(crate) async fn status(_: Allowed<scope::Read>, api: Api, Path(id): Path<String>) -> Answer<Json<ConfigState>> {
    let (of, view) = find(&api, &id).await?;
    Ok(Json(shape::config(&of, &view)))
}
