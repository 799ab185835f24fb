//! The cost of an evaluation of five ratios: requests and units are counted in the in-memory world, the metrics that CloudWatch
//! charges for in the requests that these queries become.

use crate::cost::{Used, number};
use crate::price;
use crate::report::{Aim, Report};
use keelway_cloud_tests::Problem;
use keelway_metrics::cloudwatch;
use keelway_world::case;
use keelway_world::core::Method;
use keelway_world::evaluations::{Case, EvaluationsWorld};
use keelway_world::story::Mode;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The indicators of an evaluation, each a ratio of two metrics.
const RATIOS: usize = 5;

/// Counts it.
pub fn count(report: &mut Report, say: &dyn Fn(&str)) -> Result<(), Problem> {
    say("counting evaluations of five ratios");
    let one = after(2)? - after(1)?;
    let metrics = metrics_of(&(0..RATIOS).map(ratio).collect::<Vec<_>>())?;
    let group = format!("evaluations, cost of one of {RATIOS} ratios");
    report.row(&group, "AWS requests, without those to the source", one.requests, "", Aim::None);
    report.row(&group, "write units", one.writes, "WRU", Aim::None);
    report.row(&group, "read units", one.reads, "RRU", Aim::None);
    report.row(&group, "events published", one.events, "", Aim::None);
    report.row(&group, "messages handled", one.messages, "", Aim::None);
    report.row(&group, "metrics read of CloudWatch", number(metrics as u64), "", Aim::AtMost(10.0));
    price::tell_evaluation(report, &group, &one, number(metrics as u64))
}

fn ratio(n: usize) -> String {
    format!("failed / all | failed=Shop/Failed{n}{{Service=$SERVICE}}:Sum; all=Shop/All{n}{{Service=$SERVICE}}:Sum")
}

/// The metrics in the entries that the queries become; expressions cost nothing.
fn metrics_of(queries: &[String]) -> Result<usize, Problem> {
    let mut all = 0;
    for query in queries {
        let query = cloudwatch::parse(query).map_err(Problem)?;
        all += query.entries.iter().filter(|entry| entry.contains_key("MetricStat")).count();
    }
    Ok(all)
}

/// What everything takes with so many evaluations, one after the other. The world has a Prometheus only; which source is asked
/// makes no difference to the other requests.
fn after(evaluations: usize) -> Result<Used, Problem> {
    let names: Vec<String> = (0..RATIOS).map(|n| format!("ratio{n}")).collect();
    let queries: BTreeMap<&String, String> =
        names.iter().enumerate().map(|(n, name)| (name, format!("failed{n} / all{n}"))).collect();
    let objective = |name: &String| json!({"sli": name, "pass": [{"criteria": ["<=+10%", "<0.05"]}]});
    let slo = json!({"objectives": names.iter().map(objective).collect::<Vec<_>>(), "total_score": {"pass": "90%"}});
    let values: BTreeMap<&String, f64> = queries.values().map(|query| (query, 0.01)).collect();
    let out = ["evaluation.started", "evaluation.finished pass/succeeded"];
    let step = |n: usize| json!({"task": "dev/svc", "as": format!("task{n}"), "context": format!("C{n}"), "out": out});
    let case = json!({
        "id": "BENCH", "title": "five ratios", "sources": {"prometheus": "0s"}, "values": {"prometheus": values},
        "files": {"dev/svc": {"slo.yaml": slo.to_string(), "sli.yaml": json!({"indicators": queries}).to_string()}},
        "steps": (0..evaluations).map(step).collect::<Vec<Value>>(),
    });
    let case: Case = serde_json::from_value(case).map_err(|error| Problem::of("the case", error))?;
    let mut world = EvaluationsWorld::new(Mode::Clean);
    case::run(&case, &mut world).map_err(|failure| Problem(format!("{failure:?}")))?;
    let world = &world.story.world;
    let sent: u64 = [Method::Send, Method::SendAt].iter().map(|method| world.core().requests[*method as usize]).sum();
    let outside = number(evaluations as u64);
    Ok(Used::in_world(world, outside + number(sent), outside))
}
