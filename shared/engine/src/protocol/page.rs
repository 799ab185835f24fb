//! Lists by time, in pages. A position in such a list is a number, as Keptn's clients expect.

use keelway_domain::ids::hash64;
use keelway_domain::time::Timestamp;
use serde_json::Value;

/// A position in a list by time: milliseconds × 1000 + a number that orders the entries of that millisecond. 0 = the beginning; as
/// the next position, the end.
pub type Position = i64;

/// The most entries of one millisecond that a position can distinguish.
const IN_ONE_MS: i64 = 999;
/// The most entries on one page.
pub const MAX_PAGE: usize = 100;
/// A page ends at this many bytes, however many entries it has: a function's answer may have at most 6 MB.
pub const PAGE_BYTES: usize = 3 << 20;

/// Part of a list, and where the next part begins.
#[derive(Debug, Clone, PartialEq)]
pub struct TimePage {
    /// The entries in the format of the API.
    pub items: Vec<Value>,
    /// 0 = there are no more.
    pub next: Position,
}

/// A time window. Both bounds are exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Window {
    /// Later than this.
    pub after: Option<Timestamp>,
    /// Earlier than this.
    pub before: Option<Timestamp>,
}

impl Window {
    /// Whether a time lies in it.
    pub fn contains(&self, at: Timestamp) -> bool {
        self.after.is_none_or(|after| at > after) && self.before.is_none_or(|before| at < before)
    }
}

/// The time of a position, and the number of the last entry of that millisecond that precedes it.
pub fn split(position: Position) -> (Timestamp, i64) {
    (Timestamp(position.div_euclid(1000)), position.rem_euclid(1000))
}

/// The slot of an entry within its millisecond, from 1. It is derived from the entry's identity, so it does not change when other
/// entries are added or removed, as a running number would.
pub fn slot(entry: &str) -> i64 {
    (hash64(&[b"slot", entry.as_bytes()]) % IN_ONE_MS.unsigned_abs()) as i64 + 1
}

/// The position right after the n-th entry of a millisecond, or after those with the slot n.
pub fn place(at: Timestamp, n: i64) -> Position {
    at.0.saturating_mul(1000).saturating_add(n.min(IN_ONE_MS))
}
