//! `pipeline approve`, `pipeline decline`, and `approve` and `decline` of a promotion: a person's answer to what waits for
//! approval.

use super::{Settings, read};
use crate::address::Address;
use crate::api::Api;
use crate::args::{Decide, PipelineDecide};
use crate::clock::now;
use crate::error::CliError;
use crate::key;
use crate::output::say;
use crate::pipeline::current;
use crate::words::{age, is_revision, length, revision};
use keelway_domain::time::Timestamp;
use keelway_wire::http::promotions::{ApprovalDecision, ApprovalRequest, CommandAnswer, EnvironmentState, PipelineState};
use serde_json::json;
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(500);

/// A decision about a promotion.
pub struct Decision<'a> {
    /// The pipeline.
    pub of: Address,
    /// Into which environment.
    pub environment: &'a str,
    /// Of which revision; `None`: of the one that waits.
    pub revision: Option<&'a str>,
    /// What was decided.
    pub verdict: ApprovalDecision,
    /// Why.
    pub message: &'a str,
    /// Who decides.
    pub by: &'a str,
    /// How long to wait for the revision to wait for approval.
    pub wait: Option<Duration>,
}

/// `pipeline approve`, `pipeline decline`.
///
/// # Errors
/// Nothing waits, or the API's refusal.
pub async fn named(settings: &Settings<'_>, what: &PipelineDecide, verdict: ApprovalDecision) -> Result<(), CliError> {
    let PipelineDecide { at, revision, said, wait, .. } = what;
    let decision = Decision {
        of: Address::of(&at.of.name, at.of.project.project.as_ref()),
        environment: &at.environment,
        revision: revision.as_deref(),
        verdict,
        message: &said.message,
        by: &said.by,
        wait: *wait,
    };
    let Some(file) = &what.key_file else {
        let api = settings.api()?;
        return decide(Some(&api), &api, &decision).await;
    };
    let key = key::read(file, what.key_id.as_deref(), what.installation.as_deref(), now())?;
    let sender = Api::signed(settings.api, key)?;
    // A key opens nothing but this one request: what waits is read with a token, if there is one.
    let reader = settings.token.filter(|token| !token.trim().is_empty()).map(|_| settings.api()).transpose()?;
    match decide(reader.as_ref(), &sender, &decision).await {
        Err(CliError::Api(error)) if error.status() == Some(401) => Err(CliError::Failed(format!(
            "the signature is not accepted: see that {} holds a key of the secret that the promotion into {} names, that --key-id is its \
             id, that --installation is what `keelway doctor` shows, and that this machine's clock is right",
            file.display(),
            decision.environment
        ))),
        done => done,
    }
}

/// `approve`, `decline` of a promotion.
///
/// # Errors
/// Flags for sequences; otherwise as [`named`].
pub async fn of_verb(api: &Api, what: &Decide, mut decision: Decision<'_>) -> Result<(), CliError> {
    let scope = &what.scope;
    let given = [
        (scope.stage.is_some(), "--stage"),
        (scope.service.is_some(), "--service"),
        (what.id.is_some(), "--id"),
        (what.older, "--older"),
    ];
    if let Some((_, flag)) = given.iter().find(|(given, _)| *given) {
        let text = format!(
            "{flag} narrows approvals of sequences, but {}/{} is a promotion: leave it out",
            decision.of, decision.environment
        );
        return Err(CliError::Usage(text));
    }
    decision.message = &what.message;
    decision.by = &what.by;
    decision.wait = what.wait;
    decide(Some(api), api, &decision).await
}

/// Finds the revision that is meant, shows it, and sends the decision.
async fn decide(reader: Option<&Api>, sender: &Api, what: &Decision<'_>) -> Result<(), CliError> {
    let Decision { of, environment, .. } = what;
    let (wanted, waited) = match (reader, what.revision) {
        (Some(reader), _) => awaited(reader, what).await?,
        (None, Some(revision)) => (revision.to_owned(), String::new()),
        (None, None) => {
            let text = "without a token nothing can be read: give the REVISION in full, as it stands in the request for approval";
            return Err(CliError::Usage(text.into()));
        }
    };
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let body = ApprovalRequest { decision: what.verdict, message: text(what.message), by: text(what.by) };
    let path = ["pipelines", &of.namespace, &of.name, "environments", environment, "revisions", &wanted, "approval"];
    let answer: Option<CommandAnswer> = sender.post(&path, &json!(body)).await?;
    let done = match what.verdict {
        ApprovalDecision::Approve => "approved",
        ApprovalDecision::Reject => "rejected",
        ApprovalDecision::Abandon => "abandoned",
        ApprovalDecision::Accept => "accepted",
    };
    let told = format!("{done}: {} {} to {environment} of {}{waited}", of.name, revision(&wanted), of.namespace);
    say(&format!("{told}{}", outcome(of, answer.unwrap_or_else(|| CommandAnswer { done: true, ..CommandAnswer::default() }))))
}

