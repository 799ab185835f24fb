//! The flags of a context.

use super::freeze::Override;
use super::state::Execution;
use std::collections::{BTreeMap, BTreeSet};

/// The flags of a context: the state that people want, which its executions obey.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Flags {
    /// The number of aborts in this context.
    pub epoch: u32,
    /// The number of the last abort of the whole context.
    pub aborted: u32,
    /// The numbers of the last aborts of single stages.
    pub aborted_stages: BTreeMap<String, u32>,
    /// Whether the whole context is paused.
    pub paused: bool,
    /// The stages that are paused by name, including stages that have not begun.
    pub paused_stages: BTreeSet<String>,
    /// The stages in which executions begin although the windows are closed.
    pub overrides: BTreeMap<String, Override>,
}

impl Flags {
    /// The number of an abort that covers every execution: the context was given up before its trigger arrived.
    pub const ALL: u32 = u32::MAX;

    /// Whether an abort covers an execution of that stage whose root was accepted at `epoch`.
    pub fn aborts(&self, stage: &str, epoch: u32) -> bool {
        epoch < self.aborted || self.aborted_stages.get(stage).is_some_and(|at| epoch < *at)
    }
    /// Whether a person has let an execution through that the windows hold back.
    pub fn lets_through(&self, x: &Execution) -> bool {
        let given = self.overrides.get(&x.stage);
        x.held.as_ref().zip(given).is_some_and(|(held, given)| given.covers(held.until))
    }
    /// Whether a pause holds executions of that stage back.
    pub fn pauses(&self, stage: &str) -> bool {
        self.paused || self.paused_stages.contains(stage)
    }
}
