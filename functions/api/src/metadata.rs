//! The versions of this installation, and whether a token is valid.

use crate::Api;
use axum::Json;
use axum::extract::State;
use keelway_engine::ports::Ports;
use keelway_wire::http::Metadata;
use serde_json::{Value, json};

/// The version of Keptn whose API this follows.
const KEPTN: &str = "1.4.5";

/// `GET /v1/metadata`
pub async fn metadata<P: Ports + 'static>(State(api): State<Api<P>>) -> Json<Metadata> {
    Json(Metadata {
        keptnversion: KEPTN.into(),
        // Keptn's command line would otherwise ask for an upstream repository.
        automaticprovisioning: true,
        version: env!("CARGO_PKG_VERSION").into(),
        stack: api.settings().stack.clone(),
    })
}

/// `POST /v1/auth`: a request that gets here has a valid token.
pub async fn auth() -> Json<Value> {
    Json(json!({}))
}
