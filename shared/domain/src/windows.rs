//! When work may begin: windows that open on a schedule, in a time zone, for a duration, or once.
//!
//! Promotions and stages of sequences have the same windows.

mod gate;
#[cfg(test)]
mod tests;

pub use gate::{Gate, gate, never, why};

use crate::time::{Span, Timestamp};
use chrono::{DateTime, LocalResult, NaiveDate, NaiveDateTime, TimeZone, Utc};
use chrono_tz::Tz;
use croner::Cron;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// A time from which on a schedule is looked for that may never come.
const LONG_AGO: Timestamp = Timestamp(0);

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

/// Which end of a window a time is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// Its beginning.
    From,
    /// Its end.
    Until,
}

/// Reads a cron expression: five fields of numbers, the first three letters of months and days, `*`, `,`, `-` and `/`. If both the day of the month
/// and the day of the week are restricted, days count that fit one of the two. What other programs add to this (seconds, years, `@daily`, `?`, `L`,
/// `W`, `#`) is refused, because it does not mean the same everywhere.
///
/// # Errors
/// What is none, with an example.
pub fn cron(schedule: &str) -> Result<Cron, String> {
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    let foreign = fields.iter().flat_map(|field| field.chars()).find(|c| !(c.is_ascii_alphanumeric() || "*,-/".contains(*c)));
    let read = || match Cron::from_str(schedule) {
        Err(error) => Err(wrong_field(&fields).unwrap_or_else(|| error.to_string())),
        Ok(read) if read.pattern.days.has_modifiers() || read.pattern.days_of_week.has_modifiers() => {
            Err("L and W are not known".into())
        }
        Ok(read) => Ok(read),
    };
    let read = match foreign {
        Some(c) => Err(format!("{:?} is not known", c.to_string())),
        None if fields.len() != 5 => Err(format!("it has {} fields", fields.len())),
        None if fields.iter().any(|field| field.split(',').any(str::is_empty)) => Err("there is nothing beside a comma".into()),
        None => read(),
    };
    read.map_err(|why| format!("{schedule:?} is no cron expression ({why}): write five fields, like \"0 9 * * MON-FRI\""))
}

/// The first field that is wrong by itself, and what it may be. The library says what it stumbled over, in terms of its own.
fn wrong_field(fields: &[&str]) -> Option<String> {
    const FIELDS: [(&str, &str); 5] = [
        ("minute", "0 to 59"),
        ("hour", "0 to 23"),
        ("day of the month", "1 to 31"),
        ("month", "1 to 12, or JAN to DEC"),
        ("day of the week", "0 to 7, or SUN to SAT"),
    ];
    let alone = |place: usize| (0..FIELDS.len()).map(|i| if i == place { fields[i] } else { "*" }).collect::<Vec<_>>().join(" ");
    let place = (0..FIELDS.len()).find(|place| Cron::from_str(&alone(*place)).is_err())?;
    let (name, range) = FIELDS[place];
    Some(format!("{:?} as the {name} is not within {range}", fields[place]))
}

/// Reads a cron expression whose time comes sooner or later.
///
/// # Errors
/// As [`cron`], and what never comes, such as 30 February.
pub fn schedule(schedule: &str) -> Result<Cron, String> {
    let read = cron(schedule)?;
    let never = || format!("{schedule:?} never comes: no month of these has such a day");
    next(&read, Tz::UTC, LONG_AGO).map(|_| read).ok_or_else(never)
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
            When::Recurring { schedule: given, duration } => {
                schedule(given).map_err(|error| ("schedule", error))?;
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

    /// In words: its kind, when it is open, and why.
    pub fn words(&self) -> String {
        let kind = match self.kind {
            Kind::Allow => "allow",
            Kind::Deny => "deny",
        };
        let zone = zone(self.zone.as_deref()).unwrap_or(Tz::UTC);
        let shown = |at: &Timestamp| local(*at, zone).map(|at| at.format("%Y-%m-%d %H:%M").to_string()).unwrap_or_default();
        let when = match &self.when {
            When::Recurring { schedule, duration } => format!("{schedule} for {duration}"),
            When::Once { from, until } => format!("{} to {}", shown(from), shown(until)),
        };
        let reason = self.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        format!("{kind} {when} {zone}{reason}")
    }
}
