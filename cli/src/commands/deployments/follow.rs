//! `rollout status`: follows a version to its end, a line for each news; the exit code says how it ended.

use super::{address, number, read, read_version};
use crate::address::Address;
use crate::api::Api;
use crate::args::{Format, RolloutStatus};
use crate::board;
use crate::delivery::Hint;
use crate::error::CliError;
use crate::output::{self, one_line, say, say_data};
use crate::pipeline::due;
use crate::terminal::look;
use crate::words::{age, length, span, with_short_contexts};
use keelway_domain::time::Timestamp;
use keelway_wire::http::deployments::{ConfigState, VersionState};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Between two looks: as short as this after news, growing to as long as that without.
const BUSY: Duration = Duration::from_millis(300);
const IDLE: Duration = Duration::from_secs(2);
/// An API that does not answer for this long is given up.
const SILENT: Duration = Duration::from_secs(60);

/// `rollout status`
///
/// # Errors
/// An unknown config or version, the API, a time limit.
pub async fn status(api: &Api, what: &RolloutStatus) -> Result<ExitCode, CliError> {
    let of = address(&what.of);
    let format = what.output.format;
    let wanted = number(&of, what.revision.as_ref())?;
    if !what.no_watch && !format.is_data() {
        return to_its_end(api, &of, wanted, what.timeout).await;
    }
    if !what.no_watch {
        let mut follower = Follower { api, of: &of, n: wanted, told: None, quiet: true };
        follower.within(what.timeout).await?;
    }
    let state = read(api, &of).await?;
    let version = match wanted {
        Some(n) => Some(read_version(api, &of, n).await?),
        None => state.latest.clone(),
    };
    match format {
        Format::Json | Format::Yaml => match (wanted, &version) {
            (Some(_), Some(version)) => say_data(version, format)?,
            _ => say_data(&state, format)?,
        },
        Format::Table | Format::Wide | Format::Name => {
            lines(&state, version.as_ref()).iter().try_for_each(|line| say(line))?;
            output::hint(&help(version.as_ref(), Timestamp::parse(&state.now)));
        }
    }
    Ok(code(version.as_ref()))
}

/// Follows a version to its end; `None`: the latest one, or the first.
///
/// # Errors
/// As [`status`].
pub async fn to_its_end(api: &Api, of: &Address, n: Option<u64>, limit: Option<Duration>) -> Result<ExitCode, CliError> {
    let mut follower = Follower { api, of, n, told: None, quiet: false };
    let version = follower.within(limit).await?;
    Ok(code(Some(&version)))
}

