//! Loads that meet the quotas of AWS, played through in memory: how long they take beside the time that the quotas allow, and what
//! the requests cost that are made again. And what one more delivery takes beside many.

use crate::cost::number;
use crate::price::prices;
use crate::report::{Aim, Report};
use crate::size::Size;
use keelway_cloud_tests::Problem;
use keelway_scale::{Outcome, Place, burst, flat, observed, one_context, outage, page, replay, window};
use keelway_world::account::Totals;
use serde_json::Value;
use std::path::Path;

const LARGEST: &str = "us-east-1";
const FRANKFURT: &str = "eu-central-1";
const SMALLEST: &str = "af-south-1";

type Load = fn(Place) -> Outcome;
/// Where each load is played.
const LOADS: [(Load, &[&str]); 6] = [
    (burst, &[LARGEST, FRANKFURT, SMALLEST]),
    (window, &[FRANKFURT]),
    (one_context, &[FRANKFURT]),
    (observed, &[FRANKFURT, SMALLEST]),
    (outage, &[SMALLEST]),
    (replay, &[SMALLEST]),
];

/// Plays every load, smaller by the size's factor.
pub fn count(report: &mut Report, size: &Size, say: &dyn Fn(&str)) -> Result<(), Problem> {
    let prices = prices()?;
    for (load, regions) in LOADS {
        for region in regions {
            let place = Place::new(region, size.smaller);
            let (outcome, free) = (load(place), load(place.boundless()));
            say(&outcome.line());
            [&outcome, &free].into_iter().try_for_each(sound)?;
            tell(report, &outcome, (price(&prices, &outcome.totals), price(&prices, &free.totals)));
        }
    }
    let few = 10;
    for others in [few, size.others] {
        say(&format!("one more delivery beside {others}"));
        let group = format!("scale, one more delivery of one task, {others} others");
        let (accepted, ended) = flat::behind_waiting(others);
        for (what, counted) in [
            ("have ended", flat::beside_finished(others)),
            ("wait on its lane: to accept it", accepted),
            ("wait on its lane: the end of the first, and the start of the next", ended),
        ] {
            report.row(&group, &format!("that {what}: AWS requests"), number(counted.requests), "", Aim::None);
            report.row(&group, &format!("that {what}: write units"), counted.writes, "WRU", Aim::None);
            report.row(&group, &format!("that {what}: read units"), counted.reads, "RRU", Aim::None);
        }
    }
    Ok(())
}

/// Nothing is wrong, and nothing is lost.
fn sound(outcome: &Outcome) -> Result<(), Problem> {
    let lost = (outcome.ended != outcome.begun).then(|| outcome.line());
    outcome.wrong.first().cloned().or(lost).map_or(Ok(()), |wrong| Err(wrong.into()))
}

/// The prices are those of the load in full.
fn tell(report: &mut Report, outcome: &Outcome, (with, without): (f64, f64)) {
    let factor = if outcome.place.factor == 1 { String::new() } else { format!(", all of it 1/{}", outcome.place.factor) };
    let group = format!("scale, {}, {}{factor}", outcome.what, outcome.place.region);
    report.row(&group, "until everything has ended", outcome.took, "s", Aim::None);
    report.row(&group, &format!("that the limits allow ({})", outcome.binding()), outcome.ideal(), "s", Aim::None);
    report.row(&group, "the longest that a lane stood", outcome.slowest, "s", Aim::None);
    report.row(&group, "requests throttled", number(outcome.totals.throttled), "", Aim::None);
    report.row(&group, "messages received again", number(outcome.totals.again), "", Aim::None);
    let factor = number(outcome.place.factor as u64);
    report.row(&group, "in full, modelled price, with what was done again", with * factor, "$", Aim::None);
    report.row(&group, "in full, modelled price without quotas", without * factor, "$", Aim::None);
}

/// The modelled price of what happened. What is throttled is not charged, but the time of the function is.
fn price(prices: &Value, totals: &Totals) -> f64 {
    let million = |name: &str| prices["perMillion"][name].as_f64().unwrap_or_default() / 1e6;
    let assumed = |name: &str| prices["assumed"][name].as_f64().unwrap_or_default();
    let seconds = number(totals.received) * assumed("lambdaMillisecondsPerMessage") / 1000.0;
    let gigabyte_second = prices["lambdaGbSecondArm64"].as_f64().unwrap_or_default();
    totals.writes * million("dynamodbWriteUnits")
        + totals.reads * million("dynamodbReadUnits")
        + number(totals.published + totals.events_in) * million("eventbridgeCustomEvents")
        // A rule or the function sends a message; a batch is received and deleted with one request each.
        + number(totals.events_in + totals.sends + 2 * totals.batches) * million("sqsRequests")
        + number(totals.batches) * million("lambdaRequests")
        + seconds * assumed("lambdaMemoryGb") * gigabyte_second
}

/// Writes the tables of `docs/scale.md` anew.
pub fn tables() -> Result<(), Problem> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scale.md");
    let problem = |error: std::io::Error| Problem::of(&path.display().to_string(), error);
    let text = std::fs::read_to_string(&path).map_err(problem)?;
    std::fs::write(&path, page::renewed(&text)?).map_err(problem)
}
