//! The time that CloudWatch is asked about.

use crate::steps::Steps;
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
        let step = kept(from, now);
        let start = from.div_euclid(step) * step;
        let length = (up(to - start, step) * step).max(step);
        Self { start, end: start + length }
    }

    /// The window of a series over a period, and how long a step is in it: a whole number of what CloudWatch keeps. It begins and
    /// ends with whole multiples of that within the period, as CloudWatch divides time, so that no value is about a part of a step.
    pub fn of_series(period: Period, steps: &Steps, now: Timestamp) -> (Self, i64) {
        let unit = kept(steps.start.div_euclid(1000), now);
        let step = up(up(steps.length, 1000), unit) * unit;
        let start = up(up(period.start.0, 1000), step) * step;
        let end = period.end.0.div_euclid(1000).div_euclid(step) * step;
        (Self { start, end: end.max(start) }, step)
    }

    /// How long it is, which is the period of queries that name none: they have one value then.
    pub fn length(&self) -> i64 {
        self.end - self.start
    }
}

/// How long the steps are, in seconds, in which CloudWatch still keeps what began then: minutes for 15 days, five minutes for 63.
fn kept(from: i64, now: Timestamp) -> i64 {
    match now.0.div_euclid(1000) - from {
        age if age < 15 * DAY => 60,
        age if age < 63 * DAY => 300,
        _ => 3600,
    }
}

/// How many whole steps it takes to reach a number.
fn up(number: i64, step: i64) -> i64 {
    number.div_euclid(step) + i64::from(number.rem_euclid(step) > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use keelway_domain::time::Span;

    #[test]
    fn steps_begin_and_end_where_cloudwatch_divides_time() {
        let now = 1_800_000_000_000;
        let of = |start: i64, end: i64, step: i64| {
            let period = Period { start: Timestamp(start), end: Timestamp(end) };
            let (window, step) = Window::of_series(period, &Steps::new(period, Span::seconds(step)), Timestamp(now));
            (window.start - now / 1000, window.length(), step)
        };
        assert_eq!(of(now - 300_000, now, 60), (-300, 300, 60));
        assert_eq!(of(now - 330_500, now, 60), (-300, 300, 60), "half a minute before is no whole one");
        assert_eq!(of(now - 300_000, now, 15), (-300, 300, 60), "no step is shorter than a minute");
        assert_eq!(of(now - 20_000, now, 15), (0, 0, 60));
        assert_eq!(of(now - 16 * DAY * 1000, now - 15 * DAY * 1000, 60), (-16 * DAY, DAY, 300));
        assert_eq!(of(now - 70 * DAY * 1000, now - 69 * DAY * 1000, 60).2, 3600);
    }

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
