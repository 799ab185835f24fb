//! The time that CloudWatch is asked about.

use keelway_domain::evaluation::Period;
use keelway_domain::time::Timestamp;

const DAY: i64 = 24 * 60 * 60;

/// The evaluated time, in whole steps of what CloudWatch keeps: minutes, and longer steps of what is older. Seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Its beginning, rounded down.
    pub start: i64,
    /// A whole number of steps later.
    pub end: i64,
}

impl Window {
    /// The window of an evaluated time.
    pub fn new(period: Period, now: Timestamp) -> Self {
        let (from, to) = (period.start.0.div_euclid(1000), up(period.end.0, 1000));
        // Points of a minute are kept for 15 days, those of five minutes for 63.
        let step = match now.0.div_euclid(1000) - from {
            age if age < 15 * DAY => 60,
            age if age < 63 * DAY => 300,
            _ => 3600,
        };
        let start = from.div_euclid(step) * step;
        let length = (up(to - start, step) * step).max(step);
        Self { start, end: start + length }
    }

    /// How long it is, which is the period of queries that name none: they have one value then.
    pub fn length(&self) -> i64 {
        self.end - self.start
    }
}

/// How many whole steps it takes to reach a number.
fn up(number: i64, step: i64) -> i64 {
    number.div_euclid(step) + i64::from(number.rem_euclid(step) > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_has_whole_minutes_and_longer_steps_of_what_is_old() {
        let now = 1_800_000_000_000;
        let of = |start: i64, end: i64| {
            let window = Window::new(Period { start: Timestamp(start), end: Timestamp(end) }, Timestamp(now));
            (window.start * 1000 - start, window.length())
        };
        assert_eq!(of(now - 300_000, now), (0, 300));
        assert_eq!(of(now - 299_001, now), (-999, 300));
        assert_eq!(of(now - 300_000, now + 1), (0, 360));
        let days = |days: i64| now - days * DAY * 1000;
        assert_eq!(of(days(16), days(16) + 61_000), (0, 300));
        assert_eq!(of(days(70), days(70) + 61_000), (0, 3600));
    }
}
