//! Artifact sources.

use super::{Kind, Place, Verb, json, typed};
use crate::args::named::Format;
use crate::error::CliError;
use crate::table::Table;
use keelway_domain::time::Timestamp;
use keelway_wire::http::deployments::ArtifactSourceState;
use serde_json::Value;

pub const KIND: Kind = Kind {
    kind: "ArtifactSource",
    noun: "artifact source",
    collection: "artifactSources",
    place: Place::Namespace,
    get: Verb {
        name: "artifactsources",
        aliases: &["artifactsource"],
        about: "Artifact sources",
        examples: "Examples:\n  keelway get artifactsources -p shop\n  keelway get artifactsource shop/carts -o yaml",
    },
    delete: Verb {
        name: "artifactsource",
        aliases: &[],
        about: "An artifact source: its tags are no longer followed",
        examples: "Examples:\n  keelway delete artifactsource shop/carts --yes",
    },
    ends: "Pushes there are no longer deployed.",
    json: json::<ArtifactSourceState>,
    table,
};

fn table(all: Vec<Value>, _: Option<Timestamp>, _: Format) -> Result<Table, CliError> {
    let all: Vec<ArtifactSourceState> = typed(all.into())?;
    let mut table = Table::new(&["NAMESPACE", "NAME", "FROM", "TAGS"]);
    for one in &all {
        let from = match (one.spec.pointer("/from/ecr/name"), one.spec.pointer("/from/webhook")) {
            (Some(repository), _) => format!("ecr {}", repository.as_str().unwrap_or_default()),
            (None, Some(_)) => "webhook".into(),
            (None, None) => String::new(),
        };
        let tags = one.spec.get("tags").and_then(Value::as_object).into_iter().flatten();
        let tags: Vec<String> = tags.map(|(name, pattern)| format!("{name}={}", pattern.as_str().unwrap_or_default())).collect();
        table.row(vec![one.namespace.clone(), one.name.clone(), from, tags.join(",")]);
    }
    Ok(table)
}
