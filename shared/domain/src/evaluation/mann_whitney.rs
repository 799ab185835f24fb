//! Whether a canary's values are higher or lower than its baseline's: the Mann–Whitney U test, with the rules and the arithmetic of
//! Kayenta's judge (`NetflixACAJudge`), so that the same series are judged the same here and there.
//!
//! Two things differ. Series that each have one value only get noise from Kayenta's random generator; here they are compared
//! without, which is what the noise comes to as it vanishes. And a value that is no finite number counts as none.

use super::numeric::{normal_quantile, root};
use serde::{Deserialize, Serialize};
use std::iter::Peekable;

/// Larger values count as not finite, so that no difference of two overflows.
const LARGEST: f64 = f64::MAX / 4.0;

/// Which change is bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Direction {
    /// More than the baseline, as with errors.
    Increase,
    /// Less than the baseline, as with orders.
    Decrease,
    /// Any.
    #[default]
    Either,
}

/// What is a difference. The default is Kayenta's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// How sure the test is that the shift is between its bounds: 0.98.
    pub confidence: f64,
    /// The share of the estimate that the nearer bound must be away from zero: 0.25.
    pub tolerance: f64,
    /// Which change is bad.
    pub direction: Direction,
    /// The ratio of the means (canary / baseline) up to which a decrease counts: 1, any decrease.
    pub allowed_decrease: f64,
    /// The ratio of the means from which on an increase counts: 1, any increase.
    pub allowed_increase: f64,
    /// Values that are so many interquartile ranges outside the quartiles are left out; Kayenta's factor is 3. Absent: none are.
    pub outliers: Option<f64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            confidence: 0.98,
            tolerance: 0.25,
            direction: Direction::Either,
            allowed_decrease: 1.0,
            allowed_increase: 1.0,
            outliers: None,
        }
    }
}

/// What a comparison comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    /// No difference that counts.
    Pass,
    /// The canary's values are higher.
    High,
    /// The canary's values are lower.
    Low,
    /// One of the series has no value.
    NoData,
}

/// How far the canary's values are from the baseline's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shift {
    /// The Hodges–Lehmann estimate: the median of all differences between a value of the canary and one of the baseline.
    pub estimate: f64,
    /// The lower bound of the confidence interval.
    pub lower: f64,
    /// The upper bound.
    pub upper: f64,
    /// The canary's mean divided by the baseline's. Absent: one of them is zero.
    pub ratio: Option<f64>,
}

/// What a comparison comes to, and why.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// The judgement.
    pub verdict: Verdict,
    /// Absent: there was nothing to compute, because a series is empty, or both are the same.
    pub shift: Option<Shift>,
}

/// Compares a canary's values with its baseline's. Their order does not matter.
pub fn compare(baseline: &[f64], canary: &[f64], settings: &Settings) -> Comparison {
    let (y, x) = (Sample::new(baseline, settings.outliers), Sample::new(canary, settings.outliers));
    let without = |verdict| Comparison { verdict, shift: None };
    let (Some((x_least, x_most)), Some((y_least, y_most))) = (x.ends(), y.ends()) else { return without(Verdict::NoData) };
    // The least and the greatest difference. They are one if each series has one value only; then so are the bounds.
    let ends = (x_least - y_most, x_most - y_least);
    if x.0 == y.0 || ends == (0.0, 0.0) {
        return without(Verdict::Pass);
    }
    let quantile = normal_quantile((1.0 - settings.confidence) / 2.0);
    let estimate = root(ends, |shift| statistic(&x, &y, shift));
    let (lower, upper) = (bound(&x, &y, ends, -quantile), bound(&x, &y, ends, quantile));
    let shift = Shift { estimate, lower, upper, ratio: ratio(x.mean(), y.mean()) };
    Comparison { verdict: verdict(&shift, settings), shift: Some(shift) }
}

fn verdict(shift: &Shift, settings: &Settings) -> Verdict {
    let limit = settings.tolerance * shift.estimate.abs();
    let is_high = shift.lower > limit && shift.ratio.is_none_or(|ratio| ratio >= settings.allowed_increase);
    let is_low = shift.upper < -limit && shift.ratio.is_none_or(|ratio| ratio <= settings.allowed_decrease);
    match settings.direction {
        Direction::Increase | Direction::Either if is_high => Verdict::High,
        Direction::Decrease | Direction::Either if is_low => Verdict::Low,
        _ => Verdict::Pass,
    }
}

