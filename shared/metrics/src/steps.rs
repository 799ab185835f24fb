//! The steps of a period: for each of them, a series has a value.

use keelway_domain::evaluation::Period;
use keelway_domain::time::Span;
use keelway_engine::metrics::POINTS;

/// The shortest step, in milliseconds.
const SHORTEST: i64 = 1000;

/// Steps of equal length one after the other, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Steps {
    /// The beginning of the first.
    pub start: i64,
    /// How long each is.
    pub length: i64,
    /// How many there are: at most [`POINTS`].
    pub count: i64,
}

impl Steps {
    /// The steps that are wholly within a period, from its beginning on. They are so many times longer than asked for that there
    /// are not too many.
    pub fn new(period: Period, step: Span) -> Self {
        let (asked, whole) = (step.0.max(SHORTEST), period.end.0.saturating_sub(period.start.0).max(0));
        let times = whole.div_euclid(asked.saturating_mul(POINTS + 1)) + 1;
        let length = asked.saturating_mul(times);
        Self { start: period.start.0, length, count: whole.div_euclid(length) }
    }

    /// The end of the first, if there is one.
    pub fn first_end(&self) -> Option<i64> {
        (self.count > 0).then(|| self.start.saturating_add(self.length))
    }

    /// The end of the last.
    pub fn end(&self) -> i64 {
        self.start.saturating_add(self.length.saturating_mul(self.count))
    }

    /// Why a series of no steps has no value.
    pub fn none(&self) -> String {
        format!("no step of {} is over within the period", Span(self.length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use keelway_domain::time::Timestamp;

    fn of(start: i64, end: i64, step: Span) -> (i64, i64, i64) {
        let steps = Steps::new(Period { start: Timestamp(start), end: Timestamp(end) }, step);
        (steps.length / 1000, steps.count, steps.end())
    }

    #[test]
    fn steps_are_whole_and_not_too_many() {
        let minute = Span::minutes(1);
        assert_eq!(of(500, 299_000, minute), (60, 4, 240_500));
        assert_eq!(of(0, 59_999, minute), (60, 0, 0));
        assert_eq!(of(0, POINTS * 60_000 + 59_999, minute), (60, POINTS, POINTS * 60_000));
        assert_eq!(of(0, (POINTS + 1) * 60_000, minute), (120, POINTS / 2, POINTS * 60_000), "twice as long");
        assert_eq!(of(0, 7 * 24 * 3_600_000, minute).0, 11 * 60);
        assert_eq!(of(0, 5000, Span(0)), (1, 5, 5000));
        assert_eq!(of(5000, 0, minute), (60, 0, 5000));
        assert!(of(0, i64::MAX, Span(i64::MAX)).1 <= POINTS && of(i64::MIN, i64::MAX, minute).1 <= POINTS);
    }
}
