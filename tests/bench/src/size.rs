//! How much is done: the whole bench, or a little of every part of it.

use crate::promotions::SHARING;
use std::time::Duration;

/// How often, and how many.
#[derive(Debug)]
pub struct Size {
    /// Whether values are compared with aims: those of release builds, and of enough rounds.
    pub judged: bool,
    /// Starts of each function.
    pub starts: usize,
    /// Runs of each sequence whose cost is counted.
    pub runs: usize,
    /// Finished sequences in the table, and sequences waiting on one lane.
    pub many: usize,
    /// Sequences at once under load.
    pub load: usize,
    /// Sequences whose steps from task to task are timed.
    pub sequences: usize,
    /// Deliveries on one lane.
    pub deliveries: usize,
    /// Pipelines whose attempts are timed, and revisions that each of them promotes.
    pub attempts: (usize, usize),
    /// Configs whose offers are timed, and pushes to the tag of each.
    pub offers: (usize, usize),
    /// How long to look whether anything happens when nothing has to.
    pub idle: Duration,
    /// Pipelines of one repository behind the real client of git hosts.
    pub hosted: usize,
    /// Pipelines in memory; ten at least, of which each gets an observation.
    pub pipelines: &'static [usize],
    /// Versions that are kept when the costs of one more are compared; four at least.
    pub versions: u64,
    /// Configs of a burst, and pushes to the tag of each.
    pub burst: (u64, u64),
}

/// What `make bench` does.
pub const WHOLE: Size = Size {
    judged: true,
    starts: 15,
    runs: 5,
    many: 1_000,
    load: 40,
    sequences: 24,
    deliveries: 60,
    attempts: (12, 5),
    offers: (12, 5),
    idle: Duration::from_secs(5),
    hosted: SHARING,
    pipelines: &[10, 100, 1_000],
    versions: 10_000,
    burst: (100, 10),
};

/// Enough to see that every part still works.
pub const SHORT: Size = Size {
    judged: false,
    starts: 1,
    runs: 1,
    many: 3,
    load: 2,
    sequences: 1,
    deliveries: 3,
    attempts: (1, 1),
    offers: (1, 1),
    idle: Duration::from_secs(1),
    hosted: 2,
    pipelines: &[10],
    versions: 5,
    burst: (3, 2),
};
