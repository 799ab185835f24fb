//! `retry`: repeats a sequence that failed.

use super::find;
use super::watch::{self, How};
use crate::api::Api;
use crate::args::{Format, Retry};
use crate::error::CliError;
use crate::output::say;
use keelway_domain::names::ProjectName;
use serde_json::{Value, json};

/// Hands the retry in; then follows it, if asked to.
///
/// # Errors
/// An unknown context, or the API's refusal.
pub async fn retry(api: &Api, what: &Retry) -> Result<(), CliError> {
    let place = find::place(api, what.project.as_ref(), &what.context).await?;
    let project = place.project(api).await?;
    let context = place.context;
    let mut body = json!({});
    let stage = what.stage.as_ref().map(ToString::to_string);
    let from = what.from.as_ref().map(ToString::to_string);
    for (member, value) in [("execution", what.execution.clone()), ("stage", stage), ("from", from)] {
        if let Some(value) = value {
            body[member] = json!(value);
        }
    }
    let answer: Value = api.post(&["sequence", &project, context.as_str(), "retry"], &body).await?;
    say(&format!("retry: {}", answer["detail"].as_str().unwrap_or("accepted")))?;
    if !what.watch {
        eprintln!("follow it: keelway watch {context} --project {project}");
        return Ok(());
    }
    let project = ProjectName::new(project).map_err(|error| CliError::Failed(format!("the API's answer is odd: {error}")))?;
    let how = How { follow: false, sure: true, watching: what.watching, format: Format::Table };
    watch::watch(api, Some(&project), &[context], how).await
}
