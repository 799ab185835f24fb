//! Series: a value for each step of a period.

use crate::ports::Ports;
use crate::server::{Server, error, matrix, success};
use crate::{END, PERIOD};
use keelway_domain::evaluation::{CloudWatch, MetricsApi, MetricsSource, Period, Prometheus, Query};
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::metrics::{Metrics, POINTS, Series};
use keelway_engine::ports::PortError;
use keelway_metrics::Sources;
use keelway_outgoing::{Guard, Hosts};
use serde_json::{Value, json};

const NO_VALUES: &str = "query did not return any values";
const SEVERAL: &str = "query did return multiple values";
const INVALID: &str = "query did not return valid values";
const MINUTE: Span = Span::minutes(1);
/// The first minute that begins within the period.
const FROM: i64 = ((END - 300_000) / 60_000 + 1) * 60;

pub async fn series(ports: &Ports, api: MetricsApi, texts: &[&str], period: Period, step: Span) -> Result<Vec<Series>, PortError> {
    let source = MetricsSource { api, delay: None, vouched: true };
    let queries: Vec<Query> = texts.iter().map(|text| Query { metric: "m".into(), text: (*text).to_owned() }).collect();
    let sources = Sources::new(ports.clone(), &Guard::new(Hosts::default()).with_loopback(true));
    sources.series("shop", &source, &queries, period, step).await
}

/// The values of a series, or why it has none.
type Told<'a> = Result<&'a [f64], &'a str>;

fn told(all: &[Series]) -> Vec<Told<'_>> {
    all.iter().map(|one| one.as_ref().map(Vec::as_slice).map_err(String::as_str)).collect()
}

fn at(server: &Server) -> MetricsApi {
    MetricsApi::Prometheus(Prometheus { url: server.url.clone(), ..Prometheus::default() })
}

fn cloud() -> MetricsApi {
    MetricsApi::Cloudwatch(CloudWatch::default())
}

/// Points of a metric, by minutes after the first.
fn points(of: &[(i64, f64)]) -> Vec<(i64, Value)> {
    of.iter().map(|(minute, value)| (FROM + minute * 60, json!(value))).collect()
}

