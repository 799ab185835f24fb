//! `rollout history`: the versions of a config.

use super::{address, id, number, read_version};
use crate::api::Api;
use crate::args::{Format, RolloutHistory};
use crate::commands::evaluate::{change, criteria};
use crate::error::CliError;
use crate::output::{one_line, say, say_data};
use crate::pages;
use crate::table::Table;
use crate::table::print;
use crate::words::{age, between, images, with_short_contexts};
use keelway_domain::time::Timestamp;
use keelway_wire::http::deployments::{AnalysisObjective, AnalysisState, Cause, VersionState};
use serde_json::json;

/// Prints the versions, newest first; or one with everything.
///
/// # Errors
/// As the API answers.
pub async fn history(api: &Api, what: &RolloutHistory) -> Result<(), CliError> {
    let of = address(&what.of);
    let format = what.output.format;
    if let Some(n) = number(&of, what.revision.as_ref())? {
        let version = read_version(api, &of, n).await?;
        return if format.is_data() { say_data(&version, format) } else { details(&version).iter().try_for_each(|line| say(line)) };
    }
    let id = id(&of);
    let limit = usize::try_from(what.limit).unwrap_or(usize::MAX);
    let list = pages::read::<VersionState>(api, &["deploymentConfigs", &id, "history"], &[], limit).await?;
    let (all, now) = (list.items, Timestamp::parse(&list.extra.now));
    if format.is_data() {
        return say_data(&json!({"items": all}), format);
    }
    let empty = format!("{of} has no version yet; why: keelway rollout status {of} --no-watch");
    print(table(&all, now, format), format, &empty)
}

/// Versions in lines.
fn table(all: &[VersionState], now: Option<Timestamp>, format: Format) -> Table {
    let wide = format.is_wide();
    let mut head = vec!["VERSION", "STATUS", "AGE", "TOOK", "IMAGES", "CAUSE"];
    if wide {
        head.extend(["ATTEMPT", "BY", "DEPLOYER", "HEARD", "REASON", "EXIT", "SINCE", "ENDED", "LOG"]);
    }
    let mut table = Table::new(&head);
    for one in all {
        let mut row = vec![
            one.version.to_string(),
            one.status.clone(),
            age(&one.since, now),
            between(Some(&one.since), one.ended_at.as_deref()),
            images(&one.images, wide),
            cause(one),
        ];
        if wide {
            row.extend([
                one.attempt.to_string(),
                who(one),
                one.deployer.clone(),
                one.heard.as_deref().map(|heard| age(heard, now)).unwrap_or_default(),
                one.reason.clone(),
                one.exit_code.map(|code| code.to_string()).unwrap_or_default(),
                one.since.clone(),
                one.ended_at.clone().unwrap_or_default(),
                one.progress.log.clone(),
            ]);
        }
        table.row(row);
    }
    table
}

/// Why it was cut.
pub(super) fn why(one: &VersionState) -> String {
    with_short_contexts(&one_line(&one.details.message, 160))
}

/// The same; and what became of it, if it failed.
fn cause(one: &VersionState) -> String {
    let cause = why(one);
    if one.status == "Failed" { format!("{cause}; {}", one_line(&one.message, 160)) } else { cause }
}

fn who(one: &VersionState) -> String {
    one.details.causes.iter().map(|cause| cause.by.as_str()).find(|by| !by.is_empty()).unwrap_or_default().to_owned()
}

fn details(one: &VersionState) -> Vec<String> {
    let mut lines = vec![super::follow::line(one)];
    let mut field = |name: &str, value: String| {
        if !value.is_empty() {
            lines.push(format!("  {name:<10} {}", one_line(&value, 1000)));
        }
    };
    field("attempt", if one.attempt > 1 { one.attempt.to_string() } else { String::new() });
    for why in &one.details.causes {
        field("cause", told(why));
    }
    for (name, image) in &one.images {
        field("image", format!("{name} {image}"));
    }
    field("since", one.since.clone());
    field("ended", one.ended_at.clone().unwrap_or_default());
    field("exit code", one.exit_code.map(|code| code.to_string()).unwrap_or_default());
    field("group", one.group_id.clone());
    field("sequence", one.context.clone().unwrap_or_default());
    field("log", one.progress.log.clone());
    if let Some(analysis) = &one.progress.analysis {
        field("analysis", judged(analysis));
        for objective in &analysis.objectives {
            field("objective", measured(objective));
        }
    }
    lines.extend(one.progress.tail.lines().map(|line| format!("  | {}", one_line(line, 1000))));
    lines
}

/// What metrics say: the newest window.
fn judged(of: &AnalysisState) -> String {
    let samples = of.samples.map(|n| format!(", {n} request{}", if (n - 1.0).abs() < 0.5 { "" } else { "s" })).unwrap_or_default();
    let score = of.score.map(|score| format!(", score {score}")).unwrap_or_default();
    let message = if of.message.is_empty() { String::new() } else { format!(": {}", of.message) };
    format!("{}{samples}{score}, from {} to {}{message}", of.result, of.from, of.to)
}

fn measured(of: &AnalysisObjective) -> String {
    let value = of.value.map_or_else(|| format!("without a value ({})", of.message), |value| value.to_string());
    let compared = match (of.value, of.baseline) {
        (Some(value), Some(before)) if before != 0.0 => format!(", {before} before ({})", change(value, before)),
        (_, Some(before)) => format!(", {before} before"),
        _ => String::new(),
    };
    let targets = criteria(of.targets.iter().map(|target| (&*target.criteria, target.target_value, target.violated)));
    format!(
        "{} {} is {value}{compared}: {}{}",
        of.target,
        of.sli,
        of.result,
        if targets.is_empty() { targets } else { format!(" ({targets})") }
    )
}

fn told(cause: &Cause) -> String {
    if cause.delivery.is_some() && cause.release.is_none() {
        return cause.notes.clone();
    }
    let by = if cause.by.is_empty() { String::new() } else { format!(" by {}", cause.by) };
    let from = cause.from.as_ref().map(|from| format!(": {from}")).unwrap_or_default();
    let release = cause.release.map(|release| format!(" to #{release}")).unwrap_or_default();
    let of = cause.of.map(|of| format!(" of #{of}")).unwrap_or_default();
    let notes = if cause.notes.is_empty() { String::new() } else { format!(": {}", cause.notes) };
    format!("{}{of}{release}{by}{from}{notes}", cause.ty)
}
