//! Unknown and missing fields.

use super::super::finding::Report;
use super::super::names::nearest;
use super::super::tree::{Entry, Node};
use super::super::values;
use super::{LEVELS, Level, Shape, items};

/// Reports every field that the level does not have, and every needed one that `node` does not have.
pub fn check(node: &Node, level: &'static Level, path: &str, report: &mut Report) {
    for entry in node.entries().unwrap_or_default() {
        let key = entry.key.as_str();
        if !level.has(key) && !level.head.former.contains(&key) {
            unknown(entry, level, path, report);
        }
    }
    for field in level.fields.iter().filter(|field| field.remedy.is_some()) {
        if node.get(field.name).is_none_or(|value| value.is_null() || is_empty(value, &field.shape)) {
            missing(node, level, field.name, path, report);
        }
    }
}

/// Whether a value is there and says nothing: an empty text, or a list without the entries that it needs.
fn is_empty(value: &Node, shape: &Shape) -> bool {
    match shape {
        Shape::Any | Shape::Text | Shape::Needed | Shape::Pattern(..) => value.scalar().is_some_and(|text| text.trim().is_empty()),
        Shape::Entries(_, least) | Shape::List(_, least) => *least > 0 && value.list().is_some_and(<[Node]>::is_empty),
        _ => false,
    }
}

/// Reports that a field is missing or empty, and what to write.
pub fn missing(node: &Node, level: &Level, field: &str, path: &str, report: &mut Report) {
    let Some(remedy) = level.field(field).and_then(|field| field.remedy) else { return };
    let given = node.get(field);
    let wrong = if given.is_none_or(Node::is_null) { "missing" } else { "empty" };
    report.error(given.unwrap_or(node), format!("{path}.{field}"), format!("is {wrong}: {remedy}"));
}

/// The mapping under `field`, checked, with its path.
pub fn mapping<'n>(
    node: &'n Node,
    field: &str,
    level: &'static Level,
    path: &str,
    report: &mut Report,
) -> Option<(&'n Node, String)> {
    let path = format!("{path}.{field}");
    let node = values::mapping(node, field, &path, report)?;
    check(node, level, &path, report);
    Some((node, path))
}

/// The entries of the list under `field`, checked, with their paths. An entry that is no mapping is a finding.
pub fn entries<'n>(node: &'n Node, field: &str, level: &'static Level, path: &str, report: &mut Report) -> Vec<(&'n Node, String)> {
    let path = format!("{path}.{field}");
    let Some(list) = node.get(field).filter(|list| !list.is_null()) else { return vec![] };
    let mut all = vec![];
    for (place, entry) in items(list, &path, level, report).unwrap_or_default().into_iter().enumerate() {
        let path = format!("{path}[{place}]");
        if entry.entries().is_none() {
            let example = level.head.example;
            report.error(entry, path, format!("is {}, not a mapping: write for example `- {example}`", entry.what()));
            continue;
        }
        check(entry, level, &path, report);
        all.push((entry, path));
    }
    all
}

/// Tells what an unknown field was meant to be: an error if it resembles a field or belongs elsewhere, else a warning unless the
/// level is strict.
fn unknown(entry: &Entry, level: &Level, path: &str, report: &mut Report) {
    let key = entry.key.as_str();
    if let Some(rest) = key.strip_prefix('-').filter(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic())) {
        let message = format!("is read as a field named `{key}`: put a blank after the `-`, `- {rest}:`");
        report.error_at(entry.at, format!("{path}.{key}"), message);
        return;
    }
    let path = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    let meant = alias(level, key).or_else(|| nearest(key, level.names()));
    // Exactly known elsewhere beats resembling something here, unless it is only written differently.
    let elsewhere = misplaced(key, level, meant.is_some());
    let what = level.what();
    let message = match (meant, elsewhere) {
        (_, Some(home)) => format!("is not a field of {what}: it belongs {}", home.place()),
        (Some(field), None) => format!("is not a field of {what}: write `{field}`"),
        (None, None) => {
            let fields = level.names().collect::<Vec<_>>().join("`, `");
            if !level.head.strict {
                let hint = level.head.hint;
                report.warning_at(entry.at, path, format!("is not a field of {what} and is ignored: it has `{fields}`{hint}"));
                return;
            }
            format!("is not a field of {what}: leave it out; it has `{fields}`")
        }
    };
    report.error_at(entry.at, path, message);
}

/// The field that a word means without resembling its name.
fn alias(level: &Level, key: &str) -> Option<&'static str> {
    let key = key.to_lowercase().replace(['_', '-'], "");
    level.fields.iter().find(|field| field.also.contains(&key.as_str())).map(|field| field.name)
}

/// The nearest level above or below that has the field.
fn misplaced(key: &str, level: &Level, resembles: bool) -> Option<&'static Level> {
    let key = key.strip_suffix(".result").map_or(key, |task| if task.is_empty() { key } else { "result" });
    let homes = LEVELS.iter().copied().flatten().copied().filter_map(|home| {
        let known =
            if resembles { home.has(key) } else { nearest(key, home.names()).is_some_and(|field| field.len() > 4 || field == key) };
        level.distance(home).filter(|distance| (1..=2).contains(distance) && known).map(|distance| (distance, home))
    });
    homes.min_by_key(|(distance, _)| *distance).map(|(_, home)| home)
}
