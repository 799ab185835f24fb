//! `get schedules`, `delete schedule`.

use super::pipelines::manifest;
use crate::api::Api;
use crate::args::{Format, GetSchedules};
use crate::error::CliError;
use crate::output::say_data;
use crate::pages;
use crate::table::Table;
use crate::table::print;
use crate::words::{age, span};
use crate::zone::local;
use keelway_domain::names::ProjectName;
use keelway_domain::time::Timestamp;
use keelway_wire::http::schedules::ScheduleState;
use serde_json::json;

/// Prints the schedules of a project, or one.
///
/// # Errors
/// As the API answers.
pub async fn schedules(api: &Api, what: &GetSchedules) -> Result<(), CliError> {
    let (project, format) = (what.project.as_str(), what.output.format);
    if let Some(name) = &what.name {
        let path = ["schedules", project, name.as_str()];
        if format == Format::Yaml {
            return manifest(api, &path).await;
        }
        let one: ScheduleState = api.get(&path, &[]).await?;
        if format == Format::Json {
            return say_data(&one, format);
        }
        return print(&table(&[one], None, format), format, "");
    }
    let list = pages::read::<ScheduleState>(api, &["schedules", project], &[], usize::MAX).await?;
    let (all, now) = (list.items, Timestamp::parse(&list.extra.now));
    if format.is_data() {
        return say_data(&json!({"schedules": all}), format);
    }
    print(&table(&all, now, format), format, &format!("project {project} has no schedule; apply one: keelway apply -f FILE"))
}

fn table(all: &[ScheduleState], now: Option<Timestamp>, format: Format) -> Table {
    let mut head = vec!["NAME", "STAGE", "SEQUENCE", "SERVICES", "WHEN", "NEXT", "LAST"];
    if format == Format::Wide {
        head.extend(["CONCURRENCY", "CONTEXTS"]);
    }
    let mut table = Table::new(&head);
    for one in all {
        let when = one.cron.clone().or_else(|| one.at.as_deref().map(shown)).unwrap_or_default();
        let when = [when.as_str(), one.zone.as_deref().unwrap_or_default()].join(" ").trim().to_owned();
        let mut row = vec![
            one.name.clone(),
            one.stage.clone(),
            one.sequence.clone(),
            one.services.join(","),
            when,
            next(one, now),
            last(one, now),
        ];
        if format == Format::Wide {
            let contexts: Vec<&str> = one.runs.iter().map(|run| run.context.as_str()).collect();
            row.extend([one.concurrency.clone(), contexts.join(",")]);
        }
        table.row(row);
    }
    table
}

fn shown(time: &str) -> String {
    Timestamp::parse(time).map_or_else(|| time.to_owned(), local)
}

fn next(one: &ScheduleState, now: Option<Timestamp>) -> String {
    let Some(next) = one.next.as_deref() else {
        return if one.suspended {
            "suspended"
        } else if one.planned {
            "never"
        } else {
            "being planned"
        }
        .into();
    };
    match Timestamp::parse(next).zip(now) {
        Some((next, now)) => format!("{} (in {})", local(next), span((next - now).0)),
        None => shown(next),
    }
}

fn last(one: &ScheduleState, now: Option<Timestamp>) -> String {
    let Some(last) = &one.last else { return String::new() };
    let mut told = match now {
        Some(_) => format!("{} ago", age(&last.at, now)),
        None => shown(&last.at),
    };
    if !last.skipped.is_empty() {
        told = format!("{told}; {} skipped: still running", last.skipped.join(", "));
    }
    if last.late {
        told = format!("{told}; late");
    }
    told
}

/// The path of a schedule in the API.
pub fn path<'a>(project: &'a ProjectName, name: &'a str) -> [&'a str; 3] {
    ["schedules", project.as_str(), name]
}
