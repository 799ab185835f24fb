//! Points in time and durations, in whole milliseconds, so that the unit of a stored number is never in doubt.

use serde::{Deserialize, Serialize};
use std::ops::{Add, Sub};

/// A point in time: milliseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

/// A duration in milliseconds, 0 to 365 days.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default)]
#[serde(transparent)]
pub struct Span(pub i64);

/// Why a duration was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("duration {given:?} is not understood: write it like 90s, 5m or 1h30m, from 0s to 365 days")]
pub struct SpanError {
    given: String,
}

const LONGEST: i64 = 365 * 24 * 3_600_000;

impl Span {
    /// A duration of whole seconds.
    pub const fn seconds(n: i64) -> Self {
        Self(n * 1000)
    }
    /// A duration of whole minutes.
    pub const fn minutes(n: i64) -> Self {
        Self(n * 60_000)
    }
    /// Parses `90s`, `5m`, `1h30m`, `250ms`: numbers with units, as Go writes durations. At most 365 days.
    pub fn parse(text: &str) -> Result<Self, SpanError> {
        let refused = || SpanError { given: text.to_owned() };
        // humantime also accepts words ("5 minutes", "1month"); Go does not, and so Keptn does not.
        let go_like = !text.is_empty()
            && text.chars().all(|c| c.is_ascii_digit() || "hmsd".contains(c))
            && (text == "0" || text.ends_with(|c: char| c.is_ascii_alphabetic()));
        if !go_like {
            return Err(refused());
        }
        let length =
            if text == "0" { std::time::Duration::ZERO } else { humantime::parse_duration(text).map_err(|_| refused())? };
        i64::try_from(length.as_millis()).ok().filter(|ms| *ms <= LONGEST).map(Span).ok_or_else(refused)
    }
}

impl std::fmt::Display for Span {
    /// For example `90d`, `1h 30m`, `5m`, `0s`: in the units in which people write them, and so without months.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut rest = self.0.max(0);
        let mut parts = vec![];
        for (unit, millis) in [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)] {
            if rest >= millis {
                parts.push(format!("{}{unit}", rest / millis));
                rest %= millis;
            }
        }
        if parts.is_empty() {
            parts.push("0s".to_owned());
        }
        f.write_str(&parts.join(" "))
    }
}

impl Timestamp {
    /// The format of times in Keptn: UTC with exactly three decimals, `2026-11-20T15:04:05.000Z`.
    pub fn rfc3339(self) -> String {
        chrono::DateTime::from_timestamp_millis(self.0).unwrap_or_default().to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
    }
    /// Parses any RFC 3339 time, and cuts it to milliseconds.
    pub fn parse(text: &str) -> Option<Self> {
        chrono::DateTime::parse_from_rfc3339(text).ok().map(|t| Self(t.timestamp_millis()))
    }
    /// Parses RFC 3339, or the same without a time zone, which means UTC.
    pub fn parse_lenient(text: &str) -> Option<Self> {
        let local = || chrono::NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f").ok();
        Self::parse(text).or_else(|| local().map(|t| Self(t.and_utc().timestamp_millis())))
    }
    /// The day in UTC, `20261120`.
    pub fn day(self) -> String {
        chrono::DateTime::from_timestamp_millis(self.0).unwrap_or_default().format("%Y%m%d").to_string()
    }
}

impl Add<Span> for Timestamp {
    type Output = Timestamp;
    fn add(self, span: Span) -> Timestamp {
        Timestamp(self.0.saturating_add(span.0))
    }
}

impl Sub<Span> for Timestamp {
    type Output = Timestamp;
    fn sub(self, span: Span) -> Timestamp {
        Timestamp(self.0.saturating_sub(span.0))
    }
}

impl Sub for Timestamp {
    type Output = Span;
    fn sub(self, earlier: Timestamp) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_as_go_writes_them() {
        assert_eq!(Span::parse("90s"), Ok(Span::seconds(90)));
        assert_eq!(Span::parse("1h30m"), Ok(Span::minutes(90)));
        assert_eq!(Span::parse("250ms"), Ok(Span(250)));
        assert_eq!(Span::parse("0"), Ok(Span(0)));
        for bad in ["", "soon", "5", "-5m", "5 minutes", "1month", "366d", "m"] {
            assert!(Span::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_length_is_shown_as_people_write_it() {
        let shown = |text: &str| Span::parse(text).unwrap().to_string();
        assert_eq!(
            ["0", "250ms", "90s", "1h30m", "24h", "62h", "90d", "365d"].map(shown),
            ["0s", "250ms", "1m 30s", "1h 30m", "1d", "2d 14h", "90d", "365d"]
        );
        assert_eq!(Span(-5).to_string(), "0s");
    }

    #[test]
    fn times_have_three_decimals() {
        let t = Timestamp::parse("2026-11-20T15:04:05.1239Z").unwrap();
        assert_eq!(t.rfc3339(), "2026-11-20T15:04:05.123Z");
        assert_eq!(t.day(), "20261120");
        assert_eq!(Timestamp::parse_lenient("2026-11-20T15:04:05"), Timestamp::parse("2026-11-20T15:04:05Z"));
        assert_eq!(Timestamp::parse_lenient("2026-11-20T15:04:05Z-0700"), None);
    }
}