/// What has come of it by now.
fn outcome(of: &Address, answer: CommandAnswer) -> String {
    let url = answer.promotion.and_then(|promotion| promotion.pull_request).map(|request| format!(": {}", request.url));
    match answer.waiting_approval {
        _ if !answer.done => format!(", but it is not in the state yet; see: keelway pipeline status {of}"),
        Some(waiting) if waiting.given < waiting.needed => {
            format!(", {} of {} approvals: {} more", waiting.given, waiting.needed, waiting.needed - waiting.given)
        }
        _ => url.unwrap_or_default(),
    }
}

/// The revision that is meant and how long it waited. What nobody waits for is sent as it was given: the API says what it thinks of
/// it.
async fn awaited(api: &Api, what: &Decision<'_>) -> Result<(String, String), CliError> {
    let began = Instant::now();
    loop {
        let (state, clock) = read(api, &what.of).await?;
        let found = of_environment(&state, what.environment).map_err(CliError::Failed)?;
        if what.verdict == ApprovalDecision::Accept {
            let failed = current(&state, found).map(|promotion| promotion.revision.clone());
            let meant = what.revision.map(|given| known(&state, what.environment, given)).or(failed);
            return meant
                .map(|revision| (revision, String::new()))
                .ok_or_else(|| CliError::Failed(format!("no promotion into {} has failed", what.environment)));
        }
        let waits = found.waiting_approval.as_ref().map(|waiting| waiting.revision.clone());
        match (waits, what.revision) {
            (Some(waits), given) if given.is_none_or(|given| is_revision(&waits, given)) => {
                let waited = found.promotion.as_ref().map(|promotion| age(&promotion.since, clock)).unwrap_or_default();
                if what.revision.is_none() {
                    eprintln!("{waits} waits for approval for {} of {}", what.environment, what.of);
                }
                return Ok((waits, format!(", which waited {waited}")));
            }
            _ if what.wait.is_some_and(|wait| began.elapsed() < wait) => tokio::time::sleep(PAUSE).await,
            (_, Some(given)) => return Ok((known(&state, what.environment, given), String::new())),
            (_, None) => return Err(CliError::Failed(none(&state, what, clock))),
        }
    }
}

fn of_environment<'s>(state: &'s PipelineState, name: &str) -> Result<&'s EnvironmentState, String> {
    let names = || state.environments.iter().map(|environment| environment.name.as_str()).collect::<Vec<_>>().join(", ");
    let found = state.environments.iter().find(|environment| environment.name == name);
    found.ok_or_else(|| format!("there is no environment {name:?} in {}/{}: it has {}", state.namespace, state.name, names()))
}

/// The whole revision, if the promotion into an environment is of the one that was given.
fn known(state: &PipelineState, environment: &str, given: &str) -> String {
    let found = state.environments.iter().find(|one| one.name == environment).and_then(|one| one.promotion.as_ref());
    found.map(|promotion| promotion.revision.clone()).filter(|known| is_revision(known, given)).unwrap_or_else(|| given.to_owned())
}

/// Why nothing is there to be decided.
fn none(state: &PipelineState, what: &Decision<'_>, clock: Option<Timestamp>) -> String {
    let waited = what.wait.map(|wait| format!(" within {}", length(wait))).unwrap_or_default();
    let promotion = of_environment(state, what.environment).ok().and_then(|environment| current(state, environment));
    let stands = match promotion {
        Some(promotion) => {
            let since = age(promotion.attempted_at.as_ref().unwrap_or(&promotion.since), clock);
            let since = if since.is_empty() { since } else { format!(" for {since}") };
            format!(
                "the promotion of {} is in phase {}{since}: {}",
                revision(&promotion.revision),
                promotion.phase,
                promotion.message
            )
        }
        None if state.run.is_none() => "no revision is carried through yet".to_owned(),
        None => "no promotion into it is needed yet".to_owned(),
    };
    let of = &what.of;
    format!(
        "nothing waits for approval for {} of {of}{waited}: {stands}. What it waits for: keelway pipeline explain {of}",
        what.environment
    )
}
