//! A source of metrics at hand, with the queries of its indicators.

use super::files::Files;
use super::{Evaluations, sources};
use crate::metrics::Metrics;
use crate::ports::{PortError, Ports};
use keelway_domain::evaluation::{Measured, MetricsSource, Period, Place, Queries, Query, query};
use keelway_domain::evaluations::Lost;

/// A source that a project may ask.
pub(super) struct Asking<'a, M> {
    metrics: &'a M,
    namespace: &'a str,
    name: &'a str,
    /// What it is.
    pub source: MetricsSource,
    queries: Queries,
}

impl<P: Ports, M: Metrics> Evaluations<P, M> {
    /// A source of a project by its name, with the queries of these files; or why it cannot be asked.
    pub(super) async fn asking<'a>(
        &'a self,
        files: &Files<'_, P>,
        (namespace, name): (&'a str, &'a str),
    ) -> Result<Result<Asking<'a, M>, String>, PortError> {
        let source = match sources::usable(&self.ports, (namespace, name), &self.limits.home).await? {
            Ok(source) => source,
            Err(why) => return Ok(Err(why)),
        };
        let queries = files.queries(name).await?;
        Ok(queries.map(|queries| Asking { metrics: &self.metrics, namespace, name, source, queries }))
    }
}

impl<M: Metrics> Asking<'_, M> {
    /// The values of indicators, in their order. One without a query has none, and says so.
    pub async fn values<'s>(
        &self,
        indicators: impl Iterator<Item = &'s str>,
        place: &Place,
        period: Period,
    ) -> Result<Result<Vec<Measured>, Lost>, PortError> {
        let asked: Vec<Result<Query, Measured>> = indicators
            .map(|sli| match query(&self.queries, sli, place) {
                Ok(text) => Ok(Query { metric: sli.to_owned(), text }),
                Err(error) => Err(Measured::nothing(sli, error.to_string())),
            })
            .collect();
        let wanted: Vec<Query> = asked.iter().filter_map(|asked| asked.as_ref().ok().cloned()).collect();
        let answered = match wanted.is_empty() {
            true => vec![],
            false => match self.metrics.measure(self.namespace, &self.source, &wanted, period).await {
                Ok(answered) => answered,
                // Whoever asks remembers how often this was. A table that is busy is no fault of the source.
                Err(PortError::Refused { reason, .. }) => return Ok(Err(Lost::Refused(reason))),
                Err(error) => return Ok(Err(Lost::Later(error.to_string()))),
            },
        };
        if answered.len() != wanted.len() {
            let reason = format!("{} answered {} of {} queries", self.name, answered.len(), wanted.len());
            return Ok(Err(Lost::Refused(reason)));
        }
        let mut answered = answered.into_iter();
        let nothing = |asked: Query| Measured::nothing(&asked.metric, "no value");
        let values = asked.into_iter().map(|asked| match asked {
            Ok(query) => answered.next().unwrap_or_else(|| nothing(query)),
            Err(why) => why,
        });
        Ok(Ok(values.collect()))
    }
}
