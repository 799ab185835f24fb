//! The OpenAPI document of this API.

use crate::Api;
use crate::fence::allowed::{Allowed, scope};
use crate::fence::openapi;
use axum::http::header;
use axum::response::IntoResponse;
use std::sync::OnceLock;

/// The document. It is made on the first request for it, so that no other request pays for it.
static DOCUMENT: OnceLock<String> = OnceLock::new();

/// This API as an OpenAPI 3.1 document.
#[utoipa::path(get, path = "/v1/openapi.json", tag = "access", responses((status = 200, body = Value)))]
pub(crate) async fn serve(_: Allowed<scope::AnyToken>, _: Api) -> impl IntoResponse {
    (
        [(header::CONTENT_TYPE, "application/json")],
        DOCUMENT.get_or_init(|| openapi::document(&crate::routes()).to_string()).as_str(),
    )
}
