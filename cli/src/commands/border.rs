//! What stored manifests name outside of their namespace and may not, and what helps. `doctor` tells it.

use crate::api::Api;
use crate::api_error::ApiError;
use crate::{kinds, pages};
use keelway_wire::http::BorderGap;

/// Everything that is missing in the projects that this token administers.
///
/// # Errors
/// As the API answers.
pub async fn gaps(api: &Api) -> Result<Vec<BorderGap>, ApiError> {
    pages::all(api, &["border"], &[]).await
}

/// One line: which manifest, which field, what is missing, who may grant it, and what to do then.
pub fn line(gap: &BorderGap) -> String {
    let BorderGap { kind, namespace, name, field, missing, detail, project, consent } = gap;
    let of = if kind == "Shipyard" { format!("of {namespace}") } else { format!("{namespace}/{name}") };
    let entry = || serde_json::to_string(consent).unwrap_or_default();
    let help = match missing.as_str() {
        "consent" => format!("the entry {} would do: keelway apply -f <manifest of Project {project}>", entry()),
        "policy" => format!("with a token of theirs: keelway apply -f <manifest of Project {project}>"),
        "vouch" => {
            format!(
                "with a token of theirs: keelway get {} {name} -p {namespace} -o yaml | keelway apply -f -",
                kinds::plural(kind).unwrap_or("deploymentconfigs")
            )
        }
        _ => format!("then keelway apply -f <manifest of {kind} {of}>"),
    };
    format!("{kind} {of}, {field}: {detail}; {help}")
}
