//! An objective that was not met, in words: whoever tells of one, a pipeline or a canary, says the same.

use super::{Criterion, shown};

/// An objective that was not met.
#[derive(Debug, Clone, PartialEq)]
pub struct Missed<'a> {
    /// Its indicator.
    pub sli: &'a str,
    /// What was measured. `None`: there was no value.
    pub value: Option<f64>,
    /// What it was compared with, where that is told beside it.
    pub before: Option<f64>,
    /// The violated criteria of a pass, each with what it came to if it compares; or why there was no value.
    pub limit: String,
}

impl<'a> Missed<'a> {
    /// `limits`: the violated criteria, and the number that each of them comes to. `why`: why there was no value.
    pub fn new<'l>(sli: &'a str, value: Option<f64>, limits: impl Iterator<Item = (&'l str, f64)>, why: &str) -> Self {
        let limit = match value {
            Some(_) => limits.map(|(criteria, target)| limit(criteria, target)).collect::<Vec<_>>().join(", "),
            None => why.to_owned(),
        };
        Self { sli, value, before: None, limit }
    }

    /// The same beside an earlier value.
    #[must_use]
    pub fn after(self, before: Option<f64>) -> Self {
        Self { before, ..self }
    }
}

impl std::fmt::Display for Missed<'_> {
    /// For example `error_rate is 2.5, not <1`, or `error_rate is 3.2, 0.4 before, not <=+50% (0.6)`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { sli, limit, .. } = self;
        match (self.value.map(readable), self.before.map(readable)) {
            (Some(value), Some(before)) => write!(f, "{sli} is {value}, {before} before, not {limit}"),
            (Some(value), None) => write!(f, "{sli} is {value}, not {limit}"),
            (None, _) => write!(f, "{sli} has no value ({limit})"),
        }
    }
}

/// A number for people: four digits after the point are enough.
pub fn readable(value: f64) -> String {
    let rounded = (value * 10_000.0).round() / 10_000.0;
    shown(if rounded == 0.0 { value } else { rounded })
}

/// A criterion, with what it came to if it compares.
fn limit(criteria: &str, target: f64) -> String {
    let plain: String = criteria.chars().filter(|c| !c.is_whitespace()).collect();
    match Criterion::parse(&plain) {
        Ok(criterion) if criterion.kind.compares() => format!("{plain} ({})", readable(target)),
        _ => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_has_the_numbers() {
        let limits = [("<= +50 %", 0.6), ("<1", 1.0)];
        let missed = |value| Missed::new("error_rate", value, limits.into_iter(), "query did not return any values");
        assert_eq!(missed(Some(3.2)).to_string(), "error_rate is 3.2, not <=+50% (0.6), <1");
        assert_eq!(missed(Some(3.2)).after(Some(0.4)).to_string(), "error_rate is 3.2, 0.4 before, not <=+50% (0.6), <1");
        assert_eq!(missed(None).to_string(), "error_rate has no value (query did not return any values)");
    }
}
