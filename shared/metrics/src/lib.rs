//! Sources of metrics: the engine's port [`Metrics`](metrics::Metrics) on the HTTP API of Prometheus and on Amazon CloudWatch.
//!
//! Entry point: [`Sources`]. Requests to Prometheus pass the guard of all requests to other servers; those that are signed, and all
//! to CloudWatch, go through the port [`Credentialed`], so this crate knows no credentials of AWS.

pub mod cloudwatch;
mod prometheus;
mod said;
mod steps;

use keelway_domain::evaluation::{Measured, MetricsApi, MetricsSource, Period, Query};
use keelway_domain::time::Span;
use keelway_engine::metrics::{self, Credentialed, Series};
use keelway_engine::ports::{Clock, PortError};
use keelway_engine::secrets::Secrets;
use keelway_outgoing::{Guard, Wire};
use steps::Steps;

/// What Keptn's provider for Prometheus says of a query without a value.
pub const NO_VALUES: &str = "query did not return any values";
/// And of one with several.
pub const SEVERAL_VALUES: &str = "query did return multiple values";
/// And of one whose value is no finite number.
pub const NO_VALID_VALUES: &str = "query did not return valid values";

/// The value of a query, or why it has none.
pub(crate) type Found = Result<f64, String>;

/// The sources of metrics that there are.
#[derive(Debug)]
pub struct Sources<P> {
    ports: P,
    wire: Wire,
}

impl<P: Secrets + Credentialed + Clock> Sources<P> {
    /// With the secrets and credentials of these ports, and the servers that the guard permits.
    pub fn new(ports: P, guard: &Guard) -> Self {
        Self { ports, wire: Wire::new(guard, prometheus::TERMS) }
    }

    async fn found(
        &self,
        namespace: &str,
        source: &MetricsSource,
        texts: &[&str],
        period: Period,
    ) -> Result<Vec<Found>, PortError> {
        match &source.api {
            MetricsApi::Prometheus(of) => {
                let server = prometheus::Server::new(&self.ports, &self.wire, namespace, of).await?;
                server.all(texts, period.end).await
            }
            MetricsApi::Cloudwatch(of) => {
                let window = cloudwatch::Window::new(period, self.ports.now());
                cloudwatch::measure(&self.ports, of, texts, &window).await
            }
        }
    }

    async fn found_series(
        &self,
        namespace: &str,
        source: &MetricsSource,
        texts: &[&str],
        (period, step): (Period, Span),
    ) -> Result<Vec<Series>, PortError> {
        let steps = Steps::new(period, step);
        match &source.api {
            MetricsApi::Prometheus(of) => {
                let server = prometheus::Server::new(&self.ports, &self.wire, namespace, of).await?;
                server.all_series(texts, &steps).await
            }
            MetricsApi::Cloudwatch(of) => {
                let (window, step) = cloudwatch::Window::of_series(period, &steps, self.ports.now());
                cloudwatch::series(&self.ports, of, texts, &window, step).await
            }
        }
    }
}

/// The different texts of queries, in order: a query that several indicators share is asked once.
fn texts(queries: &[Query]) -> Vec<&str> {
    let mut texts: Vec<&str> = queries.iter().map(|query| query.text.as_str()).collect();
    texts.sort_unstable();
    texts.dedup();
    texts
}

/// What was found for a query among all texts.
fn found<T: Clone>(texts: &[&str], found: &[Result<T, String>], query: &Query) -> Result<T, String> {
    let place = texts.binary_search(&query.text.as_str()).ok();
    place.and_then(|place| found.get(place)).cloned().unwrap_or_else(|| Err(NO_VALUES.to_owned()))
}

/// The finite ones of values.
pub(crate) fn finite(values: Vec<f64>) -> Series {
    let is_empty = values.is_empty();
    let values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
    match values.is_empty() {
        true => Err(if is_empty { NO_VALUES } else { NO_VALID_VALUES }.to_owned()),
        false => Ok(values),
    }
}

impl<P: Secrets + Credentialed + Clock> metrics::Metrics for Sources<P> {
    async fn measure(
        &self,
        namespace: &str,
        source: &MetricsSource,
        queries: &[Query],
        period: Period,
    ) -> Result<Vec<Measured>, PortError> {
        let texts = texts(queries);
        let all = self.found(namespace, source, &texts, period).await?;
        let measured = |query: &Query| {
            let found = found(&texts, &all, query)
                .and_then(|value| if value.is_finite() { Ok(value) } else { Err(NO_VALID_VALUES.to_owned()) });
            let success = found.is_ok();
            let (value, message) = found.map_or_else(|message| (0.0, message), |value| (value, String::new()));
            Measured { metric: query.metric.clone(), value, success, message }
        };
        Ok(queries.iter().map(measured).collect())
    }

    async fn series(
        &self,
        namespace: &str,
        source: &MetricsSource,
        queries: &[Query],
        period: Period,
        step: Span,
    ) -> Result<Vec<Series>, PortError> {
        let texts = texts(queries);
        let all = self.found_series(namespace, source, &texts, (period, step)).await?;
        Ok(queries.iter().map(|query| found(&texts, &all, query)).collect())
    }
}
