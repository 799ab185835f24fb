//! One tick of the sweep, as engines see it.

use keelway_domain::time::{Span, Timestamp};
use std::collections::HashSet;

/// What has been waiting for less than this is somebody's work in progress.
pub const OVERDUE: Span = Span::minutes(2);

/// What the pages of one tick share.
#[derive(Debug, Default)]
pub struct Tick {
    /// Now.
    pub now: Timestamp,
    /// Things that one message per tick is enough for, by name.
    pub once: HashSet<String>,
}

impl Tick {
    /// Whether a wake-up at this time should have arrived by now.
    pub fn overdue(&self, wake: Option<Timestamp>) -> bool {
        wake.is_some_and(|wake| wake + OVERDUE < self.now)
    }
}
