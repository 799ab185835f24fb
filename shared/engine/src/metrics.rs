//! The port to sources of metrics, and what they need of AWS.

use crate::ports::PortError;
use keelway_domain::evaluation::{CloudWatch, Measured, MetricsSource, Period, Prometheus, Query};
use keelway_domain::time::Span;
use serde_json::Value;
use std::future::Future;

/// The values of a query in a period, oldest first, or why there are none.
pub type Series = Result<Vec<f64>, String>;

/// The most values that a series has.
pub const POINTS: i64 = 1000;

/// Sources of metrics.
pub trait Metrics: Send + Sync {
    /// Asks a source for the values of queries over a period. The answer has one value for each query, in their order; a query that
    /// has no value, or that the source refuses, has none of success and a message.
    ///
    /// Errors: [`PortError::Retry`] when the source is busy, cannot be reached or does not answer in time; [`PortError::Refused`]
    /// when the request can never succeed as it is: the credentials, the address, or a source that is not what it is said to be. No
    /// message has a secret in it.
    ///
    /// `namespace`: the project whose secrets the source names.
    fn measure(
        &self,
        namespace: &str,
        source: &MetricsSource,
        queries: &[Query],
        period: Period,
    ) -> impl Future<Output = Result<Vec<Measured>, PortError>> + Send;

    /// Asks a source for a value of queries for each `step` of a period. The answer has one series for each query, in their order.
    /// Values that are not finite, and steps without a value, are missing in it; one without any value has a message.
    ///
    /// Only whole steps within the period count. A series has at most [`POINTS`] values: where a period has more steps, they are so
    /// many times longer that it has not. Queries that look back do so from the end of each step, so a query of Prometheus should
    /// have the step as its duration.
    ///
    /// Errors and `namespace`: as those of [`measure`](Self::measure).
    fn series(
        &self,
        namespace: &str,
        source: &MetricsSource,
        queries: &[Query],
        period: Period,
        step: Span,
    ) -> impl Future<Output = Result<Vec<Series>, PortError>> + Send;
}

/// Requests with credentials of AWS: the function's own, or those of the role that a source names.
pub trait Credentialed: Send + Sync {
    /// `GetMetricData` of CloudWatch. The inner error is why CloudWatch finds the request itself wrong, such as a query that it
    /// cannot read, in its words.
    ///
    /// Errors: [`PortError::Retry`] when it is busy or does not answer, [`PortError::Refused`] when the credentials do not suffice.
    fn metric_data(
        &self,
        of: &CloudWatch,
        request: &Value,
    ) -> impl Future<Output = Result<Result<Value, String>, PortError>> + Send;

    /// The headers that sign a `POST` of this form to an Amazon Managed Service for Prometheus.
    ///
    /// Errors: as [`metric_data`](Self::metric_data).
    fn signature(
        &self,
        of: &Prometheus,
        url: &str,
        body: &str,
    ) -> impl Future<Output = Result<Vec<(String, String)>, PortError>> + Send;
}
