//! What an account has used.

use super::fleet::Fleet;
use crate::core::Core;
use crate::quota::{Bucket, Flow};
use crate::tested::Tested;

/// What has happened in an account.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Totals {
    /// Requests to AWS.
    pub requests: u64,
    /// Those of them that send messages.
    pub sends: u64,
    /// Write units.
    pub writes: f64,
    /// Read units.
    pub reads: f64,
    /// Events of others that the bus took.
    pub events_in: u64,
    /// Events published.
    pub published: u64,
    /// Events of others that were refused, and put again.
    pub put_again: u64,
    /// Requests, or parts of them, that were throttled.
    pub throttled: u64,
    /// Batches handed to the function.
    pub batches: u64,
    /// Messages in them.
    pub received: u64,
    /// Those of them that had been received before.
    pub again: u64,
    /// Messages whose handling has ended.
    pub handled: u64,
    /// Those of them that had to come again.
    pub failed: u64,
    /// Schedules that fired.
    pub fired: u64,
    /// Messages that were received too often.
    pub dead: u64,
}

/// A quota, and the seconds that it takes at least to use what was used of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    /// The quota.
    pub name: String,
    /// The seconds.
    pub seconds: f64,
}

/// All bounds, the longest first.
pub(super) fn bounds<E: Tested>(core: &Core, buckets: &[(&str, &Bucket)], fleet: &Fleet<E>) -> Vec<Bound> {
    let bound = |name: &str, seconds: f64| Bound { name: name.to_owned(), seconds };
    let mut all: Vec<Bound> = buckets.iter().map(|(name, bucket)| bound(name, bucket.seconds())).collect();
    all.push(bound("concurrency of the function", fleet.seconds()));
    if let Some(throttle) = &core.throttle {
        all.push(bound("PutEvents", throttle.put_events.seconds()));
        all.push(bound("schedules created", throttle.created.seconds()));
    }
    if let Some(throughput) = &core.table.throughput {
        for (flow, what) in [(Flow::Write, "writes"), (Flow::Read, "reads")] {
            let ((key, hottest), table) = throughput.seconds(flow);
            all.push(bound(&format!("{what} of partition {key}"), hottest));
            all.push(bound(&format!("{what} of the table"), table));
        }
    }
    all.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    all
}
