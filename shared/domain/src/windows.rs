//! When work may begin: windows that open on a schedule, in a time zone, for a duration, or once.
//!
//! Promotions and stages of sequences have the same windows.

use crate::time::{Span, Timestamp};
use chrono::{DateTime, LocalResult, NaiveDate, NaiveDateTime, TimeZone, Utc};
use chrono_tz::Tz;
use croner::Cron;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// So many changes of windows are looked through for the next time at which all agree.
const CHANGES: usize = 1000;

/// A window. Its end is no part of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Window {
    /// Whether work may begin in it, or must not.
    pub kind: Kind,
    /// When it is open.
    #[serde(flatten)]
    pub when: When,
    /// The IANA time zone of the schedule, for example `Europe/Berlin`; absent: UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Why it is there, for those who have to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What a window does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Kind {
    /// Work begins only in windows of this kind, if there are any.
    Allow,
    /// No work begins in it, whatever other windows say.
    Deny,
}

/// When a window is open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum When {
    /// Again and again.
    Recurring {
        /// When it opens: a cron expression with five fields, for example `0 9 * * MON-FRI`.
        schedule: String,
        /// For how long, as a clock counts that is never put forward or back.
        duration: Span,
    },
    /// Once.
    Once {
        /// When it opens.
        from: Timestamp,
        /// When it closes.
        until: Timestamp,
    },
}

/// Whether work may begin now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gate {
    /// Yes.
    Open,
    /// No; it may from this time on, if there is one.
    Closed(Option<Timestamp>),
}

/// Which end of a window a time is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// Its beginning.
    From,
    /// Its end.
    Until,
}

/// Reads a cron expression.
///
/// # Errors
/// What is none, with an example.
pub fn cron(schedule: &str) -> Result<Cron, String> {
    Cron::from_str(schedule)
        .map_err(|error| format!("{schedule:?} is no cron expression ({error}): write five fields, like \"0 9 * * MON-FRI\""))
}

/// Reads an IANA time zone; absent: UTC.
///
/// # Errors
/// What is none, with an example.
pub fn zone(zone: Option<&str>) -> Result<Tz, String> {
    let name = zone.unwrap_or("UTC");
    name.parse().map_err(|_| format!("{name:?} is no IANA time zone: write it like \"Europe/Berlin\""))
}

/// A time in a zone. `None`: too far away for a calendar.
fn local(at: Timestamp, zone: Tz) -> Option<DateTime<Tz>> {
    Some(DateTime::<Utc>::from_timestamp_millis(at.0)?.with_timezone(&zone))
}

/// The next time of a schedule in a zone, after `at`. A time that the clocks skip happens when they have gone on, one that they show
/// twice happens at the first of the two, unless the schedule repeats within hours.
pub fn next(cron: &Cron, zone: Tz, at: Timestamp) -> Option<Timestamp> {
    cron.find_next_occurrence(&local(at, zone)?, false).ok().map(|next| Timestamp(next.timestamp_millis()))
}

/// Reads a time as manifests have it: RFC 3339, or the date and time that the clocks of the zone show, or a date, which begins with
/// midnight. Of a time that the clocks show twice, a window begins with the first and ends with the second.
///
/// # Errors
/// What is no time, or one that the zone's clocks skip.
pub fn instant(text: &str, zone: Tz, edge: Edge) -> Result<Timestamp, String> {
    if let Some(at) = Timestamp::parse(text) {
        return Ok(at);
    }
    let time = ["%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M"].iter().find_map(|form| NaiveDateTime::parse_from_str(text, form).ok());
    let date = || NaiveDate::parse_from_str(text, "%Y-%m-%d").ok().and_then(|date| date.and_hms_opt(0, 0, 0));
    let Some(shown) = time.or_else(date) else {
        return Err(format!("{text:?} is no time: write it like 2026-12-23T18:00 (in `zone`), or like 2026-12-23T18:00:00+01:00"));
    };
    let found = match (zone.from_local_datetime(&shown), edge) {
        (LocalResult::Single(at), _)
        | (LocalResult::Ambiguous(at, _), Edge::From)
        | (LocalResult::Ambiguous(_, at), Edge::Until) => at,
        (LocalResult::None, _) => {
            return Err(format!(
                "{text:?} does not exist in {zone}: the clocks are put forward past it; write a time before or after"
            ));
        }
    };
    Ok(Timestamp(found.timestamp_millis()))
}

