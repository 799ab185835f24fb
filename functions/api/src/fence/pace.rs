//! Rate limits of callers. Each instance of the function counts in its memory, which costs nothing.

use keelway_domain::time::{Span, Timestamp};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// The most callers that are counted separately. When there are more, idle ones are dropped, and if that does not suffice, all.
const MOST: usize = 10_000;
const MINUTE: f64 = 60_000.0;

/// The most requests of a caller in a minute, as a token bucket: they may come at once, and are refilled one by one.
#[derive(Debug)]
pub struct Pace {
    per_minute: u32,
    left: Mutex<HashMap<String, Left>>,
}

/// The remaining requests of a caller, and the time of the last refill.
#[derive(Debug, Clone, Copy)]
struct Left {
    requests: f64,
    at: Timestamp,
}

impl Pace {
    /// The limit per minute. 0: no limit.
    pub fn new(per_minute: u32) -> Self {
        Self { per_minute, left: Mutex::default() }
    }

    /// Counts a request. `Some`: the limit is reached, and another request is accepted after this time.
    pub fn too_many(&self, caller: &str, now: Timestamp) -> Option<Span> {
        if self.per_minute == 0 || caller.is_empty() {
            return None;
        }
        let most = f64::from(self.per_minute);
        let mut all = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST && !all.contains_key(caller) {
            all.retain(|_, left| left.by(now, most) < most);
            if all.len() >= MOST {
                all.clear();
            }
        }
        let left = all.entry(caller.to_owned()).or_insert(Left { requests: most, at: now });
        *left = Left { requests: left.by(now, most), at: now };
        if left.requests >= 1.0 {
            left.requests -= 1.0;
            return None;
        }
        let wait = (1.0 - left.requests) * MINUTE / most;
        Some(Span(wait.ceil() as i64))
    }
}

impl Left {
    fn by(&self, now: Timestamp, most: f64) -> f64 {
        let passed = (now - self.at).0.max(0) as f64;
        (self.requests + passed * most / MINUTE).min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_795_000_000_000);

    fn sent(pace: &Pace, caller: &str, n: usize, at: Timestamp) -> usize {
        (0..n).filter(|_| pace.too_many(caller, at).is_none()).count()
    }

    #[test]
    fn a_minutes_worth_at_once_and_then_one_by_one() {
        let pace = Pace::new(60);
        assert_eq!(sent(&pace, "a", 100, NOW), 60);
        assert_eq!(pace.too_many("a", NOW), Some(Span::seconds(1)));
        assert_eq!(sent(&pace, "b", 1, NOW), 1, "everybody has their own");
        assert_eq!(sent(&pace, "a", 10, NOW + Span::seconds(3)), 3);
        assert_eq!(sent(&pace, "a", 100, NOW + Span::minutes(60)), 60, "what is not used does not add up");
        assert_eq!(sent(&Pace::new(0), "a", 1000, NOW), 1000);
    }

    #[test]
    fn the_memory_is_bounded() {
        let pace = Pace::new(1);
        for n in 0..(2 * MOST) {
            assert_eq!(pace.too_many(&format!("c-{n}"), NOW), None);
        }
        assert!(pace.left.lock().unwrap().len() <= MOST);
    }
}
