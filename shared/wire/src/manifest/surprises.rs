//! Warnings about shipyards that are valid and do not do what their author expects.

use super::finding::Report;
use super::levels::{items_of, shipyards};
use super::outline::{Edge, Outline};
use super::tree::Node;
use super::triggers::conditions;
use keelway_domain::event::PREFIX;
use keelway_domain::shipyard::{APPROVAL, EVALUATION};
use std::collections::{HashMap, HashSet};

/// Tasks that change nothing in a stage.
const LOOK_ONLY: [&str; 3] = [APPROVAL, EVALUATION, "test"];

/// Checks every sequence, and every entry that lets one follow another.
pub fn check(outlines: &[Outline], edges: &[Edge], report: &mut Report) {
    for outline in outlines {
        for (i, task) in items_of(outline.node.get("tasks"), &shipyards::TASK).into_iter().enumerate() {
            if text(task, "name") == Some(APPROVAL) {
                approval(outline, task, &format!("{}.tasks[{i}]", outline.path), report);
            }
        }
    }
    let senders: HashMap<String, &Outline> = outlines.iter().map(|outline| (outline.name(), outline)).collect();
    let heeded: HashSet<&str> = edges.iter().filter(|edge| takes_warning(edge)).filter_map(ended).collect();
    let asking: HashSet<String> = outlines.iter().filter(|outline| begins_with_a_question(outline)).map(Outline::name).collect();
    let undoing: Vec<bool> = outlines.iter().map(rolls_back).collect();
    let mut told = HashSet::new();
    for edge in edges {
        let Some((name, sender)) = ended(edge).and_then(|name| Some((name, senders.get(name)?))) else { continue };
        if undoing[edge.listener] && asking.contains(name) && takes_any_failure(edge) {
            let message = format!(
                "starts as well when the approval of {name:?} is declined or nobody decides in time, though nothing was deployed: put the \
                 approval into a sequence of its own, and let `{}` follow its end",
                sender.sequence
            );
            report.warning(edge.node, edge.path.clone(), message);
        }
        let evaluates = sender.tasks.last().is_some_and(|task| task == EVALUATION);
        if evaluates && conditions(edge.node).is_none() && !heeded.contains(name) && told.insert(name) {
            let message = format!(
                "only a pass gets here: {name:?} ends with an evaluation, and its `warning` reaches nobody; add an entry \
                 `- event: {name}.finished` with `selector: {{match: {{result: warning}}}}`, or give this one \
                 `selector: {{match: {{result: pass}}}}` to say so"
            );
            report.warning(edge.node, edge.path.clone(), message);
        }
    }
}

/// `<stage>.<sequence>` of an entry that waits for an end.
fn ended<'n>(edge: &Edge<'n>) -> Option<&'n str> {
    edge.event.strip_prefix(PREFIX).unwrap_or(edge.event).strip_suffix(".finished")
}

fn takes_warning(edge: &Edge) -> bool {
    ["result", "evaluation.result"].iter().any(|what| wants(edge.node, what) == Some("warning"))
}

fn text<'n>(node: &'n Node, field: &str) -> Option<&'n str> {
    node.get(field).and_then(Node::scalar)
}

fn is_given(node: &Node, field: &str) -> bool {
    node.get(field).is_some_and(|value| !value.is_null())
}

fn strategy<'n>(approval: &'n Node, result: &str) -> Option<&'n str> {
    text(approval.get("properties")?, result)
}

fn asks_a_person(approval: &Node) -> bool {
    ["pass", "warning"].iter().any(|result| strategy(approval, result) == Some("manual"))
}

fn approval(sequence: &Outline, task: &Node, path: &str, report: &mut Report) {
    if asks_a_person(task) && !is_given(task, "timeout") && !is_given(sequence.node, "timeout") {
        let message =
            "waits for a person for ever: write for example `timeout: 24h`, after which it is declined, or `timeout: 0` to say so";
        report.warning(task, path, message.into());
    }
    if let Some(deadline) = task.get("startDeadline") {
        let message = "does nothing here, as no executor answers an approval: write `timeout` for the time a person has";
        report.warning(deadline, format!("{path}.startDeadline"), message.into());
    }
}

/// The results an entry wants: of the sequence, and of tasks by name.
fn wants<'n>(entry: &'n Node, what: &str) -> Option<&'n str> {
    conditions(entry).and_then(|conditions| text(conditions, what))
}

/// Whether a person is asked before anything has changed in the stage.
fn begins_with_a_question(sequence: &Outline) -> bool {
    let tasks = items_of(sequence.node.get("tasks"), &shipyards::TASK);
    let gate = tasks.iter().position(|task| text(task, "name") == Some(APPROVAL) && asks_a_person(task));
    let looks_only = |task: &&Node| text(task, "name").is_some_and(|name| LOOK_ONLY.contains(&name));
    gate.is_some_and(|gate| tasks[..gate].iter().all(looks_only))
}

/// Whether a sequence rolls back, by its name and those of its tasks.
fn rolls_back(sequence: &Outline) -> bool {
    let plain = |name: &String| name.to_lowercase().replace(['-', '_'], "");
    let names = sequence.tasks.iter().chain([&sequence.sequence]).map(plain);
    names.into_iter().any(|name| ["rollback", "revert", "undo"].iter().any(|word| name.contains(word)))
}

/// Whether an entry takes a failed end whatever the tasks did.
fn takes_any_failure(edge: &Edge) -> bool {
    let mut wanted = conditions(edge.node).and_then(Node::entries).unwrap_or_default().iter();
    matches!(wants(edge.node, "result"), Some("fail" | "failed")) && !wanted.any(|entry| entry.key.contains('.'))
}
