//! Pipelines: `pipeline list` and `pipeline status` show them with what they are at.

use super::{Kind, Place, Verb, json, typed};
use crate::args::named::Format;
use crate::error::CliError;
use crate::table::Table;
use keelway_domain::time::Timestamp;
use keelway_wire::http::promotions::PipelineEntry;
use serde_json::Value;

pub const KIND: Kind = Kind {
    kind: "Pipeline",
    noun: "pipeline",
    collection: "pipelines",
    place: Place::Namespace,
    get: Verb {
        name: "pipelines",
        aliases: &["pipeline"],
        about: "Pipelines, as `pipeline list` and `pipeline status` show them",
        examples: "Examples:\n  keelway get pipelines -p shop\n  keelway get pipeline carts -p shop -o yaml",
    },
    delete: Verb {
        name: "pipeline",
        aliases: &[],
        about: "A pipeline: its open pull requests are closed",
        examples: "Examples:\n  keelway delete pipeline carts -p shop\n  keelway delete pipeline shop/carts --yes",
    },
    ends: "Nothing more is promoted, and its open pull requests are closed.",
    json: json::<PipelineEntry>,
    table,
};

fn table(all: Vec<Value>, _: Option<Timestamp>, _: Format) -> Result<Table, CliError> {
    Ok(wide(&typed::<Vec<PipelineEntry>>(all.into())?))
}

/// A line with everything about each.
pub fn wide(all: &[PipelineEntry]) -> Table {
    let mut table =
        Table::new(&["NAMESPACE", "NAME", "RUN", "REVISION", "SUSPENDED", "REASON", "MESSAGE", "ENVIRONMENTS", "APPLIED"]);
    for entry in all {
        table.row(vec![
            entry.namespace.clone(),
            entry.name.clone(),
            entry.run.map(|run| run.to_string()).unwrap_or_default(),
            entry.revision.clone().unwrap_or_default(),
            if entry.suspended { "yes".into() } else { String::new() },
            entry.reason.clone(),
            entry.message.clone(),
            entry.environments.join(","),
            entry.applied_at.clone(),
        ]);
    }
    table
}
