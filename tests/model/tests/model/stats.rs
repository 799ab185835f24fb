//! How often what happens.

use std::collections::BTreeMap;

/// What happened in stories.
#[derive(Debug, Default)]
pub struct Stats {
    counts: BTreeMap<&'static str, usize>,
}

impl Stats {
    /// It happened once more.
    pub fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }
    /// Of both.
    pub fn add(&mut self, other: &Self) {
        other.counts.iter().for_each(|(what, n)| *self.counts.entry(what).or_default() += n);
    }
    /// Everything that matters happened often.
    pub fn is_varied(&self) -> bool {
        ["approvals", "deadlines", "follow-ups", "not started", "several executors", "warnings"]
            .iter()
            .all(|what| self.counts.get(what).is_some_and(|n| *n > 200))
    }
}
