//! Rules between sequences: triggers that nothing sends, loops, too many listeners.

use super::finding::Report;
use super::levels::{items_of, shipyards};
use super::names::nearest;
use super::outline::{Edge, Outline};
use super::surprises;
use super::tree::Node;
use super::triggers::{conditions, event_fault};
use keelway_domain::event::PREFIX;
use keelway_domain::names::TaskName;
use keelway_domain::shipyard::{EVALUATION, MAX_FOLLOW_UPS, MAX_FOLLOW_UPS_PER_STAGE};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The most names compared to find a similar one: a large shipyard with many typing errors must not take minutes.
const MOST_CANDIDATES: usize = 500;

/// Checks all sequences of a shipyard together.
pub fn check(stages: &[String], outlines: &[Outline], report: &mut Report) {
    let known = Known::of(stages, outlines);
    let edges = edges(outlines);
    for edge in &edges {
        known.target(edge, report);
        known.selected_tasks(edge, report);
    }
    surprises::check(outlines, &edges, report);
    let before = report.errors();
    crowded(outlines, &edges, report);
    if report.errors() == before {
        loops(outlines, &edges, &known, report);
    }
}

fn edges<'n>(outlines: &[Outline<'n>]) -> Vec<Edge<'n>> {
    let mut edges = vec![];
    for (listener, outline) in outlines.iter().enumerate() {
        for (i, node) in items_of(outline.node.get("triggeredOn"), &shipyards::TRIGGER).into_iter().enumerate() {
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

/// The sequences and tasks whose ends are events.
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

    /// Whether a sequence or a task has this name, with its stage.
    fn ends(&self, name: &str) -> bool {
        self.sequences.contains_key(name) || self.tasks.contains_key(name)
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

    /// Warns of an entry whose event nothing sends. Keptn took such shipyards, and the stages behind the entry never started.
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
            // Other words may well be domain events about the sequence.
            [stage, sequence, kind] if kind.starts_with("finish") && self.ends(&format!("{stage}.{sequence}")) => {
                format!("{:?} would have to be a domain event of that name: the end is `{stage}.{sequence}.finished`", edge.event)
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
        let matches = conditions(edge.node).and_then(Node::entries);
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
    let open: Vec<&Edge> = edges.iter().filter(|edge| conditions(edge.node).is_none()).collect();
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
