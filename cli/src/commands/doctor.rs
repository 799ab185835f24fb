//! `doctor`: what stands between this shell and a working API.

use super::border;
use crate::api::{Api, Body};
use crate::api_error::ApiError;
use crate::error::CliError;
use crate::output::{painted, say};
use crate::terminal::look;
use keelway_domain::time::Timestamp;
use keelway_wire::http::operations::{Checks, DeadLetterPage, InstalledLimits, RoundTrip};
use keelway_wire::http::{Metadata, ProjectPage};
use reqwest::Method;
use std::time::{Duration, Instant, SystemTime};

/// How far clocks may differ before it is told.
const TOLERATED: Duration = Duration::from_secs(30);
/// How long an event may take to go around. A first message after a pause starts a function.
const PATIENCE: Duration = Duration::from_secs(30);
const BETWEEN: Duration = Duration::from_millis(300);
/// The manual's list of what remains unknown of AWS stands under this heading.
const MANUAL: &str = include_str!("../../../docs/deploy.md");
const UNKNOWN: &str = "## What remains unknown of AWS";

/// Prints the manual's list of what to look at after a first deployment.
///
/// # Errors
/// When nobody reads it.
pub fn checklist() -> Result<(), CliError> {
    let section = MANUAL.split_once(UNKNOWN).map_or("", |(_, rest)| rest.split("\n## ").next().unwrap_or_default());
    let items = section.split("\n* ").skip(1).map(|item| item.split_whitespace().collect::<Vec<_>>().join(" "));
    items.map(|item| item.replace("**", "")).try_for_each(|item| say(&format!("[ ] {item}")))
}

/// Checks the settings, the API, the token, that it can read, whether messages could not be handled, what stored manifests name and
/// may not, the clock, the rules, the limits, and that an event arrives; says each.
///
/// # Errors
/// Exit code of the first check that fails.
pub async fn doctor(api: Option<&str>, token: Option<&str>) -> Result<(), CliError> {
    let api = Api::new(api, token).and_then(|api| failed("settings", Ok(api))).or_else(|error| failed("settings", Err(error)))?;
    ok(&format!("settings: the API is {}", api.base()))?;
    let metadata: Metadata = match api.get(&["metadata"], &[]).await {
        Ok(metadata) => metadata,
        Err(error) if matches!(error.status(), Some(401 | 403)) => {
            ok("API: answers")?;
            return failed("token", Err(error.into()));
        }
        Err(error) => return failed("API", Err(error.into())),
    };
    let stack = match (metadata.installation.as_str(), metadata.stack.as_str()) {
        ("", "") => String::new(),
        ("", stack) => format!(", stack {stack}"),
        (installation, _) => format!(", installation {installation}"),
    };
    ok(&format!("API: answers, version {}{stack}", metadata.version))?;
    ok("token: accepted")?;
    if metadata.version != env!("CARGO_PKG_VERSION") {
        note(&format!("this is keelway {}, the API has another version", env!("CARGO_PKG_VERSION")))?;
    }
    if let Some(page) = allowed::<ProjectPage>("projects", api.get(&["project"], &[("pageSize", "100")]).await)? {
        match page.items.len() {
            0 => ok("projects: none yet; apply one: keelway apply -f examples/hello")?,
            n => ok(&format!("projects: {n}"))?,
        }
    }
    if let Some(page) = allowed::<DeadLetterPage>("dead letters", api.get(&["dead-letters"], &[("pageSize", "100")]).await)? {
        let waiting = page.items.iter().filter(|letter| letter.next_redrive.is_none()).count();
        match (page.items.len(), waiting) {
            (0, _) => ok("dead letters: none")?,
            (n, waiting) => note(&format!("dead letters: {n}, {waiting} wait for a person; see: keelway dead-letters list"))?,
        }
    }
    border_holds(&api).await?;
    let asked = Instant::now();
    let checks: Checks = match api.get(&["checks"], &[]).await {
        Ok(checks) => checks,
        Err(error) if error.status() == Some(404) => {
            return note("rules, clock, limits, bus: this API cannot check them, it is older");
        }
        Err(error) => return allowed::<Checks>("rules, clock, limits, bus", Err(error)).map(drop),
    };
    clock(&checks.now, asked.elapsed())?;
    rules(&checks, &metadata.stack)?;
    let InstalledLimits { max_event_bytes, max_executions, start_deadline, task_timeout, retention_days } = &checks.limits;
    ok(&format!(
        "limits: events of {} KB, {max_executions} executions in a context, {start_deadline} to start a task and {task_timeout} to \
         finish it, {retention_days} days of history",
        max_event_bytes / 1024
    ))?;
    round_trip(&api).await
}

