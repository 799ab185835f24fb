//! `windows`: of a stage of a shipyard, and of a promotion.

use super::finding::Report;
use super::levels::{self, pipelines};
use super::tree::Node;
use super::values::{duration, text};
use keelway_domain::time::{Span, Timestamp};
use keelway_domain::windows::{Edge, Kind, When, Window, instant, never, zone};

/// The most windows in one list.
const MOST: usize = 50;
/// The longest reason, in bytes.
const LONGEST_REASON: usize = 200;

/// The `windows` under a node.
pub fn read(node: &Node, path: &str, report: &mut Report) -> Vec<Window> {
    let path = format!("{path}.windows");
    let Some(list) = node.get("windows").filter(|list| !list.is_null()) else { return vec![] };
    let entries = levels::items(list, &path, &pipelines::WINDOW, report).unwrap_or_default();
    if entries.len() > MOST {
        report.error(list, path, format!("has {} windows: at most {MOST} are allowed", entries.len()));
        return vec![];
    }
    let read = |(place, node): (usize, &Node)| window(node, &format!("{path}[{place}]"), report);
    let windows: Vec<Window> = entries.into_iter().enumerate().filter_map(read).collect();
    if never(&windows) {
        let message = "never open: windows that deny cover everything that is allowed for two years; shorten or remove one of them";
        report.error(list, path, message.into());
    }
    windows
}

fn window(node: &Node, path: &str, report: &mut Report) -> Option<Window> {
    levels::check(node, &pipelines::WINDOW, path, report);
    let errors = report.errors();
    let kind = match text(node, "kind", path, report).as_deref() {
        Some("deny") => Kind::Deny,
        Some("allow") => Kind::Allow,
        _ => {
            let message = "is neither `allow` nor `deny`: write one of them";
            report.error(node.get("kind").unwrap_or(node), format!("{path}.kind"), message.into());
            Kind::Allow
        }
    };
    let zone = text(node, "zone", path, report);
    let given = |field: &&str| node.get(field).is_some_and(|value| !value.is_null());
    let once = ["from", "until"].iter().any(given);
    for field in ["schedule", "duration"].iter().filter(|field| once && given(field)) {
        let message = "stands beside `from` and `until`: a window recurs, or is open once; leave one of the two out";
        report.error(node.get(field).unwrap_or(node), format!("{path}.{field}"), message.into());
    }
    let when = if once { open_once(node, zone.as_deref(), path, report) } else { recurring(node, zone.as_deref(), path, report) };
    let reason = text(node, "reason", path, report).filter(|reason| !reason.is_empty());
    if let Some(bytes) = reason.as_ref().map(String::len).filter(|bytes| *bytes > LONGEST_REASON) {
        let message = format!("has {bytes} bytes: at most {LONGEST_REASON} are allowed");
        report.error(node.get("reason").unwrap_or(node), format!("{path}.reason"), message);
    }
    (report.errors() == errors).then_some(Window { kind, when, zone, reason })
}

/// Reports what is wrong with a window of which only one field is under test, so that all mistakes are told at once.
fn tell(when: When, zone: Option<&str>, (node, path): (&Node, &str), report: &mut Report) {
    let window = Window { kind: Kind::Allow, when, zone: zone.map(str::to_owned), reason: None };
    if let Err((field, message)) = window.check() {
        report.error(node.get(field).unwrap_or(node), format!("{path}.{field}"), message);
    }
}

fn recurring(node: &Node, zone: Option<&str>, path: &str, report: &mut Report) -> When {
    let schedule = text(node, "schedule", path, report).unwrap_or_default();
    let written = node.get("duration").is_some_and(|duration| !duration.is_null());
    let duration = duration(node, "duration", path, report);
    let valid = |schedule: &str, duration| When::Recurring { schedule: schedule.to_owned(), duration };
    let (daily, hour) = ("0 0 * * *", Span::minutes(60));
    if schedule.is_empty() && node.get("schedule").is_none() {
        let message =
            "is missing: write when the window opens, like \"0 18 * * FRI\", or `from` and `until` for one that is open once";
        report.error(node, format!("{path}.schedule"), message.into());
    } else {
        tell(valid(&schedule, hour), None, (node, path), report);
    }
    tell(valid(daily, hour), zone, (node, path), report);
    if !written || duration.is_some() {
        tell(valid(daily, duration.unwrap_or_default()), None, (node, path), report);
    }
    valid(&schedule, duration.unwrap_or_default())
}

fn open_once(node: &Node, named: Option<&str>, path: &str, report: &mut Report) -> When {
    let in_zone = zone(named).map_err(|message| report.error(node.get("zone").unwrap_or(node), format!("{path}.zone"), message));
    let mut time = |field: &str, edge: Edge| -> Option<Timestamp> {
        let Some(given) = text(node, field, path, report).filter(|given| !given.is_empty()) else {
            let message = "is missing: a window that is open once has both; write a time like 2026-12-23T18:00";
            report.error(node.get(field).unwrap_or(node), format!("{path}.{field}"), message.into());
            return None;
        };
        let read = instant(&given, *in_zone.as_ref().ok()?, edge);
        read.map_err(|message| report.error(node.get(field).unwrap_or(node), format!("{path}.{field}"), message)).ok()
    };
    let (from, until) = (time("from", Edge::From), time("until", Edge::Until));
    if let (Some(from), Some(until)) = (from, until) {
        tell(When::Once { from, until }, None, (node, path), report);
    }
    When::Once { from: from.unwrap_or_default(), until: until.unwrap_or_default() }
}
