//! Values under a field: mappings, texts, numbers, words, durations.

use super::finding::Report;
use super::tree::{Node, Yaml};
use keelway_domain::time::Span;
use std::collections::BTreeMap;

/// The mapping under `field`; `None` when absent or empty, with a finding when it is something else.
pub fn mapping<'n>(node: &'n Node, field: &str, path: &str, report: &mut Report) -> Option<&'n Node> {
    let value = node.get(field).filter(|value| !value.is_null())?;
    if value.entries().is_none() {
        let remedy = match value.list() {
            Some(_) => "leave out the `-` in front of its fields",
            None => "write its fields below it, indented",
        };
        report.error(value, path, format!("is {}, not a mapping: {remedy}", value.what()));
        return None;
    }
    Some(value)
}

/// The scalar under `field`, as written.
pub fn text(node: &Node, field: &str, path: &str, report: &mut Report) -> Option<String> {
    let value = node.get(field).filter(|value| !value.is_null())?;
    if value.scalar().is_none() {
        report.error(
            value,
            format!("{path}.{field}"),
            format!("is {}, not a text: write one value behind `{field}:`", value.what()),
        );
    }
    value.scalar().map(str::to_owned)
}

/// The duration under `field`.
pub fn duration(node: &Node, field: &str, path: &str, report: &mut Report) -> Option<Span> {
    let written = text(node, field, path, report)?;
    let value = node.get(field)?;
    Span::parse(written.trim())
        .map_err(|error| {
            let digits = !written.is_empty() && written.chars().all(|c| c.is_ascii_digit());
            let example = if digits { format!("; for seconds `{written}s`") } else { String::new() };
            report.error(value, format!("{path}.{field}"), format!("{error}{example}"));
        })
        .ok()
}

/// A duration of which 0 makes no sense.
pub fn positive(node: &Node, field: &str, path: &str, report: &mut Report) -> Option<Span> {
    let span = duration(node, field, path, report)?;
    if span.0 == 0 {
        let at = node.get(field).unwrap_or(node);
        report.error(at, format!("{path}.{field}"), "is 0: write a longer time, or leave it out".into());
    }
    Some(span)
}

/// A task's timeout: 0 is for ever, which is worth a warning.
pub fn timeout(node: &Node, field: &str, path: &str, report: &mut Report) -> Option<Span> {
    let span = duration(node, field, path, report)?;
    if span.0 == 0 {
        let at = node.get(field).unwrap_or(node);
        let message = "is 0, that is never: a task whose executor died then holds its stage until somebody aborts it; write for example `24h`";
        report.warning(at, format!("{path}.{field}"), message.into());
    }
    Some(span)
}

/// `true` or `false`; absent: `false`.
pub fn flag(node: &Node, field: &str, path: &str, report: &mut Report) -> bool {
    match node.get(field).map(|node| (&node.value, node)) {
        None | Some((Yaml::Null, _)) => false,
        Some((Yaml::Bool(flag, _), _)) => *flag,
        Some((_, at)) => {
            report.error(at, format!("{path}.{field}"), format!("is {}: write `true` or `false`", at.what()));
            false
        }
    }
}

/// The place of the given word among `words`.
pub fn word(node: &Node, field: &str, path: &str, words: &[&str], report: &mut Report) -> Option<usize> {
    let given = text(node, field, path, report)?;
    let found = words.iter().position(|word| *word == given);
    if found.is_none() {
        let at = node.get(field).unwrap_or(node);
        report.error(at, format!("{path}.{field}"), format!("{given:?} is not known: write `{}`", words.join("` or `")));
    }
    found
}

/// Seconds above this are refused: 365 days.
const MOST_SECONDS: i64 = 365 * 24 * 3600;

/// The whole number under `field`, between `least` and the largest of 32 bits; a text that is one counts as one.
pub fn whole(node: &Node, field: &str, path: &str, least: i64, report: &mut Report) -> Option<i64> {
    let written = text(node, field, path, report)?;
    let number = written.trim().parse::<i64>().ok().filter(|number| (least..=i64::from(i32::MAX)).contains(number));
    if number.is_none() {
        let at = node.get(field).unwrap_or(node);
        report.error(at, format!("{path}.{field}"), format!("{written:?} is not a whole number of at least {least}: write one"));
    }
    number
}

/// The number of seconds under `field`.
pub fn seconds(node: &Node, field: &str, path: &str, report: &mut Report) -> Option<i64> {
    let seconds = whole(node, field, path, 1, report)?;
    if seconds > MOST_SECONDS {
        let at = node.get(field).unwrap_or(node);
        report.error(at, format!("{path}.{field}"), format!("is {seconds}: at most {MOST_SECONDS} seconds (365 days) are taken"));
    }
    Some(seconds.min(MOST_SECONDS))
}

/// Names and values under `field`, labels for example; values as written.
pub fn texts(node: &Node, field: &str, path: &str, report: &mut Report) -> BTreeMap<String, String> {
    let path = format!("{path}.{field}");
    let Some(node) = mapping(node, field, &path, report) else { return BTreeMap::new() };
    let mut all = BTreeMap::new();
    for entry in node.entries().unwrap_or_default() {
        if entry.value.scalar().is_none() && !entry.value.is_null() {
            let message = format!("is {}, not a text: write one value behind `{}:`", entry.value.what(), entry.key);
            report.error(&entry.value, format!("{path}.{}", entry.key), message);
        }
        all.insert(entry.key.clone(), entry.value.scalar().unwrap_or_default().to_owned());
    }
    all
}

/// The list of texts under `field`, none of them empty.
pub fn words(node: &Node, field: &str, path: &str, report: &mut Report) -> Vec<String> {
    let path = format!("{path}.{field}");
    let Some(list) = node.get(field).filter(|list| !list.is_null()) else { return vec![] };
    if list.list().is_none() {
        report.error(list, path.clone(), format!("is {}, not a list: put `- ` before each entry", list.what()));
    }
    let mut all = vec![];
    for (place, entry) in list.list().unwrap_or_default().iter().enumerate() {
        match entry.scalar() {
            Some(text) if !text.is_empty() => all.push(text.to_owned()),
            _ => report.error(entry, format!("{path}[{place}]"), format!("is {}: write a text, or leave it out", entry.what())),
        }
    }
    all
}
