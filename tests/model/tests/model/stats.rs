//! Counts what happens in stories.

use std::collections::BTreeMap;

/// The counts.
#[derive(Debug, Default)]
pub struct Stats {
    counts: BTreeMap<&'static str, usize>,
}

impl Stats {
    /// Counts one more.
    pub fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }
    /// Adds the counts of both.
    pub fn add(&mut self, other: &Self) {
        other.counts.iter().for_each(|(what, n)| *self.counts.entry(what).or_default() += n);
    }
    /// Whether everything that matters has happened often.
    pub fn is_varied(&self) -> bool {
        ["approvals", "deadlines", "follow-ups", "not started", "several executors", "warnings"]
            .iter()
            .all(|what| self.counts.get(what).is_some_and(|n| *n > 200))
    }
}