impl Window {
    /// What is wrong with it: the field, and how to write it.
    ///
    /// # Errors
    /// A schedule, zone, duration or end that cannot be used.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        zone(self.zone.as_deref()).map_err(|error| ("zone", error))?;
        match &self.when {
            When::Recurring { schedule, duration } => {
                cron(schedule).map_err(|error| ("schedule", error))?;
                if duration.0 <= 0 {
                    return Err(("duration", "must be longer than 0s: write it like 8h".into()));
                }
            }
            When::Once { from, until } if until <= from => {
                return Err(("until", "is not after `from`: the window would never be open".into()));
            }
            When::Once { .. } => (),
        }
        Ok(())
    }

    /// When it opened last, not after `at`, and when it closes then.
    fn opened(&self, at: Timestamp) -> Option<(Timestamp, Timestamp)> {
        match &self.when {
            When::Recurring { schedule, duration } => {
                let local = local(at, zone(self.zone.as_deref()).ok()?)?;
                let start = cron(schedule).ok()?.find_previous_occurrence(&local, true).ok()?;
                let start = Timestamp(start.timestamp_millis());
                Some((start, start + *duration))
            }
            When::Once { from, until } => Some((*from, *until)).filter(|(from, _)| *from <= at),
        }
    }

    fn opens(&self, after: Timestamp) -> Option<Timestamp> {
        match &self.when {
            When::Recurring { schedule, .. } => next(&cron(schedule).ok()?, zone(self.zone.as_deref()).ok()?, after),
            When::Once { from, .. } => Some(*from).filter(|from| *from > after),
        }
    }

    fn covers(&self, at: Timestamp) -> bool {
        self.opened(at).is_some_and(|(_, end)| at < end)
    }

    /// When it next opens or closes, after `at`.
    fn changes(&self, at: Timestamp) -> Option<Timestamp> {
        let end = self.opened(at).map(|(_, end)| end).filter(|end| *end > at);
        end.into_iter().chain(self.opens(at)).min()
    }
}

/// Whether work may begin at a time. Windows that deny win; without a window that allows, everything else is open.
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

