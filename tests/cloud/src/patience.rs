//! Waiting for what is asserted, however long the machine takes.

use crate::problem::Problem;
use std::time::{Duration, Instant};

/// Nothing is judged by how long it takes: this limit only says that nothing moves any more.
pub const LAST_LIMIT: Duration = Duration::from_secs(300);
/// The pauses between looks. They grow with the wait: each look takes time of the processor from what is waited for.
const LOOKS: (Duration, Duration) = (Duration::from_millis(15), Duration::from_millis(250));
/// A pause is at most this part of the wait so far.
const SHARE: u32 = 8;

/// Looks until `found` finds it; `so_far` tells what there was instead if it never does.
///
/// # Errors
/// What `found` fails with, or that the last limit has passed.
pub fn until<T>(
    what: &str,
    mut found: impl FnMut() -> Result<Option<T>, Problem>,
    so_far: impl FnOnce() -> String,
) -> Result<T, Problem> {
    let start = Instant::now();
    loop {
        if let Some(found) = found()? {
            return Ok(found);
        }
        let waited = start.elapsed();
        if waited > LAST_LIMIT {
            return Err(format!("{what}: not within {LAST_LIMIT:?}; so far: {}", so_far()).into());
        }
        std::thread::sleep((waited / SHARE).clamp(LOOKS.0, LOOKS.1));
    }
}
