//! `pipeline status`: one pipeline with its environments; and its manifest.

use super::{follow, read};
use crate::address::Address;
use crate::api::Api;
use crate::args::{Format, PipelineStatus};
use crate::board;
use crate::error::CliError;
use crate::output::{one_line, say, say_data};
use crate::pipeline::{self, address, all_done, current, fault, health, only_waits, runs};
use crate::table::Table;
use crate::terminal::{Look, columns, look, padded};
use crate::words::{age, revision};
use keelway_domain::time::Timestamp;
use keelway_wire::http::promotions::{EnvironmentState, PipelineState, PromotionState};

/// Shows it once, or follows it.
///
/// # Errors
/// As the API answers; with `--exit-code`, an environment that does not run the revision.
pub async fn status(api: &Api, what: &PipelineStatus) -> Result<(), CliError> {
    let of = Address::of(&what.of.name, what.of.project.project.as_ref());
    let format = what.output.format;
    let state = if what.watch {
        follow::follow(api, &of, what.following, format).await?
    } else {
        let (state, now) = read(api, &of).await?;
        show(&state, now, format)?;
        state
    };
    let fine = all_done(&state) || what.following.for_approval && only_waits(&state);
    if what.following.exit_code && !fine { Err(CliError::Said(1)) } else { Ok(()) }
}

/// Prints it.
///
/// # Errors
/// When nobody reads it any more.
pub fn show(state: &PipelineState, now: Option<Timestamp>, format: Format) -> Result<(), CliError> {
    if format.is_data() {
        return say_data(state, format);
    }
    let look = look();
    if format.is_wide() {
        let unlimited = Look { width: None, ..look };
        for row in board::rows(&[pipeline::line(state, now)], &unlimited) {
            say(&row)?;
        }
        say("")?;
        say(&targets(state).render(&unlimited))?;
        say("")?;
        return say(&promotions(state).render(&unlimited));
    }
    lines(state, now, &look).iter().try_for_each(|line| say(line))
}

/// The pipeline in one line, a table of its environments, what is open elsewhere, and the commands that would help.
pub fn lines(state: &PipelineState, now: Option<Timestamp>, look: &Look) -> Vec<String> {
    let line = pipeline::line(state, now);
    let mut lines = board::rows(std::slice::from_ref(&line), look);
    if let Some(why) = why(state) {
        lines.push(look.paint(2, &look.cut(&why, look.width.unwrap_or(usize::MAX))));
    }
    lines.push(String::new());
    lines.extend(environments(state, now).render(look).lines().map(str::to_owned));
    lines.extend(open(state, look));
    lines.extend(board::hints(&line.hints, look));
    lines
}

/// `run 3 of shop/carts since 2h05m: 1.4.0 waits for approval for production`
fn why(state: &PipelineState) -> Option<String> {
    let of = address(state);
    let head = match &state.run {
        Some(run) => format!("run {} of {of}", run.number),
        None => of,
    };
    let message = if all_done(state) { "every environment runs the revision" } else { &state.message };
    Some(format!("{head}: {}", one_line(message, 400))).filter(|_| !message.is_empty())
}

fn environments(state: &PipelineState, now: Option<Timestamp>) -> Table {
    let mut table = Table::new(&["ENVIRONMENT", "RUNS", "HEALTH", "SINCE", "PROMOTION", "WHAT"]);
    for environment in &state.environments {
        let since = environment.healthy.as_ref().map(|healthy| age(&healthy.since, now)).unwrap_or_default();
        let promotion = current(state, environment);
        let phase = promotion.map(|promotion| promotion.phase.clone()).unwrap_or_default();
        table.row(vec![
            environment.name.clone(),
            runs(environment),
            health(environment),
            since,
            phase,
            what(environment, promotion),
        ]);
    }
    table
}

