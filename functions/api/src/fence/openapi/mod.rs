//! The API as an OpenAPI 3.1 document: `GET /v1/openapi.json`.
//!
//! Handlers and bodies are described where they are written (`#[utoipa::path]`, `ToSchema`, `IntoParams`).
//! [`complete`] adds what follows from the path and from what routes need, so that nobody writes it for each of them.

mod complete;
mod words;

use crate::fence::allowed::Listed;
use crate::fence::route::Route;
use serde_json::Value;
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
    components(schemas(crate::fence::problem::Body)))]
struct About;

/// The document about these routes.
pub fn document(routes: &[Route]) -> Value {
    let described = OpenApiRouter::with_openapi(About::openapi());
    let described = routes.iter().fold(described, |described, route| route.describe(described));
    let listed: Vec<Listed> = routes.iter().flat_map(Route::listed).collect();
    complete::complete(serde_json::to_value(described.into_openapi()).unwrap_or_default(), &listed)
}
