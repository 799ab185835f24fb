//! This machine's clock.

use keelway_domain::time::Timestamp;
use std::time::SystemTime;

/// The time now.
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
