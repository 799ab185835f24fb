//! Clusters.

use super::{Kind, Place, Verb, json, typed};
use crate::args::named::Format;
use crate::error::CliError;
use crate::table::Table;
use keelway_domain::time::Timestamp;
use keelway_wire::http::promotions::Registered;
use serde_json::Value;

pub const KIND: Kind = Kind {
    kind: "Cluster",
    noun: "cluster",
    collection: "clusters",
    place: Place::Namespace,
    get: Verb {
        name: "clusters",
        aliases: &["cluster"],
        about: "The clusters whose objects are read",
        examples: "Examples:\n  keelway get clusters -p shop\n  keelway get cluster shop/eu-1 -o yaml",
    },
    delete: Verb {
        name: "cluster",
        aliases: &[],
        about: "A cluster: its objects are no longer read",
        examples: "Examples:\n  keelway delete cluster eu-1 -p shop",
    },
    ends: "Its objects are no longer read.",
    json: json::<Registered>,
    table,
};

fn table(all: Vec<Value>, _: Option<Timestamp>, format: Format) -> Result<Table, CliError> {
    let all: Vec<Registered> = typed(all.into())?;
    let fields: &[_] = match format.is_wide() {
        true => &[("SERVER", "server"), ("SECRET", "secret"), ("INTERVAL", "interval")],
        false => &[("SERVER", "server"), ("SECRET", "secret")],
    };
    Ok(Table::registered(&all, fields, format))
}
