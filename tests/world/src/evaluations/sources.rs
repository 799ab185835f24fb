//! The sources of metrics of the world: each request to one is a step of the worker that makes it, and what they answer depends on
//! the time, not on how often they were asked.

use crate::worker::Worker;
use keelway_domain::evaluation::{Measured, MetricsApi, MetricsSource, Period, Prometheus, Queries, Query, Slo};
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::evaluations::{Evaluations, Limits, Reading};
use keelway_engine::metrics::{Metrics, Series};
use keelway_engine::ports::PortError;
use keelway_wire::evaluation;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::LocalKey;

/// The engine of the tests.
pub type Engine = Evaluations<Worker, Sources>;

/// A source as a project declares it: a Prometheus at an address that has its name.
pub fn declared(name: &str, delay: Option<Span>) -> MetricsSource {
    let prometheus = Prometheus { url: format!("https://{name}.test"), ..Prometheus::default() };
    MetricsSource { api: MetricsApi::Prometheus(prometheus), delay, vouched: true }
}

/// How a source is disposed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Mood {
    /// It has no values before this time.
    pub late: Timestamp,
    /// It is busy until then.
    pub busy: Timestamp,
    /// It refuses every request, and says this.
    pub refuses: Option<String>,
}

/// What sources answer, and what they were asked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    /// By source and query.
    pub values: BTreeMap<(String, String), f64>,
    /// By source and query: the values of a period.
    pub series: BTreeMap<(String, String), Vec<f64>>,
    /// By source.
    pub moods: BTreeMap<String, Mood>,
    /// Requests that were made.
    pub asked: Vec<Asked>,
}

/// A request to a source.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// When.
    pub at: Timestamp,
    /// The worker that made it, in words.
    pub worker: String,
    /// The source.
    pub source: String,
    /// The window.
    pub period: Period,
    /// The queries.
    pub queries: Vec<String>,
}

/// All sources. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Shared(Arc<Mutex<State>>);

/// A worker's way to the sources.
#[derive(Debug, Clone)]
pub struct Sources {
    worker: Worker,
    shared: Shared,
}

const NO_VALUES: &str = "query did not return any values";

impl State {
    /// Before which time a source has no values.
    fn late(&self, source: &str) -> Timestamp {
        self.moods.get(source).map_or(Timestamp(0), |mood| mood.late)
    }

    /// How often sources were asked. Whoever stops before it writes down what one has said asks again at once.
    pub fn times(&self) -> usize {
        let times = self.asked.iter().map(|asked| (&asked.source, asked.period.start, asked.at));
        times.collect::<BTreeSet<_>>().len()
    }
}

impl Shared {
    /// What they answer, and what they were asked.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// A copy that goes its own way.
    pub fn fork(&self) -> Self {
        Self(Arc::new(Mutex::new(self.state().clone())))
    }
    /// Whether everything goes on as with another one. What was asked is over.
    pub fn is_like(&self, other: &Self) -> bool {
        let state = |shared: &Self| State { asked: vec![], ..shared.state().clone() };
        state(self) == state(other)
    }
    /// Makes engines that ask these sources.
    pub fn engines(&self) -> impl Fn(Worker) -> Engine + Send + Sync + 'static {
        let shared = self.clone();
        move |worker| engine(worker, &shared)
    }

    /// The state, if the source answers.
    fn answering(&self, asked: &Asked, now: Timestamp) -> Result<MutexGuard<'_, State>, PortError> {
        let mut state = self.state();
        state.asked.push(Asked { at: now, ..asked.clone() });
        let name = asked.source.as_str();
        let mood = state.moods.get(name).cloned().unwrap_or_default();
        if now < mood.busy {
            return Err(PortError::Retry { request: "query", reason: format!("{name} is busy") });
        }
        if let Some(reason) = mood.refuses {
            return Err(PortError::Refused { request: "query", reason });
        }
        Ok(state)
    }

    fn answer(&self, asked: &Asked, queries: &[Query], now: Timestamp) -> Result<Vec<Measured>, PortError> {
        let state = self.answering(asked, now)?;
        let late = state.late(&asked.source);
        let value = |query: &Query| match state.values.get(&(asked.source.clone(), query.text.clone())) {
            Some(value) if now >= late => Measured::value(&query.metric, *value),
            _ => Measured::nothing(&query.metric, NO_VALUES),
        };
        Ok(queries.iter().map(value).collect())
    }

    fn answer_series(&self, asked: &Asked, queries: &[Query], now: Timestamp) -> Result<Vec<Series>, PortError> {
        let state = self.answering(asked, now)?;
        let late = state.late(&asked.source);
        let series = |query: &Query| match state.series.get(&(asked.source.clone(), query.text.clone())) {
            Some(values) if now >= late => Ok(values.clone()),
            _ => Err(NO_VALUES.to_owned()),
        };
        Ok(queries.iter().map(series).collect())
    }
}

