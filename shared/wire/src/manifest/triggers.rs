//! `triggeredOn`: each entry by itself, then all of them against the sequences they name.

use super::fields::{self, Level};
use super::finding::Report;
use super::names::nearest;
use super::outline::{Outline, items};
use super::tree::{Entry, Node};
use keelway_domain::event::{PREFIX, TaskResult};
use keelway_domain::names::TaskName;
use keelway_domain::shipyard::{EVALUATION, MAX_FOLLOW_UPS, MAX_FOLLOW_UPS_PER_STAGE, Match, Trigger};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The most names compared to find a similar one: a large shipyard with many typing errors must not take minutes.
const MOST_CANDIDATES: usize = 500;
/// An event's type has at most 128 characters on the bus.
const LONGEST_EVENT: usize = 128 - PREFIX.len();

/// The entries of a sequence's `triggeredOn`; `None` when one is refused.
pub fn read(sequence: &Node, path: &str, report: &mut Report) -> Option<Vec<Trigger>> {
    let Some(list) = sequence.get("triggeredOn").filter(|list| !list.is_null()) else {
        return Some(vec![]);
    };
    let triggers = items(list, path, "event: dev.delivery.finished", report)?;
    let triggers = triggers.iter().enumerate().map(|(i, node)| trigger(node, &format!("{path}[{i}]"), report));
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
        let message = format!("is not a field of {}: write `- event: {}`", Level::Trigger.what(), entry.key);
        report.error_at(entry.at, format!("{path}.{}", entry.key), message);
        return None;
    }
    fields::check(node, Level::Trigger, path, report);
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

/// Why this cannot be an event's name.
fn event_fault(event: &str) -> Option<String> {
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

/// `None` when refused, `Some(None)` when there is none.
fn selector(trigger: &Node, path: &str, report: &mut Report) -> Option<Option<Vec<Match>>> {
    let Some(selector) = trigger.get("selector").filter(|selector| !selector.is_null()) else {
        return Some(None);
    };
    if selector.entries().is_none() {
        let message = format!("is {}: write `match:` below it, and below that `result: fail`", selector.what());
        report.error(selector, path, message);
        return None;
    }
    fields::check(selector, Level::Selector, path, report);
    let path = format!("{path}.match");
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

/// One entry of one sequence's `triggeredOn`, by its place among the outlines.
struct Edge<'n> {
    listener: usize,
    event: &'n str,
    node: &'n Node,
    path: String,
}

/// What can only be said of all sequences together: targets that do not exist, loops, too many listeners.
pub fn check(stages: &[String], outlines: &[Outline], report: &mut Report) {
    let known = Known::of(stages, outlines);
    let edges = edges(outlines);
    for edge in &edges {
        known.target(edge, report);
        known.selected_tasks(edge, report);
    }
    let before = report.errors();
    crowded(outlines, &edges, report);
    if report.errors() == before {
        loops(outlines, &edges, &known, report);
    }
}

fn edges<'n>(outlines: &[Outline<'n>]) -> Vec<Edge<'n>> {
    let mut edges = vec![];
    for (listener, outline) in outlines.iter().enumerate() {
        let list = outline.node.get("triggeredOn").and_then(Node::list).unwrap_or_default();
        for (i, node) in list.iter().enumerate() {
            let at = node.get("event").unwrap_or(node);
            let path = format!("{}.triggeredOn[{i}]", outline.path);
            edges.extend(at.scalar().filter(|event| event_fault(event.trim()).is_none()).map(|event| Edge {
                listener,
                event: event.trim(),
                node,
                path,
            }));
        }
    }
    edges
}

/// Who sends which `.finished`.
struct Known<'o> {
    stages: HashSet<&'o str>,
    /// By `<stage>.<sequence>`.
    sequences: HashMap<String, usize>,
    /// By `<stage>.<task>`: the sequences that have the task.
    tasks: BTreeMap<String, Vec<usize>>,
    outlines: &'o [Outline<'o>],
}

