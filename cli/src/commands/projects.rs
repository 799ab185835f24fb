//! `delete project` and `delete service`: refused while something is open, which can be aborted first.

use crate::api::{Api, Body};
use crate::api_error::ApiError;
use crate::error::CliError;
use crate::output::say;
use crate::pages;
use keelway_domain::names::{ProjectName, ServiceName};
use keelway_wire::http::Control;
use keelway_wire::http::SequenceState;
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::sleep;

/// The states of sequences that are not over.
const OPEN: [&str; 5] = ["triggered", "started", "waiting", "paused", "waitingForApproval"];
/// How often it is tried whether what was aborted has ended, and the pause between.
const TRIES: usize = 60;
const PAUSE: Duration = Duration::from_millis(500);

/// Deletes a project, or a service of it, and says what remains.
///
/// # Errors
/// What is open, unless it is to be aborted; and as the API answers.
pub async fn delete(api: &Api, of: (&ProjectName, Option<&ServiceName>), abort: bool) -> Result<(), CliError> {
    let mut aborted: BTreeSet<String> = BTreeSet::new();
    for last in (0..TRIES).map(|n| n + 1 == TRIES) {
        match once(api, of).await {
            Ok(told) => return say(told["message"].as_str().unwrap_or("deleted")),
            // What keeps it from being deleted may be something else, which is not ours to end.
            Err(error) if !abort || last || error.status() != Some(409) => return Err(error.into()),
            Err(error) => {
                let open = open(api, of).await?;
                if open.is_empty() && aborted.is_empty() {
                    return Err(error.into());
                }
                for context in open.difference(&aborted.clone()) {
                    let body = Control { state: "abort".into(), stage: String::new() };
                    let _: Value = api.post(&["sequence", of.0.as_str(), context, "control"], &json!(body)).await?;
                    eprintln!("aborted: context {context}");
                    aborted.insert(context.clone());
                }
            }
        }
        sleep(PAUSE).await;
    }
    Ok(())
}

async fn once(api: &Api, (project, service): (&ProjectName, Option<&ServiceName>)) -> Result<Value, ApiError> {
    let mut path = vec!["project", project.as_str()];
    path.extend(service.into_iter().flat_map(|service| ["service", service.as_str()]));
    // A second request would find nothing, and say so.
    api.clone().without_retries().call(Method::DELETE, &path, &[], Body::None).await
}

/// The contexts with something open.
async fn open(api: &Api, (project, service): (&ProjectName, Option<&ServiceName>)) -> Result<BTreeSet<String>, CliError> {
    let mut found = BTreeSet::new();
    for state in OPEN {
        let states: Vec<SequenceState> = pages::all(api, &["sequence", project.as_str()], &[("state", state)]).await?;
        let meant = states.into_iter().filter(|one| service.is_none_or(|service| one.service == service.as_str()));
        found.extend(meant.map(|one| one.shkeptncontext));
    }
    Ok(found)
}
