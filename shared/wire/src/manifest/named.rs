//! Entries of lists that have a name: stages, sequences, tasks.

use super::finding::Report;
use super::levels::Level;
use super::names::repaired;
use super::objects::with_example;
use super::tree::Node;
use keelway_domain::names::{NameError, RESERVED_TASK_NAMES};
use std::collections::HashMap;

/// An entry of a list must be a mapping.
pub fn entry(node: &Node, level: &Level, path: &str, report: &mut Report) -> Option<()> {
    if node.entries().is_some() {
        return Some(());
    }
    let remedy = match node.scalar() {
        Some(text) if is_name(text) => format!("write `- name: {text}`"),
        _ if node.is_null() => "take out the `-`, or write a `name` behind it".into(),
        _ => "write its fields behind the `-`, beginning with `name`".into(),
    };
    report.error(node, path, format!("is {}, not {}: {remedy}", node.what(), level.what()));
    None
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

pub fn name_of<'n>(node: &'n Node, level: &Level, path: &str, report: &mut Report) -> Option<&'n str> {
    let name = node.get("name");
    let text = name.and_then(Node::scalar);
    if text.is_none() {
        let message = match name.filter(|name| !name.is_null()) {
            Some(name) => format!("is {}, not a name: write one word behind `name:`", name.what()),
            None => format!("is missing: {} needs a name; write `name:` and one word", level.what()),
        };
        report.error(name.filter(|name| !name.is_null()).unwrap_or(node), format!("{path}.name"), message);
    }
    text
}

/// Checks a name by its rule. The refusal proposes a valid one.
pub fn checked<N>(
    node: &Node,
    name: &str,
    new: impl Fn(String) -> Result<N, NameError>,
    (lower, separators): (bool, &str),
    path: &str,
    report: &mut Report,
) -> Option<N> {
    new(name.to_owned())
        .map_err(|error| {
            let other = if RESERVED_TASK_NAMES.contains(&name) { None } else { repaired(name, lower, separators) };
            let example = other.filter(|other| other != name && new(other.clone()).is_ok());
            let at = node.get("name").unwrap_or(node);
            report.error(at, format!("{path}.name"), with_example(error.to_string(), example));
        })
        .ok()
}

/// Reports a name that stands twice.
pub fn unique(node: &Node, name: &str, what: &str, scope: &str, path: &str, seen: &mut HashMap<String, u64>, report: &mut Report) {
    let at = node.get("name").unwrap_or(node);
    match seen.get(name) {
        Some(line) => {
            let message =
                format!("{what} {name:?} stands twice in {scope}, first in line {line}: give this one another name, or join them");
            report.error(at, format!("{path}.name"), message);
        }
        None => {
            seen.insert(name.to_owned(), at.at.line);
        }
    }
}
