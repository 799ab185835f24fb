//! The versions of this installation, and the check of a token.

use crate::Api;
use crate::fence::allowed::{Allowed, scope};
use crate::fence::bodies::Empty;
use axum::Json;
use keelway_wire::http::Metadata;

/// The version of Keptn whose API this follows.
const KEPTN: &str = "1.4.5";

/// The versions of this installation, and what it is called.
#[utoipa::path(
    get,
    path = "/v1/metadata",
    tag = "access",
    responses((status = 200, body = Metadata))
)]
pub(crate) async fn metadata(_: Allowed<scope::AnyToken>, api: Api) -> Json<Metadata> {
    Json(Metadata {
        keptnversion: KEPTN.into(),
        // Otherwise Keptn's command line asks for an upstream repository.
        automaticprovisioning: true,
        version: env!("CARGO_PKG_VERSION").into(),
        stack: api.settings().stack.clone(),
        installation: api.installation(),
    })
}

/// Says whether the token is valid.
#[utoipa::path(
    post,
    path = "/v1/auth",
    tag = "access",
    responses((status = 200, body = crate::fence::bodies::Empty))
)]
pub(crate) async fn auth(_: Allowed<scope::AnyToken>) -> Json<Empty> {
    Json(Empty {})
}
