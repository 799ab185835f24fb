//! The flags of a context.

use super::freeze::Override;
use super::state::Execution;
use std::collections::{BTreeMap, BTreeSet};

/// The flags of a context: desired state that people set and its executions obey.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Flags {
    /// Counts the aborts of this context.
    pub epoch: u32,
    /// The count at the last abort of the whole context.
    pub aborted: u32,
    /// The count at the last abort of a stage.
    pub aborted_stages: BTreeMap<String, u32>,
    /// The whole context is paused.
    pub paused: bool,
    /// Stages paused on their own, also future ones.
    pub paused_stages: BTreeSet<String>,
    /// Stages whose closed windows do not hold back its executions.
    pub overrides: BTreeMap<String, Override>,
}

impl Flags {
    /// The count at the last abort where nothing ever begins: what was to begin was given up before its trigger arrived.
    pub const ALL: u32 = u32::MAX;

    /// Whether an execution of that stage whose root was accepted at `epoch` is covered by an abort.
    pub fn aborts(&self, stage: &str, epoch: u32) -> bool {
        epoch < self.aborted || self.aborted_stages.get(stage).is_some_and(|at| epoch < *at)
    }
    /// Whether an execution is held back that a person has let through.
    pub fn lets_through(&self, x: &Execution) -> bool {
        let given = self.overrides.get(&x.stage);
        x.held.as_ref().zip(given).is_some_and(|(held, given)| given.covers(held.until))
    }
    /// Whether executions of that stage are held back.
    pub fn pauses(&self, stage: &str) -> bool {
        self.paused || self.paused_stages.contains(stage)
    }
}
