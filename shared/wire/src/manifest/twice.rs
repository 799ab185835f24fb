//! Fields that occur twice. Such a document is refused, but all of their values are looked into, so that everything wrong is told
//! at once: lists and mappings are joined, as the remedy says; of anything else, each value is tried in turn.

use super::tree::{Entry, Node, Yaml};
use std::collections::HashMap;

/// The most values of one field that are tried.
const MOST: usize = 8;

/// Adds a later value of a field to its first.
pub fn join(first: &mut Node, later: Node) {
    match (&mut first.value, later.value) {
        (_, Yaml::Null) => (),
        (Yaml::List(items), Yaml::List(more)) => items.extend(more),
        (Yaml::Map(entries), Yaml::Map(more)) => join_entries(entries, more),
        (value @ Yaml::Null, other) => {
            *value = other;
            first.at = later.at;
        }
        (_, value) if first.others.len() < MOST => first.others.push((later.at, value)),
        _ => (),
    }
}

fn join_entries(entries: &mut Vec<Entry>, more: Vec<Entry>) {
    let mut places: HashMap<String, usize> = entries.iter().enumerate().map(|(i, entry)| (entry.key.clone(), i)).collect();
    for entry in more {
        match places.get(&entry.key) {
            Some(place) => join(&mut entries[*place].value, entry.value),
            None => {
                places.insert(entry.key.clone(), entries.len());
                entries.push(entry);
            }
        }
    }
}

/// The document with the second values of such fields, with the third ones, and so on.
pub fn alternatives(root: &Node) -> Vec<Node> {
    (0..most(root)).map(|n| alternative(root, n)).collect()
}

fn most(node: &Node) -> usize {
    let below = match &node.value {
        Yaml::List(items) => items.iter().map(most).max(),
        Yaml::Map(entries) => entries.iter().map(|entry| most(&entry.value)).max(),
        _ => None,
    };
    node.others.len().max(below.unwrap_or(0))
}

fn alternative(node: &Node, n: usize) -> Node {
    let mut node = node.clone();
    if let Some((at, value)) = node.others.get(n).cloned() {
        (node.at, node.value) = (at, value);
    }
    match &mut node.value {
        Yaml::List(items) => items.iter_mut().for_each(|item| *item = alternative(item, n)),
        Yaml::Map(entries) => entries.iter_mut().for_each(|entry| entry.value = alternative(&entry.value, n)),
        _ => (),
    }
    node
}
