//! One criterion: `<600`, `<=+10%`, `>=-8`.

use super::number;

/// How a measured value is compared with its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the words of the format")]
pub enum Operator {
    Below,
    AtMost,
    Equal,
    AtLeast,
    Above,
}

/// In the order in which they are looked for: the longer one first.
const OPERATORS: [(&str, Operator); 5] =
    [("<=", Operator::AtMost), ("<", Operator::Below), ("=", Operator::Equal), (">=", Operator::AtLeast), (">", Operator::Above)];

impl Operator {
    /// Whether the measured value meets the target.
    pub fn holds(self, measured: f64, target: f64) -> bool {
        match self {
            Self::Below => measured < target,
            Self::AtMost => measured <= target,
            Self::Equal => measured == target,
            Self::AtLeast => measured >= target,
            Self::Above => measured > target,
        }
    }
}

/// What the number of a criterion is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The target itself.
    Threshold,
    /// So many percent more than earlier values.
    PercentMore,
    /// So many percent less than earlier values.
    PercentLess,
    /// So much more than earlier values.
    More,
    /// So much less than earlier values.
    Less,
}

impl Kind {
    /// Whether the target depends on earlier evaluations.
    pub fn compares(self) -> bool {
        self != Self::Threshold
    }
}

/// A criterion.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(missing_docs, reason = "the parts that a criterion is written with")]
pub struct Criterion {
    pub operator: Operator,
    pub kind: Kind,
    pub value: f64,
}

/// Why a text is no criterion. The messages are Keptn's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CriterionError {
    /// It does not begin with an operator.
    #[error("invalid criteria string")]
    Operator,
    /// What follows the operator is no number.
    #[error("could not parse criteria target value")]
    Number,
}

impl Criterion {
    /// Reads a criterion; blanks count nowhere. A percentage is a comparison with or without a sign.
    ///
    /// # Errors
    /// There is no operator, or no finite number behind it: a target without end could not be reported.
    pub fn parse(text: &str) -> Result<Self, CriterionError> {
        let text = text.replace(' ', "");
        // Keptn takes `|` for the beginning of a criterion, and then finds no number.
        if !text.starts_with(['<', '=', '>', '|']) {
            return Err(CriterionError::Operator);
        }
        let found = OPERATORS.iter().find_map(|(sign, operator)| Some((*operator, text.strip_prefix(sign)?)));
        let (operator, rest) = found.ok_or(CriterionError::Number)?;
        let (percent, rest) = rest.strip_suffix('%').map_or((false, rest), |rest| (true, rest));
        let (sign, rest) = match (rest.strip_prefix('-'), rest.strip_prefix('+')) {
            (Some(rest), _) => (Some(false), rest),
            (_, Some(rest)) => (Some(true), rest),
            _ => (None, rest),
        };
        let kind = match (percent, sign) {
            (true, Some(false)) => Kind::PercentLess,
            (true, _) => Kind::PercentMore,
            (false, Some(false)) => Kind::Less,
            (false, Some(true)) => Kind::More,
            (false, None) => Kind::Threshold,
        };
        let value = number::parse(rest).filter(|value| value.is_finite()).ok_or(CriterionError::Number)?;
        Ok(Self { operator, kind, value })
    }

    /// What a value must meet, given what earlier values come to.
    pub fn target(&self, aggregate: f64) -> f64 {
        match self.kind {
            Kind::Threshold => self.value,
            Kind::PercentMore => aggregate * (100.0 + self.value) / 100.0,
            Kind::PercentLess => aggregate * (100.0 - self.value) / 100.0,
            Kind::More => aggregate + self.value,
            Kind::Less => aggregate - self.value,
        }
    }
}
