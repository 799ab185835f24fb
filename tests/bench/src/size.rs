//! The amount of work: the whole bench, or a little of every part.

use crate::promotions::SHARING;
use std::time::Duration;

/// The amount of work of each part.
#[derive(Debug)]
pub struct Size {
    /// Whether values are compared with aims, which are those of release builds and enough rounds.
    pub judged: bool,
    /// The starts of each function.
    pub starts: usize,
    /// The runs of each sequence whose cost is counted.
    pub runs: usize,
    /// The finished sequences in the table, and the sequences that wait on one lane.
    pub many: usize,
    /// The concurrent sequences under load.
    pub load: usize,
    /// The sequences whose steps from task to task are timed.
    pub sequences: usize,
    /// The deliveries on one lane.
    pub deliveries: usize,
    /// The pipelines whose attempts are timed, and the revisions that each of them promotes.
    pub attempts: (usize, usize),
    /// The configs whose offers are timed, and the pushes to the tag of each.
    pub offers: (usize, usize),
    /// How long to watch that nothing happens while nothing is due.
    pub idle: Duration,
    /// The pipelines of one repository with the real client of git hosts.
    pub hosted: usize,
    /// The numbers of pipelines in memory, at least ten each: that many get an observation.
    pub pipelines: &'static [usize],
    /// The number of stored versions when the cost of one more is compared, at least four.
    pub versions: u64,
    /// How many times smaller than in full the loads are that meet the quotas of AWS.
    pub smaller: usize,
    /// The deliveries that have ended, and those that wait on one lane, when one more is counted.
    pub others: usize,
    /// How often the page is loaded and a cell of it drawn anew, and the minutes of a page that is open.
    pub page: (usize, u32),
    /// The configs of a burst, and the pushes to the tag of each.
    pub burst: (u64, u64),
}

/// The amount for `make bench`.
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
    smaller: 10,
    others: 100_000,
    page: (5, 15),
    burst: (100, 10),
};

/// Enough to show that every part still works.
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
    smaller: 100,
    others: 100,
    page: (1, 1),
    burst: (3, 2),
};
