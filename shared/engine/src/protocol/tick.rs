//! One tick of the sweep.

use keelway_domain::time::{Span, Timestamp};
use std::collections::HashSet;

/// Work that has been waiting for less than this is still in progress.
pub const OVERDUE: Span = Span::minutes(2);

/// Work that has been waiting for this long is stuck: two or three sweeps have sent a message for it in vain.
pub const STUCK: Span = Span::minutes(15);

/// The state that the pages of one tick share.
#[derive(Debug, Default)]
pub struct Tick {
    /// The present time.
    pub now: Timestamp,
    /// Names of the things that need only one message per tick.
    pub once: HashSet<String>,
}

impl Tick {
    /// Whether a wake-up at this time should have arrived by now.
    pub fn overdue(&self, wake: Option<Timestamp>) -> bool {
        wake.is_some_and(|wake| wake + OVERDUE < self.now)
    }
}
