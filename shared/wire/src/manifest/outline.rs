//! What the checks of one sequence leave for the checks between sequences.

use super::finding::Report;
use super::tree::Node;

/// A sequence as checked so far, and its position: kept even if its parts are refused, for the checks between sequences.
pub struct Outline<'n> {
    pub stage: String,
    pub sequence: String,
    pub tasks: Vec<String>,
    pub node: &'n Node,
    pub path: String,
}

/// The entries of a list; what is no list is a finding with the remedy.
pub fn items<'n>(node: &'n Node, path: &str, example: &str, report: &mut Report) -> Option<&'n [Node]> {
    if node.list().is_none() {
        let event = node.scalar().or_else(|| node.entries().and_then(|entries| Some(entries.first()?.key.as_str())));
        let remedy = match node.entries() {
            _ if path.ends_with("triggeredOn") && event.is_some_and(|event| event.contains('.')) => {
                format!("write `- event: {}`", event.unwrap_or_default())
            }
            Some(_) => format!("put `- ` before each entry, like `- {example}`"),
            None => format!("write entries like `- {example}` below it"),
        };
        report.error(node, path, format!("is {}, not a list: {remedy}", node.what()));
    }
    node.list()
}
