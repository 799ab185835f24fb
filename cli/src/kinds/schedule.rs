//! Schedules.

use super::{Kind, Place, Verb, json, typed};
use crate::args::named::Format;
use crate::error::CliError;
use crate::table::Table;
use crate::words::{age, span};
use crate::zone::local;
use keelway_domain::time::Timestamp;
use keelway_wire::http::schedules::ScheduleState;
use serde_json::Value;

pub const KIND: Kind = Kind {
    kind: "Schedule",
    noun: "schedule",
    collection: "schedules",
    place: Place::Project,
    get: Verb {
        name: "schedules",
        aliases: &["schedule"],
        about: "Schedules: what is triggered when, the next time and the last",
        examples: "Examples:\n  keelway get schedules -p shop\n  keelway get schedules nightly -p shop -o yaml",
    },
    delete: Verb {
        name: "schedule",
        aliases: &[],
        about: "A schedule: what it has triggered goes on",
        examples: "Examples:\n  keelway delete schedule nightly -p shop",
    },
    ends: "Nothing more is triggered.",
    json: json::<ScheduleState>,
    table,
};

fn table(all: Vec<Value>, now: Option<Timestamp>, format: Format) -> Result<Table, CliError> {
    let all: Vec<ScheduleState> = typed(all.into())?;
    let mut head = vec!["NAME", "STAGE", "SEQUENCE", "SERVICES", "WHEN", "NEXT", "LAST"];
    if format.is_wide() {
        head.extend(["CONCURRENCY", "CONTEXTS"]);
    }
    let mut table = Table::new(&head);
    for one in &all {
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
        if format.is_wide() {
            let contexts: Vec<&str> = one.runs.iter().map(|run| run.context.as_str()).collect();
            row.extend([one.concurrency.clone(), contexts.join(",")]);
        }
        table.row(row);
    }
    Ok(table)
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
