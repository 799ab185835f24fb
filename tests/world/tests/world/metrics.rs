//! The twin of the sources of metrics.

use keelway_domain::evaluation::{CloudWatch, Measured, MetricsApi, MetricsSource, Period, Query};
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::metrics::{Metrics as _, Series};
use keelway_engine::ports::PortError;
use keelway_world::exec::block_on;
use keelway_world::metrics::{Metrics, NO_VALUES};

const PERIOD: Period = Period { start: Timestamp(0), end: Timestamp(120_000) };

fn question() -> (MetricsSource, [Query; 3]) {
    let source = MetricsSource { api: MetricsApi::Cloudwatch(CloudWatch::default()), delay: None, vouched: true };
    (source, ["a", "b", "c"].map(|name| Query { metric: name.into(), text: format!("SELECT {name}") }))
}

fn ask(metrics: &Metrics) -> Result<Vec<Measured>, PortError> {
    let (source, queries) = question();
    block_on(metrics.measure("shop", &source, &queries, PERIOD))
}

fn ask_series(metrics: &Metrics) -> Result<Vec<Series>, PortError> {
    let (source, queries) = question();
    block_on(metrics.series("shop", &source, &queries, PERIOD, Span::minutes(1)))
}

#[test]
fn values_faults_and_what_was_asked() {
    let metrics = Metrics::default();
    metrics.set("cloudwatch", "SELECT a", 1.5);
    metrics.fail("cloudwatch", "SELECT b", "no such metric");
    metrics.busy("cloudwatch", 1);
    assert!(matches!(ask(&metrics), Err(PortError::Retry { .. })));
    let told: Vec<_> = ask(&metrics).unwrap().into_iter().map(|one| (one.metric, one.value, one.success, one.message)).collect();
    let expected = [("a", 1.5, true, ""), ("b", 0.0, false, "no such metric"), ("c", 0.0, false, NO_VALUES)];
    assert_eq!(told, expected.map(|(name, value, success, message)| (name.to_owned(), value, success, message.to_owned())));
    metrics.set_series("cloudwatch", "SELECT a", &[1.0, 2.0]);
    let told = ask_series(&metrics).unwrap();
    assert_eq!(told, [Ok(vec![1.0, 2.0]), Err("no such metric".to_owned()), Err(NO_VALUES.to_owned())]);
    metrics.refuse("cloudwatch", Some("no credentials"));
    assert!(ask(&metrics).unwrap_err().to_string().ends_with("no credentials"));
    assert!(ask_series(&metrics).unwrap_err().to_string().ends_with("no credentials"));
    let steps: Vec<_> = metrics.asked().iter().map(|asked| asked.step).collect();
    assert_eq!(steps, [None, None, Some(Span::minutes(1)), None, Some(Span::minutes(1))]);
}
