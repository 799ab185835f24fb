//! The API as an OpenAPI 3.1 document: `GET /v1/openapi.json`.
//!
//! Handlers and bodies are described where they are written (`#[utoipa::path]`, `ToSchema`, `IntoParams`).
//! [`complete`] adds what follows from the path and from what routes need, so that nobody writes it for each of them.

mod bodies;
mod complete;
mod words;

pub use bodies::*;

use crate::allowed::{Allowed, scope};
use crate::{Api, routes};
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use keelway_engine::checks::Rules;
use keelway_engine::ports::Ports;
use keelway_engine::secrets::Secrets;
use serde_json::Value;
use std::sync::OnceLock;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;

/// What it says before any route.
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
    components(schemas(crate::problem::Body)))]
struct About;

/// The document, which is the same whatever the ports are. It is made once, when it is first asked for: no other request pays for it.
static DOCUMENT: OnceLock<String> = OnceLock::new();

fn document<P: Ports + Secrets + Rules + 'static>() -> Value {
    let described = OpenApiRouter::with_openapi(About::openapi());
    let described = routes::all::<P>().iter().fold(described, |described, route| route.describe(described));
    complete::complete(serde_json::to_value(described.into_openapi()).unwrap_or_default(), &crate::listed::<P>())
}

/// This API as an OpenAPI 3.1 document.
#[utoipa::path(get, path = "/v1/openapi.json", tag = "access", responses((status = 200, body = Value)))]
pub async fn serve<P: Ports + Secrets + Rules + 'static>(
    _: Allowed<scope::AnyToken>,
    State(_): State<Api<P>>,
) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], DOCUMENT.get_or_init(|| document::<P>().to_string()).as_str())
}