/// Why no work begins at a time at which the gate is closed: the reason that a window gives, or which kind keeps it closed.
pub fn why(windows: &[Window], now: Timestamp) -> String {
    let denying = windows.iter().find(|window| window.kind == Kind::Deny && window.covers(now));
    let reason = |window: &Window| window.reason.clone().filter(|reason| !reason.is_empty());
    match denying {
        Some(window) => reason(window).unwrap_or_else(|| "a window that denies".into()),
        None => "no window that allows is open".into(),
    }
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
        Window {
            kind,
            when: When::Recurring { schedule: schedule.into(), duration: Span::minutes(hours * 60) },
            zone: Some(zone.into()),
            reason: None,
        }
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

    fn once(kind: Kind, from: &str, until: &str) -> Window {
        Window { kind, when: When::Once { from: at(from), until: at(until) }, zone: None, reason: Some("Christmas".into()) }
    }

    #[test]
    fn a_window_may_be_open_once() {
        let freeze = [once(Kind::Deny, "2026-12-23T17:00:00Z", "2027-01-02T07:00:00Z")];
        assert_eq!(gate(&freeze, at("2026-12-23T16:59:59Z")), Gate::Open);
        assert_eq!(gate(&freeze, at("2026-12-23T17:00:00Z")), Gate::Closed(Some(at("2027-01-02T07:00:00Z"))));
        assert_eq!(gate(&freeze, at("2027-01-02T07:00:00Z")), Gate::Open);
        assert_eq!(why(&freeze, at("2026-12-24T00:00:00Z")), "Christmas");
        // Two that follow each other are one.
        let longer = [freeze[0].clone(), once(Kind::Deny, "2027-01-02T07:00:00Z", "2027-01-03T00:00:00Z")];
        assert_eq!(gate(&longer, at("2026-12-24T00:00:00Z")), Gate::Closed(Some(at("2027-01-03T00:00:00Z"))));
        let allowed = [once(Kind::Allow, "2026-12-23T17:00:00Z", "2027-01-02T07:00:00Z")];
        assert_eq!(gate(&allowed, at("2027-01-03T00:00:00Z")), Gate::Closed(None), "it has been");
        assert_eq!(why(&allowed, at("2027-01-03T00:00:00Z")), "no window that allows is open");
        let backwards = once(Kind::Deny, "2027-01-02T07:00:00Z", "2026-12-23T17:00:00Z");
        assert_eq!(backwards.check().unwrap_err().0, "until");
    }

    #[test]
    fn a_window_that_opens_while_the_clocks_skip_its_hour_opens_when_they_have_gone_on() {
        // In Berlin, 02:00 to 03:00 does not exist on 2026-03-29; 03:00 there is 01:00 UTC.
        let night = [window(Kind::Deny, "30 2 * * *", 1, "Europe/Berlin")];
        assert_eq!(gate(&night, at("2026-03-29T00:59:59Z")), Gate::Open);
        let end = at("2026-03-29T02:00:00Z");
        assert_eq!(gate(&night, at("2026-03-29T01:00:00Z")), Gate::Closed(Some(end)));
        assert_eq!(gate(&night, end), Gate::Open);
        // The next day, 02:30 in summer is 00:30 UTC.
        assert_eq!(gate(&night, at("2026-03-30T00:30:00Z")), Gate::Closed(Some(at("2026-03-30T01:30:00Z"))));
    }

    #[test]
    fn a_window_whose_hour_comes_twice_opens_at_the_first() {
        // In Berlin, 02:00 to 03:00 happens twice on 2026-10-25: at 00:00 and at 01:00 UTC.
        let night = [window(Kind::Deny, "30 2 * * *", 1, "Europe/Berlin")];
        assert_eq!(gate(&night, at("2026-10-25T00:30:00Z")), Gate::Closed(Some(at("2026-10-25T01:30:00Z"))));
        assert_eq!(gate(&night, at("2026-10-25T01:30:00Z")), Gate::Open, "not again at the second");
        let cron = cron("30 2 * * *").unwrap();
        let berlin = zone(Some("Europe/Berlin")).unwrap();
        assert_eq!(next(&cron, berlin, at("2026-10-25T00:30:00Z")), Some(at("2026-10-26T01:30:00Z")));
    }

    #[test]
    fn times_are_those_of_the_zone() {
        let berlin = zone(Some("Europe/Berlin")).unwrap();
        let read = |text| instant(text, berlin, Edge::From);
        assert_eq!(read("2026-12-23T18:00"), Ok(at("2026-12-23T17:00:00Z")));
        assert_eq!(read("2026-12-24"), Ok(at("2026-12-23T23:00:00Z")));
        assert_eq!(read("2026-12-23T18:00:00+02:00"), Ok(at("2026-12-23T16:00:00Z")));
        // Twice: the window is as long as it can be.
        assert_eq!(read("2026-10-25T02:30"), Ok(at("2026-10-25T00:30:00Z")));
        assert_eq!(instant("2026-10-25T02:30", berlin, Edge::Until), Ok(at("2026-10-25T01:30:00Z")));
        assert!(read("2026-03-29T02:30").unwrap_err().contains("does not exist in Europe/Berlin"));
        assert!(read("tomorrow").unwrap_err().contains("write it like"));
    }

    #[test]
    fn windows_are_kept_as_they_were_before_there_were_reasons() {
        let kept = r#"{"kind":"allow","schedule":"0 9 * * *","duration":3600000,"zone":"UTC"}"#;
        let read: Window = serde_json::from_str(kept).unwrap();
        assert_eq!(read, window(Kind::Allow, "0 9 * * *", 1, "UTC"));
        assert_eq!(serde_json::to_value(&read).unwrap(), serde_json::from_str::<serde_json::Value>(kept).unwrap());
        let freeze = once(Kind::Deny, "2026-12-23T17:00:00Z", "2027-01-02T07:00:00Z");
        assert_eq!(serde_json::from_str::<Window>(&serde_json::to_string(&freeze).unwrap()).unwrap(), freeze);
    }
}
