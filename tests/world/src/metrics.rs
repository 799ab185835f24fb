//! A twin of the sources of metrics: values by source and query, faults on demand, and a log of what was asked.

use keelway_domain::evaluation::{CloudWatch, Measured, MetricsApi, MetricsSource, Period, Query};
use keelway_domain::time::Span;
use keelway_engine::metrics::{self, Series};
use keelway_engine::ports::PortError;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a query without a value says.
pub const NO_VALUES: &str = "query did not return any values";

/// The sources of metrics. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Metrics(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// By source and query: the value, or why there is none.
    values: BTreeMap<(String, String), Result<f64, String>>,
    /// By source and query: the values of a period.
    series: BTreeMap<(String, String), Vec<f64>>,
    busy: BTreeMap<String, usize>,
    refusing: BTreeMap<String, String>,
    asked: Vec<Asked>,
}

/// What a source was asked, whether it answered or not.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "named as the arguments of the port are")]
pub struct Asked {
    pub namespace: String,
    pub source: MetricsSource,
    pub queries: Vec<Query>,
    pub period: Period,
    /// Of a series.
    pub step: Option<Span>,
}

/// What the twin calls a source: the URL of a Prometheus; of CloudWatch the role, else the region, else `cloudwatch`.
pub fn called(source: &MetricsSource) -> &str {
    match &source.api {
        MetricsApi::Prometheus(prometheus) => &prometheus.url,
        MetricsApi::Cloudwatch(CloudWatch { region, role, .. }) => {
            role.as_ref().or(region.as_ref()).map_or("cloudwatch", String::as_str)
        }
    }
}

impl Metrics {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a query a value.
    pub fn set(&self, source: &str, query: &str, value: f64) {
        self.state().values.insert((source.to_owned(), query.to_owned()), Ok(value));
    }

    /// Gives a query these values in every period.
    pub fn set_series(&self, source: &str, query: &str, values: &[f64]) {
        self.state().series.insert((source.to_owned(), query.to_owned()), values.to_vec());
    }

    /// Has a query fail with this message.
    pub fn fail(&self, source: &str, query: &str, message: &str) {
        self.state().values.insert((source.to_owned(), query.to_owned()), Err(message.to_owned()));
    }

    /// Takes the value of a query away.
    pub fn forget(&self, source: &str, query: &str) {
        self.state().values.remove(&(source.to_owned(), query.to_owned()));
    }

    /// Has a source be busy for the next requests: they are to be repeated.
    pub fn busy(&self, source: &str, requests: usize) {
        self.state().busy.insert(source.to_owned(), requests);
    }

    /// Has a source refuse every request; `None`: no longer.
    pub fn refuse(&self, source: &str, why: Option<&str>) {
        match why {
            Some(why) => self.state().refusing.insert(source.to_owned(), why.to_owned()),
            None => self.state().refusing.remove(source),
        };
    }

    /// Every request so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.state().asked.clone()
    }

    /// The state, if the source answers.
    fn answering(&self, asked: &Asked) -> Result<MutexGuard<'_, State>, PortError> {
        let mut state = self.state();
        state.asked.push(asked.clone());
        let source = called(&asked.source);
        if let Some(left) = state.busy.get_mut(source).filter(|left| **left > 0) {
            *left -= 1;
            return Err(PortError::Retry { request: "Metrics", reason: "the source is busy".into() });
        }
        if let Some(why) = state.refusing.get(source) {
            return Err(PortError::Refused { request: "Metrics", reason: why.clone() });
        }
        Ok(state)
    }

    fn answer(&self, asked: Asked) -> Result<Vec<Measured>, PortError> {
        let (state, source) = (self.answering(&asked)?, called(&asked.source));
        let value = |query: Query| {
            let found = state.values.get(&(source.to_owned(), query.text)).cloned().unwrap_or_else(|| Err(NO_VALUES.to_owned()));
            let success = found.is_ok();
            let (value, message) = found.map_or_else(|message| (0.0, message), |value| (value, String::new()));
            Measured { metric: query.metric, value, success, message }
        };
        Ok(asked.queries.into_iter().map(value).collect())
    }
}

impl metrics::Metrics for Metrics {
    async fn measure(
        &self,
        namespace: &str,
        source: &MetricsSource,
        queries: &[Query],
        period: Period,
    ) -> Result<Vec<Measured>, PortError> {
        let (namespace, source, queries) = (namespace.to_owned(), source.clone(), queries.to_vec());
        self.answer(Asked { namespace, source, queries, period, step: None })
    }

    async fn series(
        &self,
        namespace: &str,
        source: &MetricsSource,
        queries: &[Query],
        period: Period,
        step: Span,
    ) -> Result<Vec<Series>, PortError> {
        let (namespace, source, queries) = (namespace.to_owned(), source.clone(), queries.to_vec());
        let asked = Asked { namespace, source, queries, period, step: Some(step) };
        let state = self.answering(&asked)?;
        let source = called(&asked.source);
        let one = |query: &Query| {
            let at = (source.to_owned(), query.text.clone());
            let why = || state.values.get(&at).cloned().and_then(Result::err).unwrap_or_else(|| NO_VALUES.to_owned());
            state.series.get(&at).cloned().ok_or_else(why)
        };
        Ok(asked.queries.iter().map(one).collect())
    }
}
