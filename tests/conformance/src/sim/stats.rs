//! What a run of the simulation comes to.

use std::collections::BTreeMap;

/// How a seed violated an invariant.
#[derive(Debug, Clone)]
pub struct Violation {
    /// The seed.
    pub seed: u64,
    /// Which invariant, with what.
    pub rule: String,
    /// Every request up to then, when asked for.
    pub trace: Vec<String>,
}

/// What happened over a run, to show that the simulation meets what it is for.
#[derive(Debug, Clone, Default)]
pub struct Stats(pub BTreeMap<&'static str, u64>);

impl Stats {
    /// Counts.
    pub fn count(&mut self, what: &'static str) {
        self.add(what, 1);
    }
    /// Adds.
    pub fn add(&mut self, what: &'static str, n: u64) {
        *self.0.entry(what).or_default() += n;
    }
    /// Adds another run's.
    pub fn merge(&mut self, other: &Stats) {
        for (what, n) in &other.0 {
            self.add(what, *n);
        }
    }
}