/// Names what was applied before the border held, or before a consent or a policy ended.
async fn border_holds(api: &Api) -> Result<(), CliError> {
    let gaps = match border::gaps(api).await {
        Err(error) if error.status() == Some(404) => return note("border: this API cannot check it, it is older"),
        answer => allowed("border", answer)?,
    };
    match gaps {
        None => Ok(()),
        Some(gaps) if gaps.is_empty() => ok("border: every manifest may name what it names"),
        Some(gaps) => gaps.iter().try_for_each(|gap| note(&format!("border: {}", border::line(gap)))),
    }
}

/// What was asked for. A token that may not see it is no fault: it is said that this was not checked.
fn allowed<T>(what: &str, answer: Result<T, ApiError>) -> Result<Option<T>, CliError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.status() == Some(403) => {
            note(&format!("{what}: not checked, this token does not show it")).map(|()| None)
        }
        Err(error) => failed(what, Err(error.into())),
    }
}

/// A clock that is wrong makes signatures and deadlines wrong. `took`: how long the answer took, in which its time may have got
/// old.
fn clock(theirs: &str, took: Duration) -> Result<(), CliError> {
    let Some(theirs) = Timestamp::parse(theirs) else {
        return note(&format!("clock: the API's time {theirs:?} is not understood"));
    };
    let millis = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis();
    let off = Timestamp(i64::try_from(millis).unwrap_or(i64::MAX)) - theirs;
    let tolerated = TOLERATED + took;
    if u128::from(off.0.unsigned_abs()) <= tolerated.as_millis() {
        return ok("clock: as the API's");
    }
    let seconds = off.0.unsigned_abs() / 1000;
    let way = if off.0 > 0 { "ahead of" } else { "behind" };
    note(&format!("clock: this machine is {seconds} s {way} the API; set it, or signatures and times such as --since are wrong"))
}

fn rules(checks: &Checks, stack: &str) -> Result<(), CliError> {
    let Some(rule) = checks.rules.iter().find(|rule| rule.state != "enabled") else {
        return ok(&format!("rules: {} enabled", checks.rules.len()));
    };
    let name = format!("{stack}-{}", rule.name);
    let remedy = match rule.state.as_str() {
        "disabled" => format!(
            "events that it takes are lost; aws events enable-rule --name {name}, with --event-bus-name {stack} if it is on that bus"
        ),
        _ => "deploy the stack again".to_owned(),
    };
    failed("rules", Err(CliError::Failed(format!("{name} is {}: {remedy}", rule.state))))
}

/// An event through the bus, its rule, the queue and the function into the table.
async fn round_trip(api: &Api) -> Result<(), CliError> {
    let sent: RoundTrip = match api.call(Method::POST, &["checks"], &[], Body::None).await {
        Ok(sent) => sent,
        Err(error) if error.status() == Some(403) => return note("bus: not checked, this token has no scope trigger"),
        Err(error) => return failed("bus", Err(error.into())),
    };
    let until = Instant::now() + PATIENCE;
    loop {
        let seen: RoundTrip = match api.get(&["checks", &sent.id], &[]).await {
            Ok(seen) => seen,
            Err(error) => return failed("bus", Err(error.into())),
        };
        let time = |text: &Option<String>| text.as_deref().and_then(Timestamp::parse);
        if let Some(arrived) = time(&seen.arrived_at) {
            let took = time(&sent.sent_at).map_or(0, |sent| (arrived - sent).0.max(0));
            return ok(&format!("bus: an event went around in {}.{} s", took / 1000, took % 1000 / 100));
        }
        if Instant::now() >= until {
            let why = "an event that was sent {} s ago has not arrived: see the age of the messages in the queue <stack>-sequences and the log of \
                       the function behind it";
            return failed("bus", Err(CliError::Failed(why.replace("{}", &PATIENCE.as_secs().to_string()))));
        }
        tokio::time::sleep(BETWEEN).await;
    }
}

fn ok(what: &str) -> Result<(), CliError> {
    say(&format!("{}  {what}", painted("ok", "ok   ", &look())))
}

fn note(what: &str) -> Result<(), CliError> {
    say(&format!("note   {what}"))
}

fn failed<T>(what: &str, result: Result<T, CliError>) -> Result<T, CliError> {
    match result {
        Err(error @ (CliError::Usage(_) | CliError::Failed(_) | CliError::Api(_))) => {
            let code = if matches!(error, CliError::Usage(_)) { 2 } else { 1 };
            say(&format!("{}  {what}: {error}", painted("error", "error", &look())))?;
            Err(CliError::Said(code))
        }
        other => other,
    }
}