fn code(version: Option<&VersionState>) -> ExitCode {
    if version.is_some_and(|version| version.status == "Failed") { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

struct Follower<'a> {
    api: &'a Api,
    of: &'a Address,
    /// The version, as soon as there is one.
    n: Option<u64>,
    /// The last line.
    told: Option<String>,
    quiet: bool,
}

impl Follower<'_> {
    async fn within(&mut self, limit: Option<Duration>) -> Result<VersionState, CliError> {
        let of = self.of.clone();
        match limit {
            None => self.until_over().await,
            Some(limit) => tokio::time::timeout(limit, self.until_over()).await.unwrap_or_else(|_| {
                let limit = length(limit);
                Err(CliError::Failed(format!(
                    "not over after {limit}: keelway rollout status {of} follows it on, or give a longer --timeout"
                )))
            }),
        }
    }

    async fn until_over(&mut self) -> Result<VersionState, CliError> {
        let (mut answered, mut pause) = (Instant::now(), BUSY);
        loop {
            match self.look().await {
                Ok((line, version, now)) => {
                    answered = Instant::now();
                    let news = self.told.as_ref() != Some(&line);
                    pause = if news { BUSY } else { (pause * 3 / 2).min(IDLE) };
                    if news && !self.quiet {
                        say(&line)?;
                        output::hint(&help(version.as_ref(), now));
                    }
                    self.told = Some(line);
                    if let Some(version) = version.filter(VersionState::is_over) {
                        return Ok(version);
                    }
                }
                Err(CliError::Api(error)) if error.is_transient() && answered.elapsed() < SILENT => {
                    eprintln!("warning: {error}; trying again");
                    pause = IDLE;
                }
                Err(error) => return Err(error),
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// What there is to say, and the version if there is one.
    async fn look(&mut self) -> Result<(String, Option<VersionState>, Option<Timestamp>), CliError> {
        let state = read(self.api, self.of).await?;
        let now = Timestamp::parse(&state.now);
        if self.n.is_none() && next_is_due(&state) {
            return Ok((before_the_next(&state), None, now));
        }
        let wanted = *self.n.get_or_insert(state.pending_version.unwrap_or(state.latest_version));
        if wanted == 0 {
            // There is none yet: the first one is followed.
            self.n = None;
            return Ok((none_yet(&state)?, None, now));
        }
        let version = match state.latest.clone().filter(|latest| latest.version == wanted) {
            Some(latest) => latest,
            None => read_version(self.api, self.of, wanted).await?,
        };
        let line = if state.pending_version == Some(wanted) {
            format!("{} waits until #{} has ended", version.name, state.latest_version)
        } else {
            line(&version)
        };
        Ok((line, Some(version), now))
    }
}

/// Whether a change is about to become a version that has no number yet: the latest one is not what it asks for.
fn next_is_due(state: &ConfigState) -> bool {
    state.pending_version.is_none() && ["Settling", "AwaitingCancellation"].contains(&state.reason.as_str())
}

/// What the next version waits for; and the version that runs meanwhile.
fn before_the_next(state: &ConfigState) -> String {
    let waits = format!("deployment config {:?} waiting: {}", state.name, state.message);
    match state.latest.as_ref().filter(|latest| !latest.is_over()) {
        Some(running) => format!("{waits}; {}", line(running)),
        None => waits,
    }
}

/// Why there is no version yet.
fn none_yet(state: &ConfigState) -> Result<String, CliError> {
    let name = &state.name;
    if state.triggers.iter().all(|trigger| trigger.ty == "Manual") {
        let of = format!("{}/{name}", state.namespace);
        return Err(CliError::Failed(format!(
            "deployment config {name:?} waiting on manual update (use `keelway rollout latest {of}`)"
        )));
    }
    match state.triggers.iter().any(|trigger| trigger.ty == "ImageChange") {
        true => Ok(format!("deployment config {name:?} waiting on image update: {}", state.message)),
        false => Ok(format!("deployment config {name:?} waiting: {}", state.message)),
    }
}

/// The command that would help a version that does not go on by itself.
fn help(version: Option<&VersionState>, now: Option<Timestamp>) -> Vec<String> {
    let Some(version) = version else { return vec![] };
    let of = format!("{}/{}", version.namespace, version.config);
    let (command, about) = match (version.status.as_str(), version.desired.as_deref()) {
        // Keelway starts the deployer of others.
        ("New", Some("run")) if !version.starts => {
            let left = version.deadline.as_deref().and_then(Timestamp::parse).zip(now).map(|(until, now)| span((until - now).0));
            (
                format!("keelway deployer --config {of} -- COMMAND"),
                left.map(|left| format!("given up in {left}")).unwrap_or_default(),
            )
        }
        _ if version.holds => (format!("keelway rollout proceed {of}"), format!("{} holds", version.name)),
        _ => return vec![],
    };
    board::hints(&[Hint { command, about }], &look())
}

/// A version in one line.
pub fn line(version: &VersionState) -> String {
    let name = &version.name;
    let message = with_short_contexts(&one_line(&version.message, 200));
    let how_far = one_line(&version.progress.message, 200);
    let by = if version.deployer.is_empty() { String::new() } else { format!(" by {}", version.deployer) };
    let targets: Vec<String> = version
        .progress
        .targets
        .iter()
        .map(|(name, at)| {
            format!(
                "{name} {}{}",
                at.status,
                if at.message.is_empty() { String::new() } else { format!(" ({})", one_line(&at.message, 80)) }
            )
        })
        .collect();
    let details: Vec<String> = [how_far, targets.join(", ")].into_iter().filter(|text| !text.is_empty()).collect();
    let details = if details.is_empty() { String::new() } else { format!(": {}", details.join("; ")) };
    match (version.status.as_str(), version.desired.as_deref()) {
        ("Complete", _) => format!("{name} successfully rolled out{by}"),
        ("Failed", _) => format!("{name} failed{by}: {message}"),
        (_, Some("cancel")) => format!("{name} is being cancelled: {message}"),
        ("New", Some("pause")) => format!("{name} is held: the config is paused"),
        ("New", _) => format!("{name} waits for a deployer: {message}"),
        (_, Some("pause")) => format!("{name} is told to pause{by}{details}"),
        ("Pending", _) => format!("{name} is claimed{by}{details}"),
        _ => format!("{name} is running{by}{details}"),
    }
}

/// When the deployer was last heard of. It is not part of [`line`], which is printed again whenever it changes.
fn last_heard(version: &VersionState, now: Option<Timestamp>) -> Option<String> {
    let heard = age(version.heard.as_deref()?, now);
    let lost = due(version.expected.as_deref(), now).map(|left| format!("; it counts as lost in {left}"));
    Some(format!("last heard from {} {heard} ago{}", version.deployer, lost.unwrap_or_default()))
}

/// How a config is, in a few lines.
fn lines(state: &ConfigState, version: Option<&VersionState>) -> Vec<String> {
    let of = format!("{}/{}", state.namespace, state.name);
    let mut lines = vec![match version {
        Some(version) => line(version),
        None => format!(
            "{of} has no version yet{}",
            if state.message.is_empty() { String::new() } else { format!(": {}", state.message) }
        ),
    }];
    lines.extend(version.and_then(|version| last_heard(version, Timestamp::parse(&state.now))));
    match (state.active_version, state.latest_version) {
        (Some(active), latest) if active != latest => lines.push(format!("deployed is still {}-{active}", state.name)),
        (None, latest) if latest > 0 => lines.push("no version is complete yet".into()),
        _ => {}
    }
    if let Some(drift) = &state.drift {
        lines.push(drift.message.clone());
    }
    if version.is_some() && !state.message.is_empty() {
        lines.push(state.message.clone());
    }
    if let Some(suspended) = &state.triggers_suspended
        && state.reason != "TriggersSuspended"
    {
        let by = if suspended.by.is_empty() { String::new() } else { format!(" by {}", suspended.by) };
        lines.push(format!("no trigger fires: suspended{by}: {}", one_line(&suspended.message, 200)));
    }
    if state.triggers_suspended.is_some() {
        lines.push(format!("let them fire again: keelway set triggers {of} --resume"));
    }
    lines
}