impl Sources {
    /// What is asked, if the world has such a source.
    fn asked(&self, source: &MetricsSource, queries: &[Query], period: Period) -> Result<Asked, PortError> {
        let MetricsApi::Prometheus(Prometheus { url, .. }) = &source.api else {
            return Err(PortError::Refused { request: "query", reason: "the world has a Prometheus only".into() });
        };
        let name = url.trim_start_matches("https://").trim_end_matches(".test");
        let texts = queries.iter().map(|query| query.text.clone()).collect();
        Ok(Asked { at: Timestamp(0), worker: format!("{:?}", self.worker), source: name.to_owned(), period, queries: texts })
    }
}

impl Metrics for Sources {
    async fn measure(
        &self,
        _: &str,
        source: &MetricsSource,
        queries: &[Query],
        period: Period,
    ) -> Result<Vec<Measured>, PortError> {
        let asked = self.asked(source, queries, period)?;
        let what = || format!("query {} {queries:?}", asked.source);
        self.worker.outside(what, |now| self.shared.answer(&asked, queries, now)).await?
    }

    async fn series(
        &self,
        _: &str,
        source: &MetricsSource,
        queries: &[Query],
        period: Period,
        step: Span,
    ) -> Result<Vec<Series>, PortError> {
        let asked = self.asked(source, queries, period)?;
        let what = || format!("query {} {queries:?} by {step}", asked.source);
        self.worker.outside(what, |now| self.shared.answer_series(&asked, queries, now)).await?
    }
}

/// What texts were read as.
type Read<T> = RefCell<HashMap<String, Result<T, String>>>;

/// So many texts are remembered; a simulation has fewer.
const TEXTS: usize = 1000;

/// Reads a text, or remembers as what it was read: every judgement reads its files, and the worlds of a test have few.
fn remembered<T: Clone>(text: &str, known: &'static LocalKey<Read<T>>, read: fn(&str) -> Result<T, String>) -> Result<T, String> {
    if let Some(known) = known.with_borrow(|known| known.get(text).cloned()) {
        return known;
    }
    let new = read(text);
    known.with_borrow_mut(|known| {
        if known.len() >= TEXTS {
            known.clear();
        }
        known.insert(text.to_owned(), new.clone());
    });
    new
}

fn slo(text: &str) -> Result<Slo, String> {
    thread_local!(static KNOWN: Read<Slo> = RefCell::default());
    remembered(text, &KNOWN, evaluation::slo)
}

fn sli(text: &str) -> Result<Queries, String> {
    thread_local!(static KNOWN: Read<Queries> = RefCell::default());
    remembered(text, &KNOWN, evaluation::sli)
}

/// An engine on a worker that asks these sources.
pub fn engine(worker: Worker, shared: &Shared) -> Engine {
    let sources = Sources { worker: worker.clone(), shared: shared.clone() };
    let reading = Reading { slo, sli, provided: evaluation::answered };
    Evaluations::with(worker, Limits::default(), reading, sources)
}
