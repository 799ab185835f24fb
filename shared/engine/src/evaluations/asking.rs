//! A source of metrics at hand, with the queries of its indicators.

use super::files::Files;
use super::{Evaluations, sources};
use crate::metrics::{Metrics, Series};
use crate::ports::{PortError, Ports};
use keelway_domain::evaluation::{Measured, MetricsSource, Period, Place, Queries, Query, query};
use keelway_domain::evaluations::Lost;
use keelway_domain::time::Span;

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
        let asked: Vec<Result<Query, Measured>> =
            indicators.map(|sli| self.query(sli, place).map_err(|why| Measured::nothing(sli, why))).collect();
        let wanted: Vec<Query> = asked.iter().filter_map(|asked| asked.as_ref().ok().cloned()).collect();
        let answered = match wanted.is_empty() {
            true => Ok(vec![]),
            false => self.metrics.measure(self.namespace, &self.source, &wanted, period).await,
        };
        let answered = match self.whole(answered, wanted.len()) {
            Ok(answered) => answered,
            Err(lost) => return Ok(Err(lost)),
        };
        let mut answered = answered.into_iter();
        let nothing = |asked: Query| Measured::nothing(&asked.metric, "no value");
        let values = asked.into_iter().map(|asked| match asked {
            Ok(query) => answered.next().unwrap_or_else(|| nothing(query)),
            Err(why) => why,
        });
        Ok(Ok(values.collect()))
    }

    /// The values of indicators at each step of a period, in their order; or why there are none.
    pub async fn series(
        &self,
        indicators: &[&str],
        place: &Place,
        (period, step): (Period, Span),
    ) -> Result<Result<Vec<Series>, Lost>, PortError> {
        let asked: Vec<Result<Query, String>> = indicators.iter().map(|sli| self.query(sli, place)).collect();
        let wanted: Vec<Query> = asked.iter().filter_map(|asked| asked.as_ref().ok().cloned()).collect();
        let answered = match wanted.is_empty() {
            true => Ok(vec![]),
            false => self.metrics.series(self.namespace, &self.source, &wanted, period, step).await,
        };
        let mut answered = match self.whole(answered, wanted.len()) {
            Ok(answered) => answered.into_iter(),
            Err(lost) => return Ok(Err(lost)),
        };
        let one = |asked: Result<Query, String>| asked.and_then(|_| answered.next().unwrap_or_else(|| Err("no value".into())));
        Ok(Ok(asked.into_iter().map(one).collect()))
    }

    fn query(&self, sli: &str, place: &Place) -> Result<Query, String> {
        let text = query(&self.queries, sli, place, &self.source.api).map_err(|error| error.to_string())?;
        Ok(Query { metric: sli.to_owned(), text })
    }

    /// What a source has answered to so many queries, or that it did not. Whoever asks remembers how often this was.
    fn whole<T>(&self, answered: Result<Vec<T>, PortError>, asked: usize) -> Result<Vec<T>, Lost> {
        match answered {
            Ok(answered) if answered.len() == asked => Ok(answered),
            Ok(answered) => Err(Lost::Refused(format!("{} answered {} of {asked} queries", self.name, answered.len()))),
            Err(PortError::Refused { reason, .. }) => Err(Lost::Refused(reason)),
            Err(error) => Err(Lost::Later(error.to_string())),
        }
    }
}
