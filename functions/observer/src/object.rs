//! The path of an object.

use crate::Failure;
use keelway_domain::promotions::definition::App;

/// A segment of a path. Names of Kubernetes need no encoding; other texts are refused, because they could form another path.
pub fn segment(text: &str) -> Result<&str, Failure> {
    let fits = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte));
    if fits && !matches!(text, "" | "." | "..") {
        return Ok(text);
    }
    Err(Failure::Object(format!("{text:?} is not a name that Kubernetes has: correct it in the pipeline")))
}

/// The path of an object.
pub fn path(app: &App, plural: &str, namespace: &str) -> Result<String, Failure> {
    let base = if app.api_version.contains('/') { "apis" } else { "api" };
    // Discovery has checked the version.
    let (version, plural, namespace, name) = (&app.api_version, segment(plural)?, segment(namespace)?, segment(&app.name)?);
    Ok(format!("/{base}/{version}/namespaces/{namespace}/{plural}/{name}"))
}
