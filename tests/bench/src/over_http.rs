//! One more task whose executor answers over HTTP, counted on the in-memory world: the API's function handles the answers itself.

use crate::cost::{Used, number};
use crate::price;
use crate::report::{Aim, Report};
use keelway_cloud_tests::Problem;
use keelway_conformance::stand::{Stand, shipyard};
use keelway_domain::event::{EventType, Kind};
use keelway_engine::sequences::{Limits, Publishes};
use keelway_world::exec::block_on;
use keelway_world::sequences::answered;
use serde_json::json;

/// The context whose tasks are answered.
const CONTEXT: &str = "c1";
/// The bytes that an executor hands over.
const PAYLOAD: usize = 1000;

/// Reports what the second of three tasks costs, with the events of sequences on the bus and without.
pub fn measure(report: &mut Report) -> Result<(), Problem> {
    for (publishes, polled, how) in [
        (Publishes::All, true, "all events on the bus"),
        (Publishes::Own, true, "only events that Keelway's rules take"),
        (Publishes::Own, false, "only events that Keelway's rules take, nobody polls"),
    ] {
        let used = one_task(publishes, polled)?;
        let group = format!("cost, a task over HTTP, {how}");
        report.row(&group, "AWS requests", used.requests, "", Aim::None);
        report.row(&group, "write units", used.writes, "WRU", Aim::None);
        report.row(&group, "read units", used.reads, "RRU", Aim::None);
        report.row(&group, "events published", used.events, "", Aim::None);
        price::tell_over_http(report, &group, &used)?;
    }
    Ok(())
}

fn one_task(publishes: Publishes, polled: bool) -> Result<Used, Problem> {
    let limits = Limits { publishes, polled, ..Limits::default() };
    let stand = Stand::with(&shipyard(&["one", "two", "three"], "release"), limits);
    stand.trigger(CONTEXT);
    answer(&stand, "one")?;
    let before = used(&stand);
    answer(&stand, "two")?;
    Ok(used(&stand) - before)
}

fn used(stand: &Stand) -> Used {
    let announced = number(stand.world.core().bus.announced.len() as u64);
    let used = Used::in_world(&stand.world, 0.0, 0.0);
    Used { events: used.events + announced, ..used }
}

/// The `.started` and `.finished` of the open task.
fn answer(stand: &Stand, task: &str) -> Result<(), Problem> {
    for kind in [Kind::Started, Kind::Finished] {
        let open = stand.executions(CONTEXT).first().and_then(|x| x.record).ok_or("no task is open")?.uuid().to_string();
        let id = format!("{open}-{}", kind.as_str());
        let mut event = stand.event("dev", CONTEXT, EventType::task(task, kind), Some(&open), &id);
        match kind {
            Kind::Finished => drop(event.data.insert("note".into(), json!("x".repeat(PAYLOAD)))),
            _ => drop(event.data.remove("result")),
        }
        let taken = block_on(answered(&stand.engine, &event)).map_err(|error| Problem::of(task, error))?;
        taken.map_err(|refusal| Problem::of(task, refusal))?;
    }
    Ok(())
}
