//! The port to sources of metrics.

use crate::ports::PortError;
use keelway_domain::evaluation::{Measured, MetricsSource, Period, Query};
use std::future::Future;

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
}
