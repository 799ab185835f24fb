//! What handlers share that put manifests in force.

use crate::fence::caller::Caller;
use crate::fence::input::{given, note};
use crate::fence::problem::{Answer, Refused};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use keelway_engine::projects::blob_id;

/// The longest name of a person.
const NAME: usize = 100;

/// The name of whoever applies a manifest.
pub fn by(caller: &Caller, said: Option<&String>) -> Answer<String> {
    Ok(caller.by(note("by", given(said).map(str::to_owned).as_ref(), NAME)?))
}

/// Refuses what does not fit.
pub fn fits(fits: bool, kind: &str, name: &str) -> Answer<()> {
    let too_large =
        || Refused::too_large(format!("the manifest of {kind} {name} does not fit into one item of the table: shorten it"));
    fits.then_some(()).ok_or_else(too_large)
}

/// A manifest as it was applied.
pub fn text(source: String) -> Response {
    let tag = format!("\"{}\"", blob_id(&source));
    ([(header::CONTENT_TYPE, "text/yaml; charset=utf-8".to_owned()), (header::ETAG, tag)], source).into_response()
}
