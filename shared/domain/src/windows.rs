//! Windows in which work may begin or must not: recurring by a schedule with time zone and duration, or once.
//!
//! Promotions and stages of sequences use the same windows.

mod gate;
#[cfg(test)]
mod tests;

pub use gate::{Closure, Gate, closures, gate, never, why};

use crate::time::{Span, Timestamp};
use chrono::{DateTime, LocalResult, NaiveDate, NaiveDateTime, TimeZone, Utc};
use chrono_tz::Tz;
use croner::Cron;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// The beginning of the search for a schedule that may never be due.
const LONG_AGO: Timestamp = Timestamp(0);

/// A window. Its end is exclusive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Window {
    /// Whether work may or must not begin in the window.
    pub kind: Kind,
    /// The times of the window.
    #[serde(flatten)]
    pub when: When,
    /// The IANA time zone of the schedule, for example `Europe/Berlin`. Absent: UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// The reason, for people who have to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The effect of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Kind {
    /// Work begins only in windows of this kind, if there are any.
    Allow,
    /// No work begins in the window, whatever other windows say.
    Deny,
}

/// The times of a window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum When {
    /// The window recurs.
    Recurring {
        /// When the window opens: a cron expression with five fields, for example `0 9 * * MON-FRI`.
        schedule: String,
        /// How long the window stays open, in elapsed time: changes of daylight saving time do not count.
        duration: Span,
    },
    /// The window opens once.
    Once {
        /// When the window opens.
        from: Timestamp,
        /// When the window closes.
        until: Timestamp,
    },
}

/// The beginning or the end of a window.
#[expect(missing_docs, reason = "the names of the variants say what they are")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    From,
    Until,
}

/// Parses a cron expression: five fields of numbers, the first three letters of months and days, `*`, `,`, `-` and `/`. If both the
/// day of the month and the day of the week are restricted, a day needs to match only one of them. Extensions of other programs
/// (seconds, years, `@daily`, `?`, `L`, `W`, `#`) are refused, because their meanings differ.
///
/// # Errors
/// The expression is invalid, with an example of a valid one.
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

/// The first invalid field, with its valid values. The library's own message uses terms that users do not know.
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

/// Parses a cron expression that has at least one time.
///
/// # Errors
/// Like [`cron`]; also for a date that never comes, such as 30 February.
pub fn schedule(schedule: &str) -> Result<Cron, String> {
    let read = cron(schedule)?;
    let never = || format!("{schedule:?} never comes: no month of these has such a day");
    next(&read, Tz::UTC, LONG_AGO).map(|_| read).ok_or_else(never)
}

/// Parses an IANA time zone. Absent: UTC.
///
/// # Errors
/// The zone is unknown, with an example of a known one.
pub fn zone(zone: Option<&str>) -> Result<Tz, String> {
    let name = zone.unwrap_or("UTC");
    name.parse().map_err(|_| format!("{name:?} is no IANA time zone: write it like \"Europe/Berlin\""))
}

/// The local time in a zone. `None`: the year is out of range.
fn local(at: Timestamp, zone: Tz) -> Option<DateTime<Tz>> {
    Some(DateTime::<Utc>::from_timestamp_millis(at.0)?.with_timezone(&zone))
}

/// The next time of a schedule after `at`. A time that daylight saving time skips is moved to the end of the gap. A time that
/// occurs twice counts at its first occurrence, unless the schedule repeats within hours.
pub fn next(cron: &Cron, zone: Tz, at: Timestamp) -> Option<Timestamp> {
    cron.find_next_occurrence(&local(at, zone)?, false).ok().map(|next| Timestamp(next.timestamp_millis()))
}

/// Parses a time in a manifest: RFC 3339, or a local date and time in the zone, or a date, which means midnight. Of a local time
/// that occurs twice, a window begins at the first occurrence and ends at the second.
///
/// # Errors
/// The text is not a time, or the local time does not exist in the zone.
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
    /// Checks a window. The error has the field, and how to write it.
    ///
    /// # Errors
    /// The schedule, zone, duration or end is unusable.
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

    /// The window in words: its kind, its times, and its reason.
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
