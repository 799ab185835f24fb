//! What the checks of one sequence leave for the checks between sequences, and the entries of lists.

use super::fields::Level;
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

impl<'n> Outline<'n> {
    pub fn of(stage: &str, sequence: &str, node: &'n Node, path: &str) -> Self {
        let name = |task: &&Node| task.get("name").and_then(Node::scalar).map(str::to_owned);
        let tasks = entries(node.get("tasks"), Level::Task).iter().filter_map(name).collect();
        Self { stage: stage.to_owned(), sequence: sequence.to_owned(), tasks, node, path: path.to_owned() }
    }

    /// `<stage>.<sequence>`
    pub fn name(&self) -> String {
        format!("{}.{}", self.stage, self.sequence)
    }
}

/// The entries of a list; what is no list is a finding with the remedy.
pub fn items<'n>(node: &'n Node, path: &str, level: Level, report: &mut Report) -> Option<Vec<&'n Node>> {
    if node.list().is_none() {
        let event = node.scalar().or_else(|| node.entries().and_then(|entries| Some(entries.first()?.key.as_str())));
        let example = level.example();
        let remedy = match node.entries() {
            _ if level == Level::Trigger && event.is_some_and(|event| event.contains('.')) => {
                format!("write `- event: {}`", event.unwrap_or_default())
            }
            Some(_) => format!("put `- ` before each entry, like `- {example}`"),
            None => format!("write entries like `- {example}` below it"),
        };
        report.error(node, path, format!("is {}, not a list: {remedy}", node.what()));
        node.entries()?;
    }
    Some(entries(Some(node), level))
}

/// What a list holds. Of a mapping where a list belongs, what was meant, so that everything wrong with it is told at once: one
/// entry without its `-`, or entries under their names.
pub fn entries(node: Option<&Node>, level: Level) -> Vec<&Node> {
    let Some(node) = node else { return vec![] };
    match (node.list(), node.entries()) {
        (Some(items), _) => items.iter().collect(),
        (_, Some(entries)) if entries.iter().any(|entry| level.has(&entry.key)) => vec![node],
        (_, Some(entries)) if level != Level::Trigger => {
            entries.iter().map(|entry| &entry.value).filter(|value| value.entries().is_some()).collect()
        }
        _ => vec![],
    }
}
