//! Lists of mappings.

use super::super::finding::Report;
use super::super::tree::Node;
use super::Level;
use super::shipyards::TRIGGER;

/// The entries of a list. Anything else is a finding with the remedy.
pub fn items<'n>(node: &'n Node, path: &str, level: &Level, report: &mut Report) -> Option<Vec<&'n Node>> {
    if node.list().is_none() {
        let event = node.scalar().or_else(|| node.entries().and_then(|entries| Some(entries.first()?.key.as_str())));
        let example = level.head.example;
        let remedy = match node.entries() {
            _ if *level == TRIGGER && event.is_some_and(|event| event.contains('.')) => {
                format!("write `- event: {}`", event.unwrap_or_default())
            }
            Some(_) => format!("put `- ` before each entry, like `- {example}`"),
            None => format!("write entries like `- {example}` below it"),
        };
        report.error(node, path, format!("is {}, not a list: {remedy}", node.what()));
        node.entries()?;
    }
    Some(items_of(Some(node), level))
}

/// The entries of a list. A mapping in its place is read as its author meant it, so that all mistakes are found at once: as one
/// entry without its `-`, or as entries under their names.
pub fn items_of<'n>(node: Option<&'n Node>, level: &Level) -> Vec<&'n Node> {
    let Some(node) = node else { return vec![] };
    match (node.list(), node.entries()) {
        (Some(items), _) => items.iter().collect(),
        (_, Some(entries)) if entries.iter().any(|entry| level.has(&entry.key)) => vec![node],
        (_, Some(entries)) if *level != TRIGGER => {
            entries.iter().map(|entry| &entry.value).filter(|value| value.entries().is_some()).collect()
        }
        _ => vec![],
    }
}