#[tokio::test]
async fn a_prometheus_gives_a_value_for_each_step() {
    let histograms = json!([{"metric": {}, "histograms": [[1.5, {"count": "3"}]]}]);
    let parse = "invalid parameter \"query\": 1:5: parse error: unclosed";
    let expected: [(&str, (u16, String), Told<'_>); 9] = [
        ("rate(x[60s]) + 1 & 2 = %", matrix(&[&["1", "0.5", "-3e2"]]), Ok(&[1.0, 0.5, -300.0])),
        ("gaps", matrix(&[&["NaN", "2", "+Inf", "3", "-Inf"]]), Ok(&[2.0, 3.0])),
        ("late", matrix(&[&["2"]]), Ok(&[2.0])),
        ("nothing", matrix(&[]), Err(NO_VALUES)),
        ("only NaN", matrix(&[&["NaN", "NaN"]]), Err(INVALID)),
        ("two", matrix(&[&["1"], &["2"]]), Err(SEVERAL)),
        ("histograms", success("matrix", histograms), Err(INVALID)),
        ("sum(", error(400, "bad_data", parse), Err(parse)),
        ("many-to-many", error(422, "execution", "found duplicate series"), Err("found duplicate series")),
    ];
    let server = Server::start(expected.iter().map(|(query, answer, _)| (*query, answer.clone()))).await;
    let texts: Vec<&str> = expected.iter().map(|(query, ..)| *query).chain(["late"]).collect();
    let found = series(&Ports::default(), at(&server), &texts, PERIOD, MINUTE).await.unwrap();
    let mut values: Vec<_> = expected.iter().map(|(.., value)| *value).collect();
    values.push(Ok(&[2.0]));
    assert_eq!(told(&found), values);
    assert_eq!(server.asked().len(), expected.len(), "one that is there twice is asked once");
    assert_eq!(server.ranges(), ["start=1795222079.750 end=1795222319.750 step=60.000"], "from the end of the first step");
}

#[tokio::test]
async fn a_prometheus_is_asked_for_no_more_values_than_a_series_has() {
    let server = Server::start([("a", matrix(&[&["1"]]))]).await;
    let days = Period { start: Timestamp(END - 7 * 24 * 3_600_000), end: Timestamp(END) };
    assert_eq!(series(&Ports::default(), at(&server), &["a"], days, MINUTE).await, Ok(vec![Ok(vec![1.0])]));
    assert_eq!(server.ranges(), ["start=1794618179.750 end=1795222079.750 step=660.000"], "916 steps of eleven minutes");
    let short = Period { start: Timestamp(END - 59_000), end: Timestamp(END) };
    let found = series(&Ports::default(), at(&server), &["a", "b"], short, MINUTE).await.unwrap();
    assert_eq!(told(&found), [Err("no step of 1m is over within the period"); 2]);
    assert_eq!(server.asked(), ["a"], "nothing is asked about no step");
}

#[tokio::test]
async fn a_managed_prometheus_gets_signed_requests_for_series() {
    let server = Server::start([("up", matrix(&[&["1"]]))]).await;
    server.wants(&[("authorization", "AWS4-HMAC-SHA256 Credential=A"), ("x-amz-date", "20261121T005106Z")]);
    let (ports, region) = (Ports::default(), Some("eu-west-1".to_owned()));
    let api = MetricsApi::Prometheus(Prometheus { url: server.url.clone(), region, ..Prometheus::default() });
    assert_eq!(series(&ports, api, &["up"], PERIOD, MINUTE).await, Ok(vec![Ok(vec![1.0])]));
    assert_eq!(server.asked(), ["up"]);
    let body = "query=up&start=1795222079.750&end=1795222319.750&step=60.000".to_owned();
    assert_eq!(ports.cloud().signed, [(format!("{}/api/v1/query_range", server.url), body)]);
}

#[tokio::test]
async fn faults_of_a_prometheus_are_those_of_its_values() {
    for (answer, passes, why) in [
        (error(503, "timeout", "query timed out"), true, "fails (503): query timed out"),
        ((429, "slow down".into()), true, "is busy (429)"),
        ((401, String::new()), false, "takes credentials (401)"),
        ((404, "nothing here".into()), false, "status 404: is spec.prometheus.url right?"),
        ((200, "<html>".into()), false, "something that is not JSON"),
        (success("vector", json!([])), false, "no result of a query"),
        ((200, "x".repeat((1 << 20) + 1)), false, "more than 1 MiB"),
    ] {
        let server = Server::start([("a", matrix(&[&["1"]])), ("b", answer)]).await;
        let lost = series(&Ports::default(), at(&server), &["a", "b"], PERIOD, MINUTE).await.unwrap_err();
        assert_eq!(matches!(lost, PortError::Retry { .. }), passes, "{lost}");
        assert!(lost.to_string().contains(why), "{why}: {lost}");
    }
}

#[tokio::test]
async fn cloudwatch_gives_a_value_for_each_step() {
    let ports = Ports::default();
    // Newest first, as it answers. The step before the first and the one after the last are not whole.
    ports.give("a", &points(&[(4, 9.0), (3, 3.0), (1, 1.0), (0, 0.0), (-1, 9.0)]));
    ports.give("e / r", &[(FROM + 60, json!("NaN")), (FROM, json!(0.5)), (FROM + 120, json!("Infinity"))]);
    ports.give("nan", &[(FROM, json!("NaN"))]);
    ports.give("outside", &points(&[(-1, 9.0), (4, 9.0)]));
    ports.give("own", &points(&[(0, 2.0)]));
    let texts = ["S/a:Sum", "e / r | e=S/E:Sum; r=S/R:Sum", "S/nan:Sum", "S/outside:Sum", "S/own:Sum:120", "S/none:Sum", "odd"];
    let found = series(&ports, cloud(), &texts, PERIOD, MINUTE).await.unwrap();
    let outside = "no period of 60 s is over within the evaluated time";
    let values: [Told<'_>; 6] = [Ok(&[0.0, 1.0, 3.0]), Ok(&[0.5]), Err(INVALID), Err(outside), Ok(&[2.0]), Err(NO_VALUES)];
    assert_eq!(told(&found)[..6], values);
    assert!(found[6].as_ref().unwrap_err().contains("write `id=Namespace/Metric"), "{:?}", found[6]);
    let asked = &ports.cloud().asked;
    let [(_, request)] = &asked[..] else { panic!("{} requests", asked.len()) };
    assert_eq!((request["StartTime"].as_i64(), request["EndTime"].as_i64()), (Some(FROM), Some(FROM + 240)));
    let periods: Vec<_> = request["MetricDataQueries"].as_array().unwrap().iter().map(|one| &one["MetricStat"]["Period"]).collect();
    assert_eq!(periods.iter().filter(|period| ***period == json!(60)).count(), 6, "the step, where a query names none");
    assert_eq!(periods.iter().filter(|period| ***period == json!(120)).count(), 1);
}

#[tokio::test]
async fn cloudwatch_is_asked_for_no_more_values_than_a_series_has() {
    let ports = Ports::default();
    let days = Period { start: Timestamp(END - 7 * 24 * 3_600_000), end: Timestamp(END) };
    ports.give("a", &points(&[(-600, 1.0)]));
    let many: Vec<(i64, f64)> = (0..=POINTS).map(|minute| (minute - 5000, 1.0)).collect();
    ports.give("own", &points(&many));
    let found = series(&ports, cloud(), &["S/a:Sum", "S/own:Sum:60"], days, MINUTE).await.unwrap();
    let many = "query returns 1001 values: leave out its period, which is shorter than the steps";
    assert_eq!(told(&found), [Ok(&[1.0][..]), Err(many)]);
    let (_, request) = ports.cloud().asked[0].clone();
    assert_eq!(request["MetricDataQueries"][0]["MetricStat"]["Period"], 660);
    assert!([&request["StartTime"], &request["EndTime"]].iter().all(|time| time.as_i64().unwrap() % 660 == 0));
    let short = Period { start: Timestamp(END - 59_000), end: Timestamp(END) };
    let found = series(&ports, cloud(), &["S/a:Sum"], short, MINUTE).await.unwrap();
    assert_eq!(told(&found), [Err("no period of 60 s is over within the evaluated time")]);
    assert_eq!(ports.cloud().asked.len(), 1, "nothing is asked about no step");
}

#[tokio::test]
async fn the_series_of_cloudwatch_go_over_pages_and_are_whole_or_none() {
    let ports = Ports::default();
    ports.give_with("a", &points(&[(3, 3.0), (2, 2.0)]), json!({"StatusCode": "PartialData"}));
    ports.give_with("a", &points(&[(1, 1.0), (0, 0.0)]), json!({"StatusCode": "Complete"}));
    ports.give_with("part", &points(&[(3, 3.0)]), json!({"StatusCode": "PartialData"}));
    ports.give_with("SELECT a GROUP BY b", &points(&[(0, 1.0)]), json!({"StatusCode": "Complete", "Label": "one"}));
    ports.give_with("SELECT a GROUP BY b", &points(&[(0, 1.0)]), json!({"StatusCode": "Complete", "Label": "other"}));
    ports.cloud().page = 1;
    let found = series(&ports, cloud(), &["S/a:Sum", "S/part:Sum", "SELECT a GROUP BY b"], PERIOD, MINUTE).await.unwrap();
    let part = "CloudWatch has only a part of the data";
    assert_eq!(told(&found), [Ok(&[0.0, 1.0, 2.0, 3.0][..]), Err(part), Err(SEVERAL)]);
    assert_eq!(ports.cloud().asked.len(), 5);
    // One that never ends is not taken for what the first pages have.
    for n in 0..20 {
        ports.give_with("endless", &points(&[(n, 1.0)]), json!({"StatusCode": "PartialData"}));
    }
    let found = series(&ports, cloud(), &["S/endless:Sum"], PERIOD, MINUTE).await.unwrap();
    assert_eq!(told(&found), [Err(part)]);
}

#[tokio::test]
async fn faults_of_cloudwatch_are_those_of_its_values() {
    let ports = Ports::default();
    let busy = PortError::Retry { request: "cloudwatch.GetMetricData", reason: "Throttling: Rate exceeded (status 400)".into() };
    ports.cloud().fails = vec![busy.clone()];
    assert_eq!(series(&ports, cloud(), &["S/a:Sum"], PERIOD, MINUTE).await, Err(busy));
    ports.give("a", &points(&[(0, 1.0)]));
    let found = series(&ports, cloud(), &["S/a:Sum", "S/b:Zum"], PERIOD, MINUTE).await.unwrap();
    assert!(found[0] == Ok(vec![1.0]) && found[1].as_ref().unwrap_err().contains("parameter Stat is not supported"), "{found:?}");
    ports.give_with("broken", &[], json!({"StatusCode": "InternalError"}));
    let broken = series(&ports, cloud(), &["S/broken:Sum"], PERIOD, MINUTE).await.unwrap_err();
    assert!(matches!(broken, PortError::Retry { .. }), "{broken}");
}
