//! Sources of metrics: the engine's port [`Metrics`](metrics::Metrics) on the HTTP API of Prometheus and on Amazon CloudWatch.
//!
//! Entry point: [`Sources`]. Requests to Prometheus pass the guard of all requests to other servers; those that are signed, and all
//! to CloudWatch, go through the port [`Credentialed`], so this crate knows no credentials of AWS.

pub mod cloudwatch;
mod prometheus;
mod said;

use keelway_domain::evaluation::{Measured, MetricsApi, MetricsSource, Period, Query};
use keelway_engine::metrics::{self, Credentialed};
use keelway_engine::ports::{Clock, PortError};
use keelway_engine::secrets::Secrets;
use keelway_outgoing::{Guard, Wire};

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
}

impl<P: Secrets + Credentialed + Clock> metrics::Metrics for Sources<P> {
    /// A query that several indicators share is asked once.
    async fn measure(
        &self,
        namespace: &str,
        source: &MetricsSource,
        queries: &[Query],
        period: Period,
    ) -> Result<Vec<Measured>, PortError> {
        let mut texts: Vec<&str> = queries.iter().map(|query| query.text.as_str()).collect();
        texts.sort_unstable();
        texts.dedup();
        let found = self.found(namespace, source, &texts, period).await?;
        let measured = |query: &Query| {
            let place = texts.binary_search(&query.text.as_str()).ok();
            let found = place.and_then(|place| found.get(place)).cloned().unwrap_or_else(|| Err(NO_VALUES.to_owned()));
            let found = found.and_then(|value| if value.is_finite() { Ok(value) } else { Err(NO_VALID_VALUES.to_owned()) });
            let success = found.is_ok();
            let (value, message) = found.map_or_else(|message| (0.0, message), |value| (value, String::new()));
            Measured { metric: query.metric.clone(), value, success, message }
        };
        Ok(queries.iter().map(measured).collect())
    }
}
