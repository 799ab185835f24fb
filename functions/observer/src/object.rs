//! Turns an answer into a fact.

use crate::Failure;
use crate::connection::Found;
use keelway_domain::promotions::definition::{App, Target};
use keelway_domain::promotions::observe::Observed;
use keelway_domain::time::Timestamp;
use keelway_wire::observation;
use serde_json::{Map, Value};

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

/// The fact about a target.
pub fn observed(app: &App, target: &Target, found: Found, at: Timestamp) -> Result<Observed, Failure> {
    let App { api_version, kind, name } = app;
    let what = format!("{kind} {name} in namespace {}", target.namespace);
    let nonsense = |why: String| Failure::Object(format!("the API server's answer about {what} makes no sense: {why}"));
    let Found::Object(json) = found else { return Err(Failure::Object(format!("there is no {what}"))) };
    let Value::Object(mut object) = json else { return Err(nonsense("it is not an object".into())) };
    let Some(metadata) = object.get("metadata").and_then(Value::as_object) else {
        return Err(nonsense("it has no metadata".into()));
    };
    let says = |map: &Map<String, Value>, field: &str| map.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let expected = [
        ("apiVersion", says(&object, "apiVersion"), api_version),
        ("kind", says(&object, "kind"), kind),
        ("metadata.name", says(metadata, "name"), name),
        ("metadata.namespace", says(metadata, "namespace"), &target.namespace),
    ];
    if let Some((field, is, wanted)) = expected.into_iter().find(|(_, is, wanted)| is != *wanted) {
        let is: String = is.chars().take(100).collect();
        return Err(nonsense(format!("its {field} is {is:?} instead of {wanted:?}")));
    }
    // In a report this member names the cluster; in an object it may mean anything.
    object.remove("cluster");
    let fact = observation::one(&Value::Object(object), None, at)
        .map_err(|wrong| nonsense(wrong.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")))?;
    let observed = fact.observed;
    if observed.ready && observed.revision.is_none() {
        let why = format!("{what} is Ready, but names no revision in status.lastAppliedRevision or status.history");
        return Err(Failure::Object(why));
    }
    Ok(observed)
}
