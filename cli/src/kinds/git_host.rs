//! Git hosts.

use super::{Kind, Place, Verb, json, typed};
use crate::args::named::Format;
use crate::error::CliError;
use crate::table::Table;
use keelway_domain::time::Timestamp;
use keelway_wire::http::promotions::Registered;
use serde_json::Value;

pub const KIND: Kind = Kind {
    kind: "GitHost",
    noun: "git host",
    collection: "githosts",
    place: Place::Installation,
    get: Verb {
        name: "githosts",
        aliases: &["githost"],
        about: "The hosts of repositories",
        examples: "Examples:\n  keelway get githosts\n  keelway get githost github -o yaml",
    },
    delete: Verb { name: "githost", aliases: &[], about: "A git host", examples: "Examples:\n  keelway delete githost github" },
    ends: "Pull requests can no longer be made or looked at there.",
    json: json::<Registered>,
    table,
};

fn table(all: Vec<Value>, _: Option<Timestamp>, format: Format) -> Result<Table, CliError> {
    let all: Vec<Registered> = typed(all.into())?;
    let fields: &[_] = match format.is_wide() {
        true => &[("TYPE", "type"), ("HOST", "host"), ("API", "api"), ("SECRET", "secret"), ("WEBHOOK SECRET", "webhookSecret")],
        false => &[("TYPE", "type"), ("HOST", "host"), ("SECRET", "secret")],
    };
    Ok(Table::registered(&all, fields, format))
}
