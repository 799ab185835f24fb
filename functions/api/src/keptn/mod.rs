//! Sequences and projects, in Keptn's shape where Keptn has one.

mod accept;
mod administration;
mod approvals;
mod binding;
mod environments;
mod evaluated;
mod evaluations;
mod events;
mod integrations;
mod monitoring;
mod overrides;
pub mod plan;
mod projects;
mod resources;
mod retry;
mod revisions;
mod sequences;
mod told;

use crate::fence::DATASTORE;
use crate::fence::route::{Route, route};

/// The routes.
pub fn routes() -> Vec<Route> {
    let routes = vec![
        route!(events::list).also(DATASTORE),
        route!(accept::accept).once(),
        route!(events::triggered),
        route!(sequences::list),
        route!(sequences::executions),
        route!(sequences::control),
        route!(retry::retry),
        route!(overrides::override_windows),
        route!(projects::list),
        route!(administration::create),
        route!(administration::update),
        route!(administration::secrets),
        route!(projects::one),
        route!(administration::delete),
        route!(projects::shipyard),
        route!(plan::plan),
        route!(revisions::list),
        route!(revisions::one),
        route!(revisions::compare),
        route!(revisions::roll_back),
        route!(projects::services),
        route!(administration::create_service),
        route!(administration::delete_service),
        route!(environments::list),
        route!(environments::queue),
        route!(projects::stages),
        route!(projects::stage),
        route!(projects::stage_services),
        route!(projects::service),
        route!(evaluations::evaluate).once(),
        route!(evaluated::list),
        route!(evaluated::one),
        route!(evaluated::invalidate),
        route!(evaluated::source),
        route!(evaluated::choose),
        route!(approvals::decide),
        route!(integrations::list),
        route!(integrations::register),
        route!(integrations::unregister),
        route!(integrations::ping),
        route!(integrations::subscriptions),
        route!(integrations::subscribe),
        route!(integrations::subscription),
        route!(integrations::replace),
        route!(integrations::unsubscribe),
        route!(integrations::log),
        route!(integrations::logged),
        route!(integrations::delete_logged),
    ];
    routes.into_iter().chain(resources::routes()).collect()
}
