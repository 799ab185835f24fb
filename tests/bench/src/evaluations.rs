//! The cost of an evaluation of five ratios, and of a canary of thirty steps that is judged by them: requests and units are counted
//! in the in-memory world, the metrics that CloudWatch charges for in the requests that these queries become.

use crate::cost::{Used, number};
use crate::price::{self, Asked};
use crate::report::{Aim, Report};
use keelway_cloud_tests::Problem;
use keelway_deployers_stand::stand::{Stand, definition, version};
use keelway_domain::deployments::Status;
use keelway_domain::deployments::definition::{Definition, Weight};
use keelway_domain::time::Span;
use keelway_metrics::cloudwatch;
use keelway_world::case;
use keelway_world::core::Method;
use keelway_world::evaluations::{Case, EvaluationsWorld};
use keelway_world::story::Mode;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The indicators of an evaluation, each a ratio of two metrics.
const RATIOS: usize = 5;

/// The steps of a canary. Each is baked for one window.
const STEPS: u8 = 30;
const BAKE: Span = Span::minutes(1);

/// Counts both.
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
    price::tell_measured(report, &group, "evaluations", &one, Asked { requests: 1.0, metrics: number(metrics as u64) })?;
    say(&format!("counting a canary of {STEPS} steps"));
    canary(report)
}

/// Counts a canary: the new version and the version before are measured in each window.
fn canary(report: &mut Report) -> Result<(), Problem> {
    let next = judged()?;
    let indicators: BTreeMap<String, String> =
        (0..RATIOS).map(|n| (format!("ratio{n}"), ratio(n))).chain([("invocations".to_owned(), REQUESTS.to_owned())]).collect();
    let (slo, sli) = (objectives().to_string(), json!({"indicators": indicators}).to_string());
    let mut stand = Stand::judged(&next, &[("slo.yaml", &slo), ("sli.yaml", &sli)]);
    for query in indicators.values() {
        for version in ["1", "2"] {
            let value = if query == REQUESTS { 1_000.0 } else { 0.01 };
            let query = query.replace("$VERSION", version).replace("$SERVICE", "").replace("$FUNCTION", "shop");
            stand.sources.state().values.insert(("main".into(), query), value);
        }
    }
    let before = used(&stand);
    stand.apply(&next);
    stand.pass(Span(BAKE.0 * (i64::from(STEPS) + 5)));
    let last = stand.last();
    if last.status != Status::Complete {
        return Err(format!("the canary has not ended well: {last:?}").into());
    }
    let all = used(&stand) - before;
    let asked = stand.sources.state().asked.clone();
    let texts: Vec<String> = asked.iter().flat_map(|asked| asked.queries.clone()).collect();
    let asked = Asked { requests: number(asked.len() as u64), metrics: number(metrics_of(&texts)? as u64) };
    let group = format!("evaluations, cost of a canary of {STEPS} steps judged by {RATIOS} ratios");
    report.row(&group, "AWS requests, without those to Lambda and the source", all.requests, "", Aim::None);
    report.row(&group, "write units", all.writes, "WRU", Aim::None);
    report.row(&group, "read units", all.reads, "RRU", Aim::None);
    report.row(&group, "events published", all.events, "", Aim::None);
    report.row(&group, "messages handled", all.messages, "", Aim::None);
    report.row(&group, "windows that were judged", asked.requests / 2.0, "", Aim::AtMost(f64::from(STEPS)));
    report.row(&group, "metrics read of CloudWatch", asked.metrics, "", Aim::None);
    price::tell_measured(report, &group, "canaries", &all, asked)
}

/// Counts the requests that a version has served.
const REQUESTS: &str = "AWS/Lambda/Invocations{FunctionName=$FUNCTION,ExecutedVersion=$VERSION}:Sum";

/// Steps of equal size up to 90 %.
fn judged() -> Result<Definition, Problem> {
    let mut next = definition("Canary", &version(2));
    let step = |n: u8| Weight { weight: n * (90 / STEPS), bake: Some(BAKE) };
    next.strategy.steps = (1..=STEPS).map(step).collect();
    let analysis =
        json!({"slo": "slo.yaml", "interval": BAKE, "samples": "invocations", "minSamples": 50, "deadline": Span::minutes(10)});
    next.strategy.analysis = Some(serde_json::from_value(analysis).map_err(|error| Problem::of("the analysis", error))?);
    Ok(next)
}

fn used(stand: &Stand) -> Used {
    let messages = number(stand.world.core().queue.sent());
    Used::in_world(&stand.world, messages, 0.0)
}

/// Objectives of all ratios.
fn objectives() -> Value {
    let objective = |n: usize| json!({"sli": format!("ratio{n}"), "pass": [{"criteria": ["<=+10%", "<0.05"]}]});
    json!({"objectives": (0..RATIOS).map(objective).collect::<Vec<_>>(), "total_score": {"pass": "90%"}})
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
    let values: BTreeMap<&String, f64> = queries.values().map(|query| (query, 0.01)).collect();
    let out = ["evaluation.started", "evaluation.finished pass/succeeded"];
    let step = |n: usize| json!({"task": "dev/svc", "as": format!("task{n}"), "context": format!("C{n}"), "out": out});
    let case = json!({
        "id": "BENCH", "title": "five ratios", "sources": {"prometheus": "0s"}, "values": {"prometheus": values},
        "files": {"dev/svc": {"slo.yaml": objectives().to_string(), "sli.yaml": json!({"indicators": queries}).to_string()}},
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
