//! `diff`: what differs between two versions.

use super::read_version;
use crate::address::Address;
use crate::api::Api;
use crate::args::{Diff, Place};
use crate::error::CliError;
use crate::output::{one_line, say, say_data};
use keelway_domain::diff::{FieldChange, diff as compare};
use keelway_domain::names::ProjectName;
use serde_json::{Value, json};
use std::process::ExitCode;

/// Compares what two versions deploy.
///
/// # Errors
/// As the API answers.
pub async fn diff(api: &Api, what: &Diff) -> Result<ExitCode, CliError> {
    let (Some(one), Some(other)) = (&what.one, &what.other) else {
        return Err(CliError::Usage("name two versions, like carts-3 carts-4".into()));
    };
    let project = what.project.project.as_ref();
    let (one, other) = (read(api, one, project).await?, read(api, other, project).await?);
    let changes = compare(&one, &other);
    let format = what.output.format;
    if format.is_data() {
        say_data(&json!({"items": changes}), format)?;
    } else if changes.is_empty() {
        eprintln!("they deploy the same");
    }
    if !format.is_data() {
        lines(&changes).iter().try_for_each(|line| say(line))?;
    }
    let differ = what.exit_code && !changes.is_empty();
    Ok(if differ { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// What a version deploys, without its name.
async fn read(api: &Api, (config, n): &(Place, u64), project: Option<&ProjectName>) -> Result<Value, CliError> {
    let mut snapshot = read_version(api, &Address::of(config, project), *n).await?.snapshot;
    if let Some(metadata) = snapshot.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|name, _| name != "name" && name != "namespace");
    }
    Ok(snapshot)
}

/// Changes in lines.
pub fn lines(changes: &[FieldChange]) -> Vec<String> {
    let shown = |value: &Option<Value>| match value {
        None => "(absent)".to_owned(),
        Some(Value::String(text)) => one_line(&format!("{text:?}"), 200),
        Some(value) => one_line(&value.to_string(), 200),
    };
    changes.iter().map(|one| format!("{}: {} -> {}", one.field, shown(&one.was), shown(&one.becomes))).collect()
}
