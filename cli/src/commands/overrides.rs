//! `override`: a delivery begins although the windows of its stage are closed.

use super::find;
use crate::api::Api;
use crate::args::Override;
use crate::error::CliError;
use crate::output::say;
use serde_json::{Value, json};

/// Says so to the API.
///
/// # Errors
/// An unknown context, or the API's refusal.
pub async fn override_windows(api: &Api, what: &Override) -> Result<(), CliError> {
    let place = find::place(api, what.project.as_ref(), &what.context).await?;
    let project = place.project(api).await?;
    let context = place.context;
    let mut body = json!({"reason": what.message});
    if let Some(stage) = &what.stage {
        body["stage"] = json!(stage.as_str());
    }
    if !what.by.is_empty() {
        body["by"] = json!(what.by);
    }
    let answer: Value = api.post(&["sequence", &project, context.as_str(), "override"], &body).await?;
    say(&format!("override: {}", answer["detail"].as_str().unwrap_or("accepted")))
}
