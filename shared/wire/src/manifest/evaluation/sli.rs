//! `sli.yaml`: queries by the name of their indicator.

use super::super::levels::evaluations;
use super::super::names::nearest;
use super::super::tree::Node;
use super::read::Reader;
use keelway_domain::evaluation::Queries;

/// What stands for the place of an evaluation in queries. Keys of `filter` do, too.
const NAMES: [&str; 5] = ["PROJECT", "STAGE", "SERVICE", "DEPLOYMENT", "DURATION_SECONDS"];

pub fn read(root: &Node, reader: &mut Reader) -> Queries {
    reader.fields(root, &evaluations::SLI, "");
    reader.version(root);
    let queries = reader.texts(root, "indicators");
    let Some(indicators) = root.get("indicators") else { return queries };
    if indicators.entries().is_some_and(<[_]>::is_empty) {
        let message = "is empty, which Keptn refuses: write a name and a query for each";
        reader.report.error(indicators, "indicators", message.into());
    }
    for entry in indicators.entries().unwrap_or_default() {
        let path = format!("indicators.{}", entry.key);
        if entry.key.trim().is_empty() {
            reader.report.error_at(entry.at, "indicators", "has a query without a name: write one in front of the `:`".into());
        }
        let query = entry.value.scalar().unwrap_or_default();
        if query.trim().is_empty() && (entry.value.is_null() || entry.value.scalar().is_some()) {
            reader.report.error(&entry.value, path, "has no query: write one, or leave the indicator out".into());
            continue;
        }
        for word in placeholders(query) {
            let known = NAMES.iter().any(|name| word.starts_with(name)) || word.starts_with("LABEL");
            if let Some(meant) = nearest(word, NAMES).filter(|_| !known) {
                let message = format!("uses `${word}`, which stands for nothing unless `filter` has it: write `${meant}`");
                reader.report.warning(&entry.value, path.clone(), message);
            }
        }
        if query.contains("$LABEL") && !query.contains("$LABEL.") {
            reader.report.warning(&entry.value, path, "uses `$LABEL` without a label: write `$LABEL.name`".into());
        }
    }
    queries
}

/// The words in capitals behind each `$`.
fn placeholders(query: &str) -> impl Iterator<Item = &str> {
    let of = |rest: &'_ str| rest.find(|c: char| !c.is_ascii_uppercase() && c != '_').unwrap_or(rest.len());
    query.split('$').skip(1).map(move |rest| &rest[..of(rest)]).filter(|word| !word.is_empty())
}
