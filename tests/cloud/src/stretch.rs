//! How long a case's spans last on a real clock.
//!
//! In a case, steps take no time and spans are a few seconds. On a real clock steps do take time, so spans are stretched: twice as
//! long, `startDeadline: 2s` is `startDeadline: 4s` and `wait: 3s` lasts 6 s. Whether that is enough depends on the machine. A run
//! whose steps took more time than its spans leave ([`Stretch::is_too_little`]) did not tell the case, so its failure says nothing,
//! and the case is told again with spans twice as long.

use std::time::{Duration, Instant};

/// What is tried first: enough for a machine that has little else to do.
const FIRST: u32 = 2;
/// What is tried last: a span of three seconds lasts more than three minutes.
const LAST: u32 = 64;
/// What all steps of a case may take together, in the time of the case. `tests/cases/README.md` has cases leave more than that.
const STEPS: Duration = Duration::from_millis(500);

/// A second of a case lasts so many on the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch(u32);

impl Stretch {
    /// All of them, in the order they are tried.
    pub fn all() -> impl Iterator<Item = Self> {
        std::iter::successors(Some(FIRST), |factor| Some(factor * 2)).take_while(|factor| *factor <= LAST).map(Self)
    }

    /// How long a span lasts on the clock.
    pub fn span(self, span: Duration) -> Duration {
        span * self.0
    }

    /// Whether steps that took so long on the clock leave the case's spans no room.
    pub fn is_too_little(self, steps: Duration) -> bool {
        steps > self.span(STEPS)
    }

    /// The shipyard with its spans of seconds stretched.
    pub fn shipyard(self, text: &str) -> String {
        let fields = ["startDeadline:", "timeout:", "triggeredAfter:", "taskTimeout:"];
        let (mut rest, mut stretched) = (text, String::new());
        while let Some((at, field)) = fields.iter().filter_map(|field| Some((rest.find(field)?, field))).min() {
            let (before, after) = rest.split_at(at + field.len());
            let value = after.trim_start_matches([' ', '"']);
            let digits = value.len() - value.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (number, unit) = value.split_at(digits);
            stretched.push_str(before);
            rest = after;
            if let Ok(seconds) = number.parse::<u32>()
                && unit.starts_with('s')
            {
                stretched.push_str(&after[..after.len() - value.len()]);
                stretched.push_str(&(seconds * self.0).to_string());
                rest = unit;
            }
        }
        stretched + rest
    }
}

/// Measures how long the steps of a run take, its waits left out.
#[derive(Debug)]
pub struct Stopwatch {
    began: Instant,
    waited: Duration,
}

impl Stopwatch {
    /// The first step begins.
    pub fn start() -> Self {
        Self { began: Instant::now(), waited: Duration::ZERO }
    }
    /// Lets a span go by.
    pub fn wait(&mut self, span: Duration) {
        std::thread::sleep(span);
        self.waited += span;
    }
    /// How long the steps have taken so far.
    pub fn steps(&self) -> Duration {
        self.began.elapsed().saturating_sub(self.waited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_seconds_are_stretched() {
        let text = "tasks: [{name: a, startDeadline: 2s}, {name: b, triggeredAfter: \"3s\", timeout: 5m}]\ntimeout: 1s\n";
        let expected = "tasks: [{name: a, startDeadline: 4s}, {name: b, triggeredAfter: \"6s\", timeout: 5m}]\ntimeout: 2s\n";
        assert_eq!(Stretch(2).shipyard(text), expected);
        assert_eq!(Stretch(2).shipyard("no spans"), "no spans");
    }

    #[test]
    fn each_stretch_gives_steps_twice_the_time_of_the_one_before() {
        let all: Vec<Stretch> = Stretch::all().collect();
        assert_eq!(all, [2, 4, 8, 16, 32, 64].map(Stretch));
        let steps = Duration::from_millis(1500);
        assert!(Stretch(2).is_too_little(steps) && !Stretch(4).is_too_little(steps));
    }
}