/// A bound of the confidence interval: the shift at which the statistic is this quantile, or the end of all shifts on its side.
fn bound(x: &Sample, y: &Sample, ends: (f64, f64), quantile: f64) -> f64 {
    let at = |shift: f64| statistic(x, y, shift) - quantile;
    match ends {
        (least, _) if at(least) <= 0.0 => least,
        (_, most) if at(most) >= 0.0 => most,
        _ => root(ends, at),
    }
}

/// By how many standard deviations the ranks of a sample, moved down by a shift, differ from what they are if the two are alike:
/// the normal approximation of U with corrections for ties and continuity, as R's `wilcox.test` has it.
fn statistic(Sample(x): &Sample, Sample(y): &Sample, shift: f64) -> f64 {
    let (m, n) = (x.len() as f64, y.len() as f64);
    let (mut ranks, mut tied, mut seen) = (0.0, 0.0, 0.0);
    let (mut of_x, mut of_y) = (x.iter().map(|value| value - shift).peekable(), y.iter().copied().peekable());
    while let Some(least) = least(of_x.peek(), of_y.peek()) {
        let from_x = taken(&mut of_x, least);
        let same = from_x + taken(&mut of_y, least);
        ranks += from_x * (seen + (same + 1.0) / 2.0);
        tied += same * same * same - same;
        seen += same;
    }
    let difference = ranks - m * (m + 1.0) / 2.0 - m * n / 2.0;
    let correction = if difference == 0.0 { 0.0 } else { 0.5_f64.copysign(difference) };
    let deviation = (m * n / 12.0 * (m + n + 1.0 - tied / ((m + n) * (m + n - 1.0)))).sqrt();
    // All values are the same at this shift, which rounding can come to.
    if deviation > 0.0 { (difference - correction) / deviation } else { 0.0 }
}

/// How many values are at most this one. They are taken.
fn taken(of: &mut Peekable<impl Iterator<Item = f64>>, most: f64) -> f64 {
    let mut count = 0.0;
    while of.next_if(|value| value.total_cmp(&most).is_le()).is_some() {
        count += 1.0;
    }
    count
}

fn least(one: Option<&f64>, other: Option<&f64>) -> Option<f64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if one.total_cmp(other).is_lt() { *one } else { *other }),
        (one, other) => one.or(other).copied(),
    }
}

fn ratio(canary: f64, baseline: f64) -> Option<f64> {
    (canary != 0.0 && baseline != 0.0).then(|| canary / baseline).filter(|ratio| !ratio.is_nan())
}

/// The values of a series that count, in ascending order.
struct Sample(Vec<f64>);

impl Sample {
    fn new(values: &[f64], outliers: Option<f64>) -> Self {
        // Adding zero makes -0 the 0 that it equals.
        let mut all: Vec<f64> = values.iter().filter(|value| value.abs() <= LARGEST).map(|value| value + 0.0).collect();
        all.sort_by(f64::total_cmp);
        let mut sample = Self(all);
        if let Some((low, high)) = outliers.and_then(|factor| sample.fences(factor)) {
            sample.0.retain(|value| !(*value < low || *value > high));
        }
        sample
    }

    fn ends(&self) -> Option<(f64, f64)> {
        Some((*self.0.first()?, *self.0.last()?))
    }

    /// Between which values a value is none of the outliers: Tukey's fences, or the first and the last percentile where these are
    /// further out.
    fn fences(&self, factor: f64) -> Option<(f64, f64)> {
        let [p01, p25, p75, p99] = [0.01, 0.25, 0.75, 0.99].map(|share| self.percentile(share));
        let (p25, p75) = (p25?, p75?);
        let range = factor * (p75 - p25);
        Some((p01?.min(p25 - range), p99?.max(p75 + range)))
    }

    /// With linear interpolation at `share` of one less than there are (R's type 7).
    fn percentile(&self, share: f64) -> Option<f64> {
        let place = share * self.0.len().checked_sub(1)? as f64;
        let lower = *self.0.get(place.floor() as usize)?;
        let upper = self.0.get(place.ceil() as usize)?;
        Some(lower + (place - place.floor()) * (upper - lower))
    }

    /// In two passes, the second of which corrects what the first lost by rounding.
    fn mean(&self) -> f64 {
        let mean = self.0.iter().sum::<f64>() / self.0.len() as f64;
        mean + self.0.iter().map(|value| value - mean).sum::<f64>() / self.0.len() as f64
    }
}

#[cfg(test)]
mod tests;
