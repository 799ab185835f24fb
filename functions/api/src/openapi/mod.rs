//! The API as an OpenAPI 3.1 document: `GET /v1/openapi.json`.
//!
//! Handlers and bodies are described where they are written (`#[utoipa::path]`, `ToSchema`, `IntoParams`); [`Operations`] lists the handlers.
//! [`complete`] adds what follows from the path and from the table of routes, so that nobody writes it for each of them.

mod answers;
mod bodies;
mod complete;
mod words;

pub use bodies::*;

use axum::http::header;
use axum::response::IntoResponse;
use serde_json::Value;
use std::sync::LazyLock;
use utoipa::OpenApi;

/// Every handler.
#[derive(OpenApi)]
#[openapi(
    info(title = "Keelway", description = words::ABOUT, license(name = "Apache-2.0", identifier = "Apache-2.0")),
    tags(
        (name = "events", description = "CloudEvents: sending them, and the history of contexts and projects."),
        (name = "sequences", description = "What runs, what waits, and how people steer it."),
        (name = "projects", description = "Projects with their stages and services, and which version runs where."),
        (name = "definitions", description = "Manifests as they are applied, and the revisions of shipyards."),
        (name = "resources", description = "Files that executors read."),
        (name = "executors", description = "Executors that register themselves as those of Keptn do, and what they log."),
        (name = "pipelines", description = "Promotions: pipelines, what runs at their targets, clusters and git hosts."),
        (name = "deployments", description = "Deployment configs, their versions, and deployers."),
        (name = "webhooks", description = "Webhook subscriptions, and what was delivered to them."),
        (name = "operations", description = "Dead letters, and input that could not be used."),
        (name = "access", description = "Tokens, the audit, and this installation.")
    ),
    components(schemas(crate::problem::Body)),
    paths(
        serve,
        crate::accept::accept,
        crate::metadata::metadata,
        crate::metadata::auth,
        crate::tokens::whoami,
        crate::tokens::list,
        crate::tokens::create,
        crate::tokens::one,
        crate::tokens::revoke,
        crate::tokens::rotate,
        crate::audit::list,
        crate::events::list,
        crate::events::triggered,
        crate::sequences::list,
        crate::sequences::executions,
        crate::sequences::control,
        crate::retry::retry,
        crate::apply::apply,
        crate::apply::stored::look,
        crate::projects::list,
        crate::projects::one,
        crate::projects::shipyard,
        crate::projects::stages,
        crate::projects::stage,
        crate::projects::services,
        crate::projects::stage_services,
        crate::projects::service,
        crate::administration::create,
        crate::administration::update,
        crate::administration::delete,
        crate::administration::create_service,
        crate::administration::delete_service,
        crate::administration::secrets,
        crate::revisions::list,
        crate::revisions::one,
        crate::revisions::compare,
        crate::revisions::roll_back,
        crate::environments::list,
        crate::environments::queue,
        crate::evaluations::evaluate,
        crate::approvals::decide,
        crate::resources::list,
        crate::resources::create,
        crate::resources::replace,
        crate::resources::one,
        crate::resources::replace_one,
        crate::resources::delete,
        crate::integrations::list,
        crate::integrations::register,
        crate::integrations::unregister,
        crate::integrations::ping,
        crate::integrations::subscriptions,
        crate::integrations::subscribe,
        crate::integrations::subscription,
        crate::integrations::replace,
        crate::integrations::unsubscribe,
        crate::integrations::log,
        crate::integrations::logged,
        crate::integrations::delete_logged,
        crate::checks::look,
        crate::checks::send,
        crate::checks::arrived,
        crate::schedules::list,
        crate::schedules::one,
        crate::schedules::manifest,
        crate::schedules::delete,
        crate::overrides::override_windows,
        crate::subscriptions::list,
        crate::subscriptions::one,
        crate::subscriptions::manifest,
        crate::subscriptions::resume,
        crate::subscriptions::delete,
        crate::deliveries::list,
        crate::deliveries::one,
        crate::deliveries::redeliver,
        crate::operations::list,
        crate::operations::one,
        crate::operations::redrive,
        crate::operations::drop_one,
        crate::operations::of_day,
        crate::pipelines::list,
        crate::pipelines::one,
        crate::pipelines::delete,
        crate::pipelines::manifest,
        crate::pipelines::history,
        crate::pipelines::explain,
        crate::pipelines::pull_requests,
        crate::pipeline_commands::command,
        crate::pipeline_commands::approval,
        crate::observations::report,
        crate::webhooks::wake,
        crate::registry::clusters,
        crate::registry::cluster_one,
        crate::registry::cluster_manifest,
        crate::registry::cluster_observe,
        crate::registry::cluster_delete,
        crate::registry::git_hosts,
        crate::registry::git_host_one,
        crate::registry::git_host_manifest,
        crate::registry::git_host_delete,
        crate::deployments::configs::list,
        crate::deployments::configs::one,
        crate::deployments::configs::delete,
        crate::deployments::configs::manifest,
        crate::deployments::configs::status,
        crate::deployments::write::create,
        crate::deployments::write::put,
        crate::deployments::history::of_config,
        crate::deployments::history::audit,
        crate::deployments::history::everywhere,
        crate::deployments::history::one,
        crate::deployments::commands::instantiate,
        crate::deployments::commands::triggers,
        crate::deployments::commands::steer,
        crate::deployments::rollbacks::one,
        crate::deployments::rollbacks::several,
        crate::deployments::generate::generate,
        crate::deployments::deployers::claim,
        crate::deployments::deployers::heartbeat,
        crate::deployments::deployers::strategy,
        crate::deployments::deployers::finish,
        crate::deployments::artifacts::list,
        crate::deployments::artifacts::one,
        crate::deployments::artifacts::delete,
        crate::deployments::artifacts::manifest,
        crate::deployments::artifacts::told,
    )
)]
struct Operations;

/// The document is made once, when it is first asked for: no other request pays for it.
static DOCUMENT: LazyLock<String> = LazyLock::new(|| document().to_string());

fn document() -> Value {
    complete::complete(serde_json::to_value(Operations::openapi()).unwrap_or_default())
}

/// This API as an OpenAPI 3.1 document.
#[utoipa::path(get, path = "/v1/openapi.json", tag = "access", responses((status = 200, body = Value)))]
pub async fn serve() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], DOCUMENT.as_str())
}
