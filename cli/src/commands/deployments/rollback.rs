//! `rollback` and `rollout undo`.

use super::diff::lines;
use super::{address, id, number, some};
use crate::address::Address;
use crate::api::Api;
use crate::args::{Format, Rollback, RolloutUndo};
use crate::error::CliError;
use crate::output::{one_line, say, say_data};
use crate::words::count;
use keelway_wire::http::deployments::{OneRollback, RollbackAnswer, RollbackRequest, RollbacksAnswer, RollbacksRequest};
use serde_json::{Value, json};

/// `rollback`
///
/// # Errors
/// The API's refusal; also when one of several configs was refused after all.
pub async fn rollback(api: &Api, what: &Rollback) -> Result<(), CliError> {
    let all: Vec<Address> = what.names.iter().map(|name| Address::of(name, what.project.project.as_ref())).collect();
    let (config, application) = (what.application_only.then_some(false), what.config_only.then_some(false));
    let (notes, by) = (some(&what.said.message), some(&what.said.by));
    if let [of] = all.as_slice() {
        let (dry_run, allow_failed, by_steps, again) = (what.dry_run, what.allow_failed, what.by_steps, what.again);
        let release = number(of, what.to.as_ref())?.map_or(Value::Null, Value::from);
        let more = RollbackRequest { dry_run, allow_failed, by_steps, again, ..RollbackRequest::default() };
        let request = RollbackRequest { release, config, application, notes, by, ..more };
        let answer = one(api, of, &request).await.map_err(|error| or_service(error, of))?;
        return if what.output.format.is_data() { say_data(&answer, what.output.format) } else { tell(&answer) };
    }
    if what.to.is_some() {
        return Err(CliError::Usage(
            "--to names a version of one config, but several are named: roll them back one at a time, or leave it out".into(),
        ));
    }
    let rollbacks = all.iter().map(|of| OneRollback {
        id: id(of),
        config,
        application,
        allow_failed: what.allow_failed,
        by_steps: what.by_steps,
        again: what.again,
        ..OneRollback::default()
    });
    let request = RollbacksRequest { rollbacks: rollbacks.collect(), notes, dry_run: what.dry_run, by };
    let answer: RollbacksAnswer = api.post(&["rollbacks"], &json!(request)).await?;
    several(&answer, what.output.format)
}

/// `rollout undo`: as OpenShift's, it leaves the strategy, the triggers and the labels as they are.
///
/// # Errors
/// The API's refusal.
pub async fn undo(api: &Api, what: &RolloutUndo) -> Result<(), CliError> {
    let of = address(&what.of);
    let release = number(&of, what.to.as_ref())?.map_or(Value::Null, Value::from);
    let (notes, by) = (some(&what.said.message), some(&what.said.by));
    let request = RollbackRequest { release, config: Some(false), notes, dry_run: what.dry_run, by, ..RollbackRequest::default() };
    tell(&one(api, &of, &request).await?)
}

/// The same word may name a service.
fn or_service(error: CliError, of: &Address) -> CliError {
    match error {
        CliError::Api(refused) if refused.status() == Some(404) => CliError::Failed(format!(
            "{refused}; a service that sequences deliver goes back in a stage: keelway rollback {of} --stage STAGE"
        )),
        other => other,
    }
}

async fn one(api: &Api, of: &Address, request: &RollbackRequest) -> Result<RollbackAnswer, CliError> {
    Ok(api.post(&["deploymentConfigs", &id(of), "rollback"], &json!(request)).await?)
}

fn several(answer: &RollbacksAnswer, format: Format) -> Result<(), CliError> {
    if format.is_data() {
        say_data(answer, format)?;
    } else {
        answer.results.iter().try_for_each(tell)?;
    }
    let refused = answer.results.iter().filter(|one| !one.errors.is_empty()).count();
    if refused > 0 {
        let all = count(answer.results.len(), "config");
        return Err(CliError::Failed(format!(
            "{refused} of {all} changed meanwhile and did not go back: look at them, and try again"
        )));
    }
    Ok(())
}

fn tell(answer: &RollbackAnswer) -> Result<(), CliError> {
    let of = format!("{}/{}", answer.namespace, answer.name);
    let release = format!("{}-{}", answer.name, answer.resolved_release);
    let reason = if answer.reason.is_empty() { String::new() } else { format!(" ({})", answer.reason) };
    for error in &answer.errors {
        say(&format!("{of}: not rolled back: {}", one_line(&error.message, 500)))?;
    }
    if answer.dry_run {
        say(&format!("{of} would go back to {release}{reason}:"))?;
        let changes = lines(&answer.changes);
        if changes.is_empty() {
            say("  nothing changes; it would be deployed again")?;
        }
        changes.iter().try_for_each(|line| say(&format!("  {line}")))?;
    } else if let Some(version) = answer.deployment.as_ref().filter(|_| answer.done) {
        say(&format!("{of}: {} rolls back to {release}{reason}", version.name))?;
    } else if answer.errors.is_empty() {
        say(&format!("{of}: asked to go back to {release}{reason}; it is not in the state yet"))?;
    }
    answer.warnings.iter().for_each(|warning| eprintln!("warning: {}", one_line(warning, 500)));
    if !answer.dry_run && answer.errors.is_empty() {
        eprintln!("no trigger fires until: keelway set triggers {of} --resume");
        eprintln!("follow it: keelway rollout status {of}");
    }
    Ok(())
}
