//! Deployments: what is deployed, what is on its way, and how people steer it.

mod diff;
mod follow;
mod history;
mod list;
mod rollback;
mod triggers;

pub use diff::{diff, lines};
pub use list::{config, everywhere};
pub use rollback::rollback;
pub use triggers::triggers;

use crate::address::Address;
use crate::api::Api;
use crate::args::{ConfigName, Numbered, Rollout, RolloutControl, RolloutLatest};
use crate::error::CliError;
use crate::output::{one_line, say};
use keelway_wire::http::deployments::{ConfigState, InstantiateRequest, SteerAnswer, SteerRequest, VersionState};
use serde_json::json;
use std::process::ExitCode;

/// The config in paths: `<namespace>:<name>`.
pub fn id(of: &Address) -> String {
    format!("{}:{}", of.namespace, of.name)
}

fn address(of: &ConfigName) -> Address {
    Address::of(&of.name, of.project.project.as_ref())
}

fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// Does what was asked for.
///
/// # Errors
/// As the API answers.
pub async fn rollout(api: &Api, what: &Rollout) -> Result<ExitCode, CliError> {
    match what {
        Rollout::Latest(what) => return latest(api, what).await,
        Rollout::Status(what) => return follow::status(api, what).await,
        Rollout::History(what) => history::history(api, what).await?,
        Rollout::Undo(what) => rollback::undo(api, what).await?,
        Rollout::Cancel(what) => steer(api, &what.control, "cancel", what.and_what_waits).await?,
        Rollout::Retry(what) => steer(api, what, "retry", false).await?,
        Rollout::Pause(what) => steer(api, what, "pause", false).await?,
        Rollout::Resume(what) => steer(api, what, "resume", false).await?,
        Rollout::Proceed(what) => steer(api, what, "proceed", false).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn latest(api: &Api, what: &RolloutLatest) -> Result<ExitCode, CliError> {
    let of = address(&what.of);
    let request = InstantiateRequest {
        latest: !what.again,
        force: true,
        image: what.image.clone(),
        supersede: what.supersede,
        resume: what.resume,
        resume_triggers: what.resume_triggers,
        suspend_triggers: what.suspend_triggers,
        by: some(&what.said.by),
        message: some(&what.said.message),
        ..InstantiateRequest::default()
    };
    let answer: SteerAnswer = api.post(&["deploymentConfigs", &id(&of), "instantiate"], &json!(request)).await?;
    let version = answer.deployment.as_ref().filter(|_| answer.done);
    match version {
        Some(version) => say(&format!("{}: {}", version.name, version.message))?,
        None => say(&format!("asked for: it is not in the state yet; see: keelway rollout status {of}"))?,
    }
    if !what.watch {
        if version.is_some() {
            eprintln!("follow it: keelway rollout status {of}");
        }
        return Ok(ExitCode::SUCCESS);
    }
    follow::to_its_end(api, &of, version.map(|version| version.version), what.timeout).await
}

/// The number of a version that a command names.
fn number(of: &Address, named: Option<&Numbered>) -> Result<Option<u64>, CliError> {
    named.map(|named| named.of(&of.namespace, &of.name)).transpose()
}

async fn steer(api: &Api, what: &RolloutControl, command: &str, and_what_waits: bool) -> Result<(), CliError> {
    let of = address(&what.of);
    let request = SteerRequest { by: some(&what.said.by), message: some(&what.said.message), and_what_waits };
    let answer: SteerAnswer = api.post(&["deploymentConfigs", &id(&of), command], &json!(request)).await?;
    if let Some(nothing) = &answer.nothing {
        return say(nothing);
    }
    let name = answer.deployment.as_ref().map_or_else(|| of.to_string(), |version| version.name.clone());
    let done = match command {
        "cancel" => match answer.deployment.as_ref().is_some_and(VersionState::is_over) {
            true => format!("cancelled: {name}"),
            false => format!("cancelling: {name}: its deployer has 10 minutes to stop"),
        },
        "retry" => format!("retried: {name}"),
        "pause" => format!("paused: {of}: nothing new is deployed until `keelway rollout resume {of}`"),
        "resume" => format!("resumed: {of}"),
        _ => format!("told to go on: {name}"),
    };
    if let Some(follows) = &answer.follows {
        eprintln!("{}", one_line(&follows.replace("`andWhatWaits`", "`--and-what-waits`"), 500));
    }
    match answer.done {
        true => say(&done),
        false => say(&format!("{done}, but it is not in the state yet; see: keelway rollout status {of}")),
    }
}

/// How a config is.
///
/// # Errors
/// As the API answers.
async fn read(api: &Api, of: &Address) -> Result<ConfigState, CliError> {
    Ok(api.get(&["deploymentConfigs", &id(of), "status"], &[]).await?)
}

/// A version with its snapshot.
///
/// # Errors
/// As the API answers.
async fn read_version(api: &Api, of: &Address, n: u64) -> Result<VersionState, CliError> {
    Ok(api.get(&["deployments", &format!("{}-{n}", id(of))], &[]).await?)
}