impl<'o> Known<'o> {
    fn of(stages: &'o [String], outlines: &'o [Outline<'o>]) -> Self {
        let mut tasks: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (i, outline) in outlines.iter().enumerate() {
            for task in &outline.tasks {
                let users = tasks.entry(format!("{}.{task}", outline.stage)).or_default();
                if users.last() != Some(&i) {
                    users.push(i);
                }
            }
        }
        let sequences = outlines.iter().enumerate().map(|(i, o)| (format!("{}.{}", o.stage, o.sequence), i)).collect();
        Self { stages: stages.iter().map(String::as_str).collect(), sequences, tasks, outlines }
    }

    /// The sequences whose end, or the end of whose task, is this event.
    fn senders(&self, event: &str) -> Vec<usize> {
        let Some(name) = event.strip_suffix(".finished") else {
            return vec![];
        };
        match self.sequences.get(name) {
            Some(sequence) => vec![*sequence],
            None => self.tasks.get(name).cloned().unwrap_or_default(),
        }
    }

    /// Warns of an entry that waits for what never comes: Keptn took it, and the stages behind it never started.
    fn target(&self, edge: &Edge, report: &mut Report) {
        if report.is_full() {
            return;
        }
        let parts: Vec<&str> = edge.event.split('.').collect();
        let (at, path) = (edge.node.get("event").unwrap_or(edge.node), &edge.path);
        let message = match parts[..] {
            [stage, sequence, "finished"] => {
                let implicit = sequence == EVALUATION && self.stages.contains(stage);
                if implicit || !self.senders(edge.event).is_empty() {
                    return;
                }
                let missing = if self.stages.contains(stage) {
                    format!("stage {stage:?} has no sequence or task {sequence:?}")
                } else {
                    format!("there is no stage {stage:?}")
                };
                format!("nothing sends {:?}, so this never starts: {missing}{}", edge.event, self.suggestion(edge))
            }
            [stage, sequence, kind @ ("triggered" | "started")] if self.stages.contains(stage) => {
                format!(
                    "starts nothing: a sequence follows the end of another, not that it is {kind}; write `{stage}.{sequence}.finished`"
                )
            }
            [name, "finished"] => {
                format!("names no stage, so this never starts: write `<stage>.{name}.finished`{}", self.suggestion(edge))
            }
            [_] => {
                let remedy = self.suggestion(edge);
                format!(
                    "{:?} would have to be a domain event of that name: for the end of a sequence write `<stage>.<sequence>.finished`{remedy}",
                    edge.event
                )
            }
            _ => return,
        };
        report.warning(at, path.clone(), message);
    }

    /// "; did you mean …?", or sequences of that name elsewhere. Never the listener itself.
    fn suggestion(&self, edge: &Edge) -> String {
        let name = edge.event.strip_suffix(".finished").unwrap_or(edge.event);
        let (stage, last) = name.rsplit_once('.').unwrap_or(("", name));
        let mut others: Vec<(&str, usize)> = self.sequences.iter().map(|(name, i)| (name.as_str(), *i)).collect();
        others.sort_by_key(|(_, i)| *i);
        let others = others.iter().filter(|(_, i)| *i != edge.listener).map(|(name, _)| *name);
        let others: Vec<&str> = others.take(MOST_CANDIDATES).collect();
        let tasks = self.tasks.keys().map(String::as_str).take(MOST_CANDIDATES);
        if let Some(near) = nearest(name, others.iter().copied()).or_else(|| nearest(name, tasks)) {
            return format!("; did you mean `{near}.finished`?");
        }
        let same = others.iter().copied().filter(|known| known.rsplit('.').next() == Some(last));
        let (mut near, far): (Vec<&str>, Vec<&str>) = same.partition(|known| !stage.is_empty() && known.starts_with(stage));
        near.extend(far);
        near.truncate(3);
        match near.len() {
            0 => String::new(),
            _ => format!("; there is `{}.finished`", near.join(".finished`, `")),
        }
    }

    /// Warns of a selector on a task the awaited sequence does not have.
    fn selected_tasks(&self, edge: &Edge, report: &mut Report) {
        let Some(name) = edge.event.strip_suffix(".finished") else {
            return;
        };
        let Some(sender) = self.sequences.get(name).map(|i| &self.outlines[*i]) else {
            return;
        };
        let matches = edge.node.get("selector").and_then(|selector| selector.get("match")).and_then(Node::entries);
        for entry in matches.unwrap_or_default() {
            let Some(task) = entry.key.strip_suffix(".result").filter(|task| TaskName::new(*task).is_ok()) else {
                continue;
            };
            if !sender.tasks.iter().any(|known| known == task) {
                let have = sender.tasks.join("`, `");
                let message = format!("never matches: sequence {name:?} has no task {task:?}, it has `{have}`");
                report.warning_at(entry.at, format!("{}.selector.match.{}", edge.path, entry.key), message);
            }
        }
    }
}

fn crowded(outlines: &[Outline], edges: &[Edge], report: &mut Report) {
    let mut listeners: HashMap<(&str, &str), HashSet<usize>> = HashMap::new();
    let mut everywhere: HashMap<&str, HashSet<usize>> = HashMap::new();
    for edge in edges {
        // The same event may be named with or without the common prefix.
        let all = everywhere.entry(edge.event.strip_prefix(PREFIX).unwrap_or(edge.event)).or_default();
        if all.insert(edge.listener) && all.len() == MAX_FOLLOW_UPS + 1 {
            let message =
                format!("is one sequence too many: at most {MAX_FOLLOW_UPS} sequences may be triggered on {:?}", edge.event);
            report.error(edge.node, edge.path.clone(), message);
        }
        let stage = outlines[edge.listener].stage.as_str();
        let listening = listeners.entry((stage, edge.event)).or_default();
        if listening.insert(edge.listener) && listening.len() == MAX_FOLLOW_UPS_PER_STAGE + 1 {
            let event = edge.event;
            let message = format!(
                "is one sequence too many: at most {MAX_FOLLOW_UPS_PER_STAGE} sequences of one stage, here {stage:?}, may be triggered on {event:?}"
            );
            report.error(edge.node, edge.path.clone(), message);
        }
    }
}

/// Warns of each entry that closes a loop in which no entry has a selector: it goes round for as long as all passes.
fn loops(outlines: &[Outline], edges: &[Edge], known: &Known, report: &mut Report) {
    let open: Vec<&Edge> = edges.iter().filter(|edge| edge.node.get("selector").is_none_or(Node::is_null)).collect();
    // Nodes are sequences, then events: sequence → event it sends → sequence that listens. Linear in the text.
    // Sorted, so that the same text always gets the same findings.
    let mut events: BTreeMap<&str, usize> = BTreeMap::new();
    for edge in &open {
        let next = outlines.len() + events.len();
        events.entry(edge.event).or_insert(next);
    }
    let mut next: Vec<Vec<(usize, Option<&Edge>)>> = vec![vec![]; outlines.len() + events.len()];
    for edge in &open {
        next[events[edge.event]].push((edge.listener, Some(edge)));
    }
    for (event, node) in &events {
        for sender in known.senders(event) {
            next[sender].push((*node, None));
        }
    }
    let mut state = vec![0u8; next.len()];
    for start in 0..outlines.len() {
        if state[start] != 0 {
            continue;
        }
        state[start] = 1;
        let mut path: Vec<(usize, usize, Option<&Edge>)> = vec![(start, 0, None)];
        while let Some((node, i, by)) = path.pop() {
            let Some((to, via)) = next[node].get(i).copied() else {
                state[node] = 2;
                continue;
            };
            path.push((node, i + 1, by));
            let via = via.or(by);
            match state[to] {
                0 => {
                    state[to] = 1;
                    path.push((to, 0, via));
                }
                1 => {
                    // Back to where the walk came through: the entry that led here, or leads on from here, closes the loop.
                    let closing = via.or_else(|| path.iter().rev().find_map(|(_, _, by)| *by));
                    if let Some(edge) = closing {
                        report.warning(edge.node, edge.path.clone(), loop_message(outlines, edge));
                    }
                }
                _ => (),
            }
        }
    }
}

fn loop_message(outlines: &[Outline], edge: &Edge) -> String {
    let listener = &outlines[edge.listener];
    format!(
        "closes a loop: \"{}.{}\" starts itself again each time all passes; give one entry of the loop a selector, for example `result: fail`",
        listener.stage, listener.sequence
    )
}