/// What is to be said about an environment in a sentence or two.
fn what(environment: &EnvironmentState, promotion: Option<&PromotionState>) -> String {
    let hold = environment.hold.as_ref().map(|hold| {
        let by = if hold.actor.by.is_empty() { String::new() } else { format!(" by {}", hold.actor.by) };
        let why = if hold.actor.message.is_empty() { String::new() } else { format!(": {}", hold.actor.message) };
        format!("held on {}{by}{why}", revision(&hold.revision))
    });
    let approvals = promotion.map(|promotion| promotion.approvals.as_slice()).unwrap_or_default();
    let by: Vec<&str> = approvals.iter().map(|actor| actor.by.as_str()).filter(|by| !by.is_empty()).collect();
    let approved = (!by.is_empty()).then(|| format!("approved by {}", by.join(", ")));
    let message = promotion.map(|promotion| promotion.message.clone()).filter(|message| !message.is_empty());
    let unobserved = environment.conditions.iter().find(|condition| condition.reason == "TargetNotReadable");
    // A target that nobody has reported about yet has no error of its own.
    let fault = fault(environment).or_else(|| unobserved.map(|condition| one_line(&condition.message, 160)));
    let parts = [fault, message, approved, hold.filter(|_| promotion.is_none_or(|promotion| promotion.reason != "Held"))];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// The pull requests and sequences that are open. An address is for copying: it is not cut.
fn open(state: &PipelineState, look: &Look) -> Vec<String> {
    let width = state.environments.iter().map(|environment| columns(&environment.name)).max().unwrap_or(0).max("ENVIRONMENT".len());
    let one = |environment: &EnvironmentState, promotion: &PromotionState, closing: bool| {
        let words = match (&promotion.pull_request, &promotion.keptn_context) {
            (Some(request), _) => {
                let error = request.look.as_ref().and_then(|look| look.error.as_ref());
                let unseen = error.map(|error| format!("  the last look failed: {}", one_line(error, 400))).unwrap_or_default();
                format!("pull request {}  {}{unseen}", request.number, one_line(&request.url, 2000))
            }
            (None, Some(context)) => format!("sequence  keelway watch {context}"),
            (None, None) => return None,
        };
        let closing = if closing { "closing " } else { "" };
        Some(format!("{}  {}", padded(&environment.name, width), look.paint(1, &format!("{closing}{words}"))))
    };
    let of = |environment: &EnvironmentState| {
        let current = current(state, environment).filter(|promotion| promotion.phase == "created");
        let current = current.and_then(|promotion| one(environment, promotion, false));
        current
            .into_iter()
            .chain(environment.closing.iter().filter_map(|promotion| one(environment, promotion, true)))
            .collect::<Vec<_>>()
    };
    state.environments.iter().flat_map(of).collect()
}

fn targets(state: &PipelineState) -> Table {
    let mut table = Table::new(&["ENVIRONMENT", "CLUSTER", "NAMESPACE", "REVISION", "READY", "OBSERVED", "ERROR"]);
    for environment in &state.environments {
        for target in &environment.targets {
            table.row(vec![
                environment.name.clone(),
                target.cluster.clone().unwrap_or_default(),
                target.namespace.clone(),
                target.revision.clone().unwrap_or_default(),
                if target.ready { "yes" } else { "no" }.into(),
                target.observed_at.clone().unwrap_or_default(),
                target.error.clone().unwrap_or_default(),
            ]);
        }
    }
    table
}

fn promotions(state: &PipelineState) -> Table {
    let mut table =
        Table::new(&["ENVIRONMENT", "STRATEGY", "MANUAL", "RUN", "REVISION", "PHASE", "REASON", "ATTEMPTS", "SINCE", "MESSAGE"]);
    for environment in &state.environments {
        let text = |of: fn(&PromotionState) -> String| environment.promotion.as_ref().map(of).unwrap_or_default();
        table.row(vec![
            environment.name.clone(),
            environment.strategy.clone().unwrap_or_default(),
            if environment.manual { "yes" } else { "no" }.into(),
            text(|promotion| promotion.run.to_string()),
            text(|promotion| promotion.revision.clone()),
            text(|promotion| promotion.phase.clone()),
            text(|promotion| promotion.reason.clone()),
            text(|promotion| promotion.attempts.to_string()),
            text(|promotion| promotion.since.clone()),
            text(|promotion| promotion.message.clone()),
        ]);
    }
    table
}

/// Prints a manifest as it was applied.
///
/// # Errors
/// As the API answers.
pub async fn manifest(api: &Api, of: &[&str]) -> Result<(), CliError> {
    let path: Vec<&str> = of.iter().copied().chain(["manifest"]).collect();
    say(api.text(&path).await?.trim_end_matches(['\r', '\n']))
}
