//! Every route, by what it is about.

use crate::deployments::{artifacts, commands, configs, deployers, generate, history, rollbacks, write};
use crate::route::Route;
use crate::{
    accept, administration, apply, approvals, audit, checks, deliveries, environments, evaluations, events, fence, integrations,
    metadata, observations, openapi, operations, overrides, pipeline_commands, pipelines, projects, registry, resources, retry,
    revisions, route, schedules, sequences, subscriptions, tokens, webhooks,
};
use apply::stored;
use keelway_engine::checks::Rules;
use keelway_engine::ports::Ports;
use keelway_engine::secrets::Secrets;

/// Every route.
pub fn all<P: Ports + Secrets + Rules + 'static>() -> Vec<Route<P>> {
    [access(), keptn(), of_pipelines(), of_deployments(), of_webhooks()].into_iter().flatten().collect()
}

fn access<P: Ports + Secrets + Rules + 'static>() -> Vec<Route<P>> {
    vec![
        route!(metadata::auth),
        route!(metadata::metadata),
        route!(openapi::serve),
        route!(tokens::whoami),
        route!(tokens::list),
        route!(tokens::create),
        route!(tokens::one),
        route!(tokens::revoke),
        route!(tokens::rotate),
        route!(audit::list),
        route!(operations::list),
        route!(operations::one),
        route!(operations::drop_one),
        route!(operations::redrive),
        route!(operations::of_day),
        route!(checks::look),
        route!(checks::send),
        route!(checks::arrived),
    ]
}

fn keptn<P: Ports + 'static>() -> Vec<Route<P>> {
    let routes = vec![
        route!(events::list).also(fence::DATASTORE),
        route!(accept::accept).once(),
        route!(events::triggered),
        route!(sequences::list),
        route!(sequences::executions),
        route!(sequences::control),
        route!(retry::retry),
        route!(overrides::override_windows),
        route!(apply::apply),
        route!(stored::look),
        route!(projects::list),
        route!(administration::create),
        route!(administration::update),
        route!(administration::secrets),
        route!(projects::one),
        route!(administration::delete),
        route!(projects::shipyard),
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
        route!(schedules::list),
        route!(schedules::one),
        route!(schedules::delete),
        route!(schedules::manifest),
    ];
    routes.into_iter().chain(resources::routes()).collect()
}

fn of_pipelines<P: Ports + Secrets + 'static>() -> Vec<Route<P>> {
    vec![
        route!(pipelines::list),
        route!(pipelines::one),
        route!(pipelines::delete),
        route!(pipelines::manifest),
        route!(pipelines::history),
        route!(pipelines::explain),
        route!(pipelines::pull_requests),
        route!(pipeline_commands::command).once(),
        route!(pipeline_commands::approval).once(),
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

fn of_deployments<P: Ports + Secrets + 'static>() -> Vec<Route<P>> {
    vec![
        route!(write::put).once(),
        route!(configs::one),
        route!(configs::delete),
        route!(configs::manifest),
        route!(configs::status),
        route!(history::of_config),
        route!(history::audit),
        route!(commands::instantiate).once(),
        route!(rollbacks::one).once(),
        route!(commands::triggers).once(),
        route!(commands::steer).once(),
        route!(write::create).once(),
        route!(configs::list),
        route!(generate::generate),
        route!(rollbacks::several).once(),
        route!(history::everywhere),
        route!(history::one),
        // The answer to a claim is remembered nowhere: there is a token in it.
        route!(deployers::claim),
        route!(deployers::heartbeat),
        route!(deployers::strategy),
        route!(deployers::finish),
        route!(artifacts::list),
        route!(artifacts::one),
        route!(artifacts::delete),
        route!(artifacts::manifest),
        route!(artifacts::told),
    ]
}

fn of_webhooks<P: Ports + 'static>() -> Vec<Route<P>> {
    vec![
        route!(subscriptions::list),
        route!(subscriptions::one),
        route!(subscriptions::delete),
        route!(subscriptions::manifest),
        route!(subscriptions::resume),
        route!(deliveries::list),
        route!(deliveries::one),
        route!(deliveries::redeliver).once(),
    ]
}
