//! What several earlier values come to.

/// A function of earlier values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aggregate {
    /// `avg`
    Average,
    /// `p50`
    P50,
    /// `p90`
    P90,
    /// `p95`
    P95,
    /// Any other word: 0.
    Unknown,
}

impl Aggregate {
    /// The words that there are.
    pub const WORDS: [(&str, Self); 4] = [("avg", Self::Average), ("p50", Self::P50), ("p90", Self::P90), ("p95", Self::P95)];

    /// The function of that name.
    pub fn of_word(word: &str) -> Self {
        Self::WORDS.iter().find(|(known, _)| *known == word).map_or(Self::Unknown, |(_, aggregate)| *aggregate)
    }

    /// The aggregate; `None` without values.
    pub fn of(self, values: &[f64]) -> Option<f64> {
        if values.is_empty() {
            return None;
        }
        Some(match self {
            Self::Average => values.iter().fold(0.0, |sum, value| sum + value) / count(values),
            Self::P50 => percentile(values, 0.5),
            Self::P90 => percentile(values, 0.9),
            Self::P95 => percentile(values, 0.95),
            Self::Unknown => 0.0,
        })
    }
}

fn count(values: &[f64]) -> f64 {
    u32::try_from(values.len()).map_or(f64::MAX, f64::from)
}

/// Weibull's percentile: at `share` of one more than there are, with linear interpolation.
fn percentile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = share * (count(values) + 1.0);
    let whole = place.floor();
    // The rank, counted from 1.
    let rank = (1..=sorted.len()).rev().find(|rank| u32::try_from(*rank).is_ok_and(|rank| f64::from(rank) <= whole));
    match rank {
        None => sorted.first().copied().unwrap_or(0.0),
        Some(rank) => {
            let lower = sorted[rank - 1];
            sorted.get(rank).map_or(lower, |upper| lower + (place - whole) * (upper - lower))
        }
    }
}
