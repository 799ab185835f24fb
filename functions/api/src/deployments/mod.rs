//! Deployment configs and their versions. `{id}` is `<name>` in namespace `default`, or `<namespace>:<name>`; a version is
//! `{id}-{n}`.

mod artifacts;
mod carry;
mod commands;
mod configs;
mod deployers;
mod generate;
mod history;
mod prepare;
mod rollbacks;
pub mod shape;
mod together;
mod write;

use crate::Api;
use crate::fence::names::{DEFAULT_NAMESPACE, config as address, version};
use crate::fence::problem::{Answer, Refused};
use crate::fence::route::{Route, route};
use crate::kinds::routes::Named;
use axum::http::StatusCode;
use keelway_domain::deployments::Refused as Conflict;
use keelway_engine::deployments::Address;
use keelway_engine::deployments::views::View;
use keelway_wire::http::deployments::FieldError;
use keelway_wire::manifest::DeploymentConfigManifest;

/// The field in the refusal of a rollback of a paused config.
const PAUSED: &str = "spec.paused";
/// The longest message.
const MESSAGE: usize = 2000;
/// The longest name of a person.
const NAME: usize = 100;

/// The routes.
pub fn routes() -> Vec<Route> {
    let routes = vec![
        route!(write::put).once(),
        route!(configs::status),
        route!(history::of_config),
        route!(history::audit),
        route!(commands::instantiate).once(),
        route!(rollbacks::one).once(),
        route!(commands::triggers).once(),
        route!(commands::steer).once(),
        route!(write::create).once(),
        route!(generate::generate),
        route!(rollbacks::several).once(),
        route!(history::everywhere),
        route!(history::one),
        // The answer to a claim must not be stored, because it contains a token.
        route!(deployers::claim),
        route!(deployers::heartbeat),
        route!(deployers::strategy),
        route!(deployers::finish),
        route!(artifacts::told),
    ];
    configs::of_kind().into_iter().chain(routes).collect()
}

/// `<name>` or `<namespace>:<name>`
fn id(of: &Address) -> String {
    if of.namespace == DEFAULT_NAMESPACE { of.name.clone() } else { format!("{}:{}", of.namespace, of.name) }
}

/// The config with an id.
async fn find(api: &Api, id: &str) -> Answer<(Address, View)> {
    let named = Named::by_id(id);
    if let Some(of) = named.at()
        && let Some(view) = api.deployments().view(&of).await?
    {
        return Ok((of, view));
    }
    Err(named.unknown::<DeploymentConfigManifest>(api).await?)
}

/// A refusal of the engine: 404 or 409. Callers that can report "nothing to do" treat that case separately.
fn refused(why: Conflict) -> Refused {
    match why {
        Conflict::Unknown(detail) => Refused::new(StatusCode::NOT_FOUND, "unknown deployment", detail),
        Conflict::Conflict(detail) | Conflict::Nothing(detail) => Refused::new(StatusCode::CONFLICT, "conflict", detail),
    }
}

fn error(field: impl Into<String>, code: &str, message: impl Into<String>) -> FieldError {
    FieldError { field: field.into(), code: code.into(), message: message.into() }
}
