//! Shared by the handlers that put manifests in force.

use crate::fence::caller::Caller;
use crate::fence::input::{given, note};
use crate::fence::problem::{Answer, Refused};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use keelway_engine::projects::blob_id;
use keelway_wire::manifest::Finding;
use std::fmt::Display;

/// The longest name of a person.
const NAME: usize = 100;

/// The name of the author of a manifest.
pub fn by(caller: &Caller, said: Option<&String>) -> Answer<String> {
    Ok(caller.by(note("by", given(said).map(str::to_owned).as_ref(), NAME)?))
}

/// The refusal of a text, for what the findings name.
pub fn refused(findings: Vec<Finding>) -> Refused {
    let mut refused = Refused::new(StatusCode::BAD_REQUEST, "manifest refused", "nothing was stored: mend what the findings name");
    refused.problem.findings = findings;
    refused
}

/// The refusal of what does not fit.
pub fn too_large(kind: &str, name: &dyn Display) -> Refused {
    Refused::too_large(format!("the manifest of {kind} {name} does not fit into one item of the table: shorten it"))
}

/// A manifest as it was applied.
pub fn text(source: String) -> Response {
    let tag = format!("\"{}\"", blob_id(&source));
    ([(header::CONTENT_TYPE, "text/yaml; charset=utf-8".to_owned()), (header::ETAG, tag)], source).into_response()
}
