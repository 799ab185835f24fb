//! What steers a pipeline: `suspend`, `resume`, `hold`, `release`, `abandon`, `retry`, `abort`.

use super::read;
use crate::address::Address;
use crate::api::Api;
use crate::args::{Pipeline, PipelineName, Said};
use crate::error::CliError;
use crate::output::{one_line, say};
use crate::words::{is_revision, revision};
use keelway_wire::http::promotions::{CommandAnswer, CommandRequest, PipelineState};
use serde_json::json;

/// Sends the command, and says what has come of it.
///
/// # Errors
/// The API's refusal.
pub async fn steer(api: &Api, what: &Pipeline) -> Result<(), CliError> {
    let Some((command, of, said)) = command(what) else { return Ok(()) };
    let (message, by) = (some(&said.message), some(&said.by));
    let of = Address::of(&of.name, of.project.project.as_ref());
    let mut request = CommandRequest { command: command.into(), message, by, ..CommandRequest::default() };
    let (environment, given) = target(what);
    request.environment = environment.map(str::to_owned);
    if let Some(given) = given {
        let (state, _) = read(api, &of).await?;
        request.revision = Some(whole(&state, given)?);
    }
    let path: Vec<&str> = of.path().into_iter().chain(["commands"]).collect();
    let answer: CommandAnswer = api.post(&path, &json!(request)).await?;
    say(&told(&of, &request, &answer))
}

fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// The API's word for it, the pipeline, who asks.
fn command(what: &Pipeline) -> Option<(&'static str, &PipelineName, &Said)> {
    Some(match what {
        Pipeline::Suspend(what) => ("suspend", &what.of, &what.said),
        Pipeline::Resume(what) => ("resume", &what.of, &what.said),
        Pipeline::Hold(what) => ("hold", &what.at.of, &what.said),
        Pipeline::Release(what) => ("release", &what.at.of, &what.said),
        Pipeline::Abandon(what) => ("abandon", &what.of, &what.said),
        Pipeline::Retry(what) => ("retry", &what.at.of, &what.said),
        Pipeline::Abort(what) => ("abort", &what.at.of, &what.said),
        _ => return None,
    })
}

/// The environment and the revision it is about.
fn target(what: &Pipeline) -> (Option<&str>, Option<&str>) {
    match what {
        Pipeline::Hold(what) => (Some(&what.at.environment), what.revision.as_deref()),
        Pipeline::Release(what) | Pipeline::Retry(what) | Pipeline::Abort(what) => (Some(&what.at.environment), None),
        Pipeline::Abandon(what) => (what.environment.as_deref(), Some(&what.revision)),
        _ => (None, None),
    }
}

/// The revision that a short form means; a text that stands for none that is known is taken as it is.
fn whole(state: &PipelineState, given: &str) -> Result<String, CliError> {
    let mut known: Vec<&str> =
        state.latest_revision.as_deref().into_iter().chain(state.run.as_ref().map(|run| run.revision.as_str())).collect();
    for environment in &state.environments {
        known.extend(environment.healthy.as_ref().map(|healthy| healthy.revision.as_str()));
        known.extend(environment.promotion.as_ref().map(|promotion| promotion.revision.as_str()));
        known.extend(environment.targets.iter().filter_map(|target| target.revision.as_deref()));
    }
    known.retain(|known| is_revision(known, given));
    known.sort_unstable();
    known.dedup();
    match known.as_slice() {
        _ if known.contains(&given) => Ok(given.to_owned()),
        [] => Ok(given.to_owned()),
        [one] => Ok((*one).to_owned()),
        several => Err(CliError::Failed(format!(
            "{} revisions are like {given}: give one of {} in full",
            several.len(),
            several.join(", ")
        ))),
    }
}

/// What was asked for, and where it stands.
fn told(of: &Address, request: &CommandRequest, answer: &CommandAnswer) -> String {
    let environment = request.environment.as_deref().unwrap_or_default();
    let asked = request.revision.as_deref().map(revision);
    let promoted = answer.promotion.as_ref().map(|promotion| revision(&promotion.revision));
    let subject = |revision: Option<String>| match revision {
        Some(revision) => format!("{} {revision} to {environment} of {}", of.name, of.namespace),
        None => format!("{environment} of {of}"),
    };
    let done = match request.command.as_str() {
        "suspend" => format!("suspended: {of}: what is on its way goes on, nothing new begins"),
        "resume" => format!("resumed: {of}"),
        "hold" => format!("held: {environment} of {of}{}", asked.map(|asked| format!(" on {asked}")).unwrap_or_default()),
        "release" => format!("released: {environment} of {of}"),
        "abandon" if environment.is_empty() => {
            format!("abandoned: {} of {of} is promoted nowhere any more", asked.unwrap_or_default())
        }
        "abandon" => format!("abandoned: {}", subject(asked)),
        "retry" => format!("retried: {}", subject(promoted)),
        _ => format!("aborted: {}", subject(promoted)),
    };
    if !answer.done {
        return format!("{done}, but it is not in the state yet; see: keelway pipeline status {of}");
    }
    let message =
        answer.promotion.as_ref().filter(|_| request.command == "retry").map(|promotion| one_line(&promotion.message, 200));
    match message.filter(|message| !message.is_empty()) {
        Some(message) => format!("{done}: {message}"),
        None => done,
    }
}
