//! Sequences as the rules between sequences see them.

use super::levels::items_of;
use super::levels::shipyards::TASK;
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
        let tasks = items_of(node.get("tasks"), &TASK).iter().filter_map(name).collect();
        Self { stage: stage.to_owned(), sequence: sequence.to_owned(), tasks, node, path: path.to_owned() }
    }

    /// `<stage>.<sequence>`
    pub fn name(&self) -> String {
        format!("{}.{}", self.stage, self.sequence)
    }
}

/// One entry of one sequence's `triggeredOn`, by its place among the outlines.
pub struct Edge<'n> {
    pub listener: usize,
    /// As written.
    pub event: &'n str,
    pub node: &'n Node,
    pub path: String,
}
