//! The time frame of an evaluation, `data.evaluation.start` and `.end`: given values are kept, and missing ones are computed. The
//! rules for requests are those of Keptn's `POST …/evaluation`.

use crate::event::Object;
use crate::shipyard::EVALUATION;
use crate::time::{Span, Timestamp};
use serde_json::{Value, json};

/// The length of a time frame that is not given.
const DEFAULT: Span = Span::minutes(5);
/// The shortest time frame that a request may have.
const SHORTEST: Span = Span::minutes(1);

/// The time frame of an evaluation.
#[expect(missing_docs, reason = "the names of the fields say what they are")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    pub start: Timestamp,
    pub end: Timestamp,
}

impl Window {
    /// The time frame in a request: times in RFC 3339 (without a zone: UTC), and a duration. `None`: not given.
    ///
    /// # Errors
    /// The invalid field, and what to send instead.
    pub fn requested(
        (start, end, timeframe): (Option<&str>, Option<&str>, Option<&str>),
        now: Timestamp,
    ) -> Result<Self, (&'static str, String)> {
        let from = start.map(|text| time("start", text)).transpose()?;
        let until = end.map(|text| time("end", text)).transpose()?;
        let span = timeframe.map(|text| Span::parse(text).map_err(|error| ("timeframe", error.to_string()))).transpose()?;
        let window = match (from, until, span) {
            (_, Some(_), Some(_)) => return Err(("timeframe", "does not go with end: send one of them".into())),
            (None, Some(_), None) => return Err(("start", "is missing: end needs it".into())),
            (Some(_), None, None) => return Err(("end", "is missing, and timeframe is, too: start needs one of them".into())),
            (Some(start), Some(end), None) => Self { start, end },
            (Some(start), None, Some(span)) => Self { start, end: start + span },
            (None, None, span) => Self { start: now - span.unwrap_or(DEFAULT), end: now },
        };
        match () {
            () if window.end < window.start => Err(("end", "is before start: exchange them".into())),
            () if window.end - window.start < SHORTEST => {
                let field = if timeframe.is_some() { "timeframe" } else { "end" };
                Err((field, format!("leaves a window of {}: send at least {SHORTEST}", window.end - window.start)))
            }
            () => Ok(window),
        }
    }
}

fn time(field: &'static str, text: &str) -> Result<Timestamp, (&'static str, String)> {
    let shown: String = text.chars().take(50).collect();
    let refused = || (field, format!("{shown:?} is not a time: send for example 2026-11-20T15:00:00Z"));
    Timestamp::parse_lenient(text).ok_or_else(refused)
}

/// Completes the time frame in the data of an evaluation's trigger. Values from the shipyard or the payload are kept.
pub(super) fn complete(base: &Object, own: &mut Object, now: Timestamp) {
    let given = |field: &str| -> Option<String> {
        let of = |object: &Object| object.get(field).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned);
        of(own).or_else(|| base.get(EVALUATION).and_then(Value::as_object).and_then(of))
    };
    let time = |field: &str| given(field).and_then(|text| Timestamp::parse_lenient(&text));
    let timeframe = given("timeframe").and_then(|text| Span::parse(&text).ok()).unwrap_or(DEFAULT);
    let (start, end) = match (time("start"), time("end")) {
        (Some(start), Some(end)) => (start, end),
        (Some(start), None) => (start, start + timeframe),
        (None, Some(end)) => (end - timeframe, end),
        (None, None) => (now - timeframe, now),
    };
    own.insert("start".into(), json!(start.rfc3339()));
    own.insert("end".into(), json!(end.rfc3339()));
    own.insert("timeframe".into(), json!((end - start).to_string().replace(' ', "")));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_of_a_request() {
        let now = Timestamp::parse("2026-11-20T12:00:00Z").unwrap();
        let requested = |start: &str, end: &str, timeframe: &str| {
            let [start, end, timeframe] = [start, end, timeframe].map(|text| Some(text).filter(|text| !text.is_empty()));
            Window::requested((start, end, timeframe), now)
        };
        for (start, end, timeframe, from, until) in [
            ("", "", "", "11:55:00", "12:00:00"),
            ("", "", "10m", "11:50:00", "12:00:00"),
            ("2026-11-20T10:00:00Z", "2026-11-20T11:00:00Z", "", "10:00:00", "11:00:00"),
            ("2026-11-20T10:00:00.000Z", "", "5m", "10:00:00", "10:05:00"),
            ("2026-11-20T10:00:00", "", "1m", "10:00:00", "10:01:00"),
            ("2026-11-20T10:00:00+01:00", "", "1h30m", "09:00:00", "10:30:00"),
        ] {
            let window = requested(start, end, timeframe).unwrap();
            let shown = (window.start.rfc3339(), window.end.rfc3339());
            assert_eq!(shown, (format!("2026-11-20T{from}.000Z"), format!("2026-11-20T{until}.000Z")), "{start} {end} {timeframe}");
        }
        for (start, end, timeframe, field) in [
            ("2026-11-20T10:00:00Z", "2026-11-20T11:00:00Z", "5m", "timeframe"),
            ("", "2026-11-20T11:00:00Z", "5m", "timeframe"),
            ("", "2026-11-20T11:00:00Z", "", "start"),
            ("2026-11-20T10:00:00Z", "", "", "end"),
            ("2026-11-20T11:00:00Z", "2026-11-20T10:00:00Z", "", "end"),
            ("2026-11-20T10:00:00Z", "2026-11-20T10:00:59Z", "", "end"),
            ("2026-11-20T10:00:00Z", "", "59s", "timeframe"),
            ("", "", "30s", "timeframe"),
            ("", "", "soon", "timeframe"),
            ("2026-11-20T10:00:00Z-0700", "", "5m", "start"),
            ("2026-11-20T10:00:00Z", "tomorrow", "", "end"),
        ] {
            assert_eq!(requested(start, end, timeframe).unwrap_err().0, field, "{start} {end} {timeframe}");
        }
    }

    #[test]
    fn an_end_before_the_start_is_told_apart_from_a_window_that_is_too_short() {
        let start = "2026-11-20T11:00:00Z";
        let refused = |end| Window::requested((Some(start), Some(end), None), Timestamp(0)).unwrap_err().1;
        assert_eq!(refused("2026-11-20T10:00:00Z"), "is before start: exchange them");
        for end in [start, "2026-11-20T11:00:30Z"] {
            assert!(refused(end).starts_with("leaves a window of"), "{end}: {}", refused(end));
        }
    }

    #[test]
    fn an_end_alone_takes_the_timeframe_before_it() {
        let mut own = Object::new();
        own.insert("end".into(), json!("2026-11-20T11:00:00Z"));
        own.insert("timeframe".into(), json!("10m"));
        complete(&Object::new(), &mut own, Timestamp(0));
        assert_eq!(own["start"], "2026-11-20T10:50:00.000Z");
    }
}
