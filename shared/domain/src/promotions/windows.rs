//! When attempts may begin: windows that open on a schedule, in a time zone, for a duration.

use crate::time::{Span, Timestamp};
use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use croner::Cron;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// So many changes of windows are looked through for the next time at which all agree.
const CHANGES: usize = 1000;

/// A window: from each time of its schedule, for its duration. The end is no part of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Window {
    /// Whether attempts may begin in it, or must not.
    pub kind: Kind,
    /// When it opens: a cron expression with five fields, for example `0 9 * * MON-FRI`.
    pub schedule: String,
    /// For how long.
    pub duration: Span,
    /// The IANA time zone of the schedule, for example `Europe/Berlin`; absent: UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
}

/// What a window does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Kind {
    /// Attempts begin only in windows of this kind, if there are any.
    Allow,
    /// No attempt begins in it, whatever other windows say.
    Deny,
}

/// Whether attempts may begin now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gate {
    /// Yes.
    Open,
    /// No; they may from this time on, if there is one.
    Closed(Option<Timestamp>),
}

impl Window {
    /// What is wrong with it: the field, and how to write it.
    ///
    /// # Errors
    /// A schedule, zone or duration that cannot be used.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        self.cron().map_err(|error| {
            (
                "schedule",
                format!("{:?} is no cron expression ({error}): write five fields, like \"0 9 * * MON-FRI\"", self.schedule),
            )
        })?;
        self.tz().ok_or_else(|| {
            (
                "zone",
                format!("{:?} is no IANA time zone: write it like \"Europe/Berlin\"", self.zone.as_deref().unwrap_or_default()),
            )
        })?;
        if self.duration.0 <= 0 {
            return Err(("duration", "must be longer than 0s: write it like 8h".into()));
        }
        Ok(())
    }

    fn cron(&self) -> Result<Cron, croner::errors::CronError> {
        Cron::from_str(&self.schedule)
    }

    fn tz(&self) -> Option<Tz> {
        self.zone.as_deref().map_or(Some(Tz::UTC), |zone| zone.parse().ok())
    }

    fn local(&self, at: Timestamp) -> Option<DateTime<Tz>> {
        Some(DateTime::<Utc>::from_timestamp_millis(at.0)?.with_timezone(&self.tz()?))
    }

    /// When it opened last, not after `at`.
    fn opened(&self, at: Timestamp) -> Option<Timestamp> {
        let local = self.local(at)?;
        self.cron().ok()?.find_previous_occurrence(&local, true).ok().map(|start| Timestamp(start.timestamp_millis()))
    }

    fn opens(&self, after: Timestamp) -> Option<Timestamp> {
        let local = self.local(after)?;
        self.cron().ok()?.find_next_occurrence(&local, false).ok().map(|start| Timestamp(start.timestamp_millis()))
    }

    fn covers(&self, at: Timestamp) -> bool {
        self.opened(at).is_some_and(|start| at < start + self.duration)
    }

    /// When it next opens or closes, after `at`.
    fn changes(&self, at: Timestamp) -> Option<Timestamp> {
        let end = self.opened(at).map(|start| start + self.duration).filter(|end| *end > at);
        end.into_iter().chain(self.opens(at)).min()
    }
}

/// Whether attempts may begin at a time. Windows that deny win; without a window that allows, everything else is open.
pub fn gate(windows: &[Window], now: Timestamp) -> Gate {
    if open(windows, now) {
        return Gate::Open;
    }
    let mut at = now;
    for _ in 0..CHANGES {
        let Some(next) = windows.iter().filter_map(|window| window.changes(at)).min() else { break };
        if open(windows, next) {
            return Gate::Closed(Some(next));
        }
        at = next;
    }
    Gate::Closed(None)
}

fn open(windows: &[Window], at: Timestamp) -> bool {
    let of = |kind| windows.iter().filter(move |window| window.kind == kind);
    let denied = of(Kind::Deny).any(|window| window.covers(at));
    !denied && (of(Kind::Allow).next().is_none() || of(Kind::Allow).any(|window| window.covers(at)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(kind: Kind, schedule: &str, hours: i64, zone: &str) -> Window {
        Window { kind, schedule: schedule.into(), duration: Span::minutes(hours * 60), zone: Some(zone.into()) }
    }

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    #[test]
    fn a_window_begins_with_its_start_and_ends_before_its_end() {
        let office = [window(Kind::Allow, "0 9 * * MON-FRI", 8, "Europe/Berlin")];
        // A Monday in winter: 9:00 in Berlin is 8:00 UTC.
        assert_eq!(gate(&office, at("2026-11-23T08:00:00Z")), Gate::Open);
        assert_eq!(gate(&office, at("2026-11-23T15:59:59Z")), Gate::Open);
        assert_eq!(gate(&office, at("2026-11-23T16:00:00Z")), Gate::Closed(Some(at("2026-11-24T08:00:00Z"))));
        assert_eq!(gate(&office, at("2026-11-27T20:00:00Z")), Gate::Closed(Some(at("2026-11-30T08:00:00Z"))));
    }

    #[test]
    fn the_zones_clock_counts_when_it_changes() {
        let office = [window(Kind::Allow, "0 9 * * *", 1, "Europe/Berlin")];
        // Summer time ends on 2026-10-25.
        assert_eq!(gate(&office, at("2026-10-24T07:30:00Z")), Gate::Open);
        assert_eq!(gate(&office, at("2026-10-25T07:30:00Z")), Gate::Closed(Some(at("2026-10-25T08:00:00Z"))));
        let two_zones = [office[0].clone(), window(Kind::Allow, "0 9 * * *", 1, "America/New_York")];
        assert_eq!(gate(&two_zones, at("2026-11-23T14:30:00Z")), Gate::Open);
    }

    #[test]
    fn what_denies_wins() {
        let windows = [window(Kind::Allow, "0 8 * * *", 10, "UTC"), window(Kind::Deny, "0 12 * * *", 2, "UTC")];
        assert_eq!(gate(&windows, at("2026-11-23T11:00:00Z")), Gate::Open);
        assert_eq!(gate(&windows, at("2026-11-23T12:00:00Z")), Gate::Closed(Some(at("2026-11-23T14:00:00Z"))));
        assert_eq!(gate(&windows[1..], at("2026-11-23T03:00:00Z")), Gate::Open);
        let never = [window(Kind::Deny, "0 0 * * *", 24, "UTC")];
        assert_eq!(gate(&never, at("2026-11-23T03:00:00Z")), Gate::Closed(None));
    }

    #[test]
    fn what_cannot_be_used_is_refused() {
        for (field, bad) in [
            ("schedule", window(Kind::Allow, "0 25 * * *", 1, "UTC")),
            ("schedule", window(Kind::Allow, "soon", 1, "UTC")),
            ("zone", window(Kind::Allow, "0 9 * * *", 1, "Mars/Olympus")),
            ("duration", window(Kind::Allow, "0 9 * * *", 0, "UTC")),
        ] {
            assert_eq!(bad.check().unwrap_err().0, field);
        }
        assert_eq!(window(Kind::Allow, "0 9 * * *", 1, "UTC").check(), Ok(()));
    }
}
