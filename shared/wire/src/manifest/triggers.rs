//! `triggeredOn`: each entry by itself.

use super::finding::Report;
use super::levels::{self, shipyards};
use super::names::nearest;
use super::tree::{Entry, Node};
use keelway_domain::event::{PREFIX, TaskResult};
use keelway_domain::names::TaskName;
use keelway_domain::shipyard::{Match, Trigger};

/// An event's type has at most 128 characters on the bus.
const LONGEST_EVENT: usize = 128 - PREFIX.len();

/// The conditions of an entry of `triggeredOn`; `None` if it has no selector.
pub fn conditions(trigger: &Node) -> Option<&Node> {
    trigger.get("selector")?.get("match").filter(|conditions| !conditions.is_null())
}

/// The entries of a sequence's `triggeredOn`; `None` when one is refused.
pub fn read(sequence: &Node, path: &str, report: &mut Report) -> Option<Vec<Trigger>> {
    let Some(list) = sequence.get("triggeredOn").filter(|list| !list.is_null()) else {
        return Some(vec![]);
    };
    let triggers = levels::items(list, path, &shipyards::TRIGGER, report)?;
    let triggers = triggers.into_iter().enumerate().map(|(i, node)| trigger(node, &format!("{path}[{i}]"), report));
    triggers.collect::<Vec<_>>().into_iter().collect()
}

fn trigger(node: &Node, path: &str, report: &mut Report) -> Option<Trigger> {
    if let Some(event) = node.scalar() {
        return Some(Trigger { event: event_name(node, event, path, report)?, selector: None });
    }
    let Some(entries) = node.entries() else {
        let message = format!("is {}: write `- event: dev.delivery.finished`", node.what());
        report.error(node, path, message);
        return None;
    };
    if let Some(entry) = entries.iter().find(|entry| entry.key.split('.').count() > 1 && node.get("event").is_none()) {
        let message = format!("is not a field of {}: write `- event: {}`", &shipyards::TRIGGER.what(), entry.key);
        report.error_at(entry.at, format!("{path}.{}", entry.key), message);
        return None;
    }
    levels::check(node, &shipyards::TRIGGER, path, report);
    let selector = selector(node, &format!("{path}.selector"), report);
    let path = format!("{path}.event");
    let event = node.get("event").filter(|event| !event.is_null());
    let Some(text) = event.and_then(Node::scalar) else {
        let message = match event {
            Some(event) => {
                format!("is {}, not the name of an event: write for example `event: dev.delivery.finished`", event.what())
            }
            None => "is missing: write what starts the sequence, for example `event: dev.delivery.finished`".into(),
        };
        report.error(event.unwrap_or(node), path, message);
        return None;
    };
    Some(Trigger { event: event_name(event.unwrap_or(node), text, &path, report)?, selector: selector? })
}

fn event_name(node: &Node, text: &str, path: &str, report: &mut Report) -> Option<String> {
    let mut event = text.trim();
    if let Some(rest) = event.strip_prefix(PREFIX) {
        let message = format!("carries the prefix of event types, which is understood but left out here: write `{rest}`");
        report.warning(node, path, message);
        event = rest;
    }
    match event_fault(event) {
        Some(fault) => {
            report.error(node, path, fault);
            None
        }
        None => Some(event.to_owned()),
    }
}

/// Why a text cannot be the name of an event.
pub fn event_fault(event: &str) -> Option<String> {
    if event.is_empty() {
        return Some("is empty: write what starts the sequence, for example `dev.delivery.finished`".into());
    }
    if let Some(odd) = event.chars().find(|c| c.is_whitespace() || c.is_control() || "<>\"'`{}|,".contains(*c)) {
        return Some(format!("{event:?} contains {odd:?}: an event is one name with dots, for example `dev.delivery.finished`"));
    }
    if event.chars().count() > LONGEST_EVENT {
        return Some(format!("has {} characters: at most {LONGEST_EVENT} fit into an event's type", event.chars().count()));
    }
    let gap = event.split('.').any(str::is_empty);
    gap.then(|| format!("{event:?} has nothing between two dots or at an end: write it like `dev.delivery.finished`"))
}

/// The conditions of the selector. `None` if it is refused, `Some(None)` if there is none.
fn selector(trigger: &Node, path: &str, report: &mut Report) -> Option<Option<Vec<Match>>> {
    let Some(selector) = trigger.get("selector").filter(|selector| !selector.is_null()) else {
        return Some(None);
    };
    if selector.entries().is_none() {
        let message = format!("is {}: write `match:` below it, and below that `result: fail`", selector.what());
        report.error(selector, path, message);
        return None;
    }
    levels::check(selector, &shipyards::SELECTOR, path, report);
    let path = format!("{path}.match");
    if selector.get("match").is_some_and(Node::is_null) {
        // To Keptn, this is no selector.
        return Some(None);
    }
    let entries = selector.get("match").and_then(Node::entries).unwrap_or_default();
    if entries.is_empty() {
        let at = selector.get("match").unwrap_or(selector);
        let misplaced = selector.entries().unwrap_or_default().iter().any(|entry| entry.key.ends_with("result"));
        if selector.get("match").is_some() || !misplaced {
            let message = "matches nothing: write `result: fail` below `match:`, or leave the selector out to follow a pass";
            report.error(at, path, message.into());
        }
        return None;
    }
    let matches = entries.iter().map(|entry| one_match(entry, &path, report));
    matches.collect::<Vec<_>>().into_iter().collect::<Option<Vec<_>>>().map(Some)
}

fn one_match(entry: &Entry, path: &str, report: &mut Report) -> Option<Match> {
    let path = format!("{path}.{}", entry.key);
    let task = match entry.key.as_str() {
        "result" => None,
        key => match key.strip_suffix(".result").map(TaskName::new) {
            Some(Ok(task)) => Some(task),
            _ => {
                let remedy = match key {
                    "status" => "a sequence is told by its result: write `result`".into(),
                    _ if nearest(key, ["result"]).is_some() => "write `result`".into(),
                    _ => "write `result`, or a task's, for example `evaluation.result`".to_owned(),
                };
                report.error_at(entry.at, path, format!("is not something a selector can match: {remedy}"));
                return None;
            }
        },
    };
    let text = entry.value.scalar().unwrap_or_default().trim();
    let result = match text {
        "pass" => Some(TaskResult::Pass),
        "warning" => Some(TaskResult::Warning),
        "fail" => Some(TaskResult::Fail),
        "failed" => {
            report.warning(&entry.value, path, "`failed` is read as `fail`: write `fail`".into());
            Some(TaskResult::Fail)
        }
        _ => {
            let meant = match text.to_lowercase().as_str() {
                "failure" | "error" | "errored" | "false" | "ko" => Some("fail"),
                "passed" | "success" | "succeeded" | "successful" | "ok" | "true" => Some("pass"),
                "warn" | "warnings" => Some("warning"),
                other => nearest(other, ["pass", "warning", "fail"]),
            };
            let remedy = meant.map_or("`pass`, `warning` or `fail`".into(), |word| format!("`{word}`"));
            let given = entry.value.scalar().map_or_else(|| entry.value.what().to_owned(), |text| format!("{text:?}"));
            report.error(&entry.value, path, format!("{given} is not a result: write {remedy}"));
            None
        }
    };
    Some(Match { task, result: result? })
}
