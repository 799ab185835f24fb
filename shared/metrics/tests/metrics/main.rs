//! The sources of metrics against twins that take nothing but what Prometheus and CloudWatch document.

mod cloudwatch;
mod figures;
mod ports;
mod prometheus;
mod series;
mod server;

use keelway_domain::evaluation::{Measured, MetricsApi, MetricsSource, Period, Query};
use keelway_domain::time::Timestamp;
use keelway_engine::metrics::Metrics;
use keelway_engine::ports::PortError;
use keelway_metrics::Sources;
use keelway_outgoing::{Guard, Hosts};
use ports::Ports;

/// The evaluated time: five minutes, a fraction of a second before a full minute.
const END: i64 = 1_795_222_319_750;
const PERIOD: Period = Period { start: Timestamp(END - 300_000), end: Timestamp(END) };

/// Asks a source for the values of queries, on this machine.
async fn measure(ports: &Ports, api: MetricsApi, texts: &[&str]) -> Result<Vec<Measured>, PortError> {
    let source = MetricsSource { api, delay: None, vouched: true };
    let query = |(place, text): (usize, &&str)| Query { metric: format!("m{place}"), text: (*text).to_owned() };
    let queries: Vec<Query> = texts.iter().enumerate().map(query).collect();
    let sources = Sources::new(ports.clone(), &Guard::new(Hosts::default()).with_loopback(true));
    let measured = sources.measure("shop", &source, &queries, PERIOD).await?;
    let names = |all: &[Measured]| all.iter().map(|one| one.metric.clone()).collect::<Vec<_>>();
    assert_eq!(names(&measured), queries.iter().map(|query| query.metric.clone()).collect::<Vec<_>>());
    assert!(measured.iter().all(|one| one.success == one.message.is_empty() && (one.success || one.value == 0.0)), "{measured:?}");
    Ok(measured)
}

/// The values, or why there is none.
fn told(measured: &[Measured]) -> Vec<Result<f64, &str>> {
    measured.iter().map(|one| if one.success { Ok(one.value) } else { Err(one.message.as_str()) }).collect()
}
