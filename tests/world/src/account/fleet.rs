//! The environments of a function, and the mapping that hands them batches of messages.

use super::Settings;
use super::told::Totals;
use crate::World;
use crate::exec::{Task, step};
use crate::queue::Received;
use crate::quota::Quotas;
use crate::story::play;
use crate::tested::Tested;
use crate::worker::Worker;
use keelway_domain::ids::hash64;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::ports::PortError;
use keelway_engine::protocol::Handled;
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Poll;

/// A mapping whose queue was empty for so long begins anew with few batches.
const QUIET: Span = Span::minutes(1);

type Make<E> = Arc<dyn Fn(Worker) -> E + Send + Sync>;

/// A process of the function.
struct Environment<E> {
    engine: Arc<E>,
    batch: VecDeque<(u64, Received)>,
    now: Option<(u64, Task<Result<Handled, PortError>>)>,
}

/// What came of a step.
#[derive(Default)]
pub(super) struct Step {
    /// When the environment goes on; `None`: it is free.
    pub next: Option<Timestamp>,
    /// Messages that failed, and when they are visible again.
    pub returns: Vec<(Timestamp, u64)>,
}

/// All environments of a function.
pub(super) struct Fleet<E> {
    settings: Settings,
    quotas: Quotas,
    make: Make<E>,
    environments: Vec<Environment<E>>,
    free: Vec<usize>,
    ready: VecDeque<u64>,
    in_flight: usize,
    since: Option<Timestamp>,
    idle: Option<Timestamp>,
    /// It is planned that there may be one more.
    pub grows: bool,
    /// The milliseconds that environments were busy, together.
    busy: i64,
}

impl<E: Tested> Fleet<E> {
    pub fn new(settings: Settings, quotas: Quotas, make: Make<E>) -> Self {
        Self {
            settings,
            quotas,
            make,
            environments: vec![],
            free: vec![],
            ready: VecDeque::new(),
            in_flight: 0,
            since: None,
            idle: None,
            grows: false,
            busy: 0,
        }
    }

    /// A message is visible.
    pub fn offer(&mut self, id: u64) {
        self.ready.push_back(id);
    }

    /// Counts anew how long environments are busy.
    pub fn count_anew(&mut self) {
        self.busy = 0;
    }

    /// How many seconds the messages so far take at least.
    pub fn seconds(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let seconds = self.busy as f64 / 1000.0 / self.settings.concurrency.max(1) as f64;
        seconds
    }

    /// How many batches the mapping and the function allow at once.
    fn allowed(&self, now: Timestamp) -> usize {
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let seconds = (now - self.since.unwrap_or(now)).0 as f64 / 1000.0;
        let quotas = &self.quotas;
        let mapping = (quotas.mapping_start + quotas.mapping_ramp * seconds / 60.0).min(quotas.mapping_most);
        let function = (quotas.ramp * (1.0 + seconds / 10.0)).min(quotas.concurrency);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most some thousands")]
        let most = mapping.min(function).max(1.0) as usize;
        most.min(self.settings.concurrency)
    }

    /// Hands batches to free environments. Which of them begin.
    pub fn fill(&mut self, world: &World, totals: &mut Totals) -> Vec<usize> {
        let now = world.now();
        if self.ready.is_empty() {
            self.idle = self.idle.or(Some(now));
            return vec![];
        }
        let quiet = self.idle.take().is_some_and(|idle| now - idle > QUIET);
        self.since = self.since.filter(|_| !quiet).or(Some(now));
        let mut begin = vec![];
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most some hundred thousand")]
        let most = self.quotas.in_flight.max(1.0) as usize;
        while !self.ready.is_empty() && self.environments.len() - self.free.len() < self.allowed(now) && self.in_flight < most {
            let batch: VecDeque<(u64, Received)> = {
                let mut core = world.core();
                let ids: Vec<u64> = self.ready.drain(..self.ready.len().min(self.settings.batch)).collect();
                ids.into_iter().filter_map(|id| Some((id, core.queue.receive(id)?))).collect()
            };
            if batch.is_empty() {
                continue;
            }
            self.in_flight += batch.len();
            totals.batches += 1;
            totals.received += batch.len() as u64;
            totals.again += batch.iter().filter(|(_, received)| received.again).count() as u64;
            let environment = self.free.pop().unwrap_or_else(|| {
                let id = self.environments.len();
                // Worker 0 is the API's.
                let engine = Arc::new((self.make)(world.worker(id + 1)));
                self.environments.push(Environment { engine, batch: VecDeque::new(), now: None });
                id
            });
            self.environments[environment].batch = batch;
            begin.push(environment);
        }
        begin
    }

    /// When there may be one more environment, if messages wait for one.
    pub fn grows_at(&mut self, now: Timestamp) -> Option<Timestamp> {
        let busy = self.environments.len() - self.free.len();
        if self.ready.is_empty() || self.grows || busy < self.allowed(now) || self.allowed(now) >= self.settings.concurrency {
            return None;
        }
        self.grows = true;
        #[expect(clippy::cast_possible_truncation, reason = "a few seconds")]
        let millis = (60_000.0 / self.quotas.mapping_ramp).ceil() as i64;
        Some(now + Span(millis.max(1)))
    }

    /// An environment makes its next request, or begins its next message.
    pub fn step(&mut self, world: &World, n: usize, totals: &mut Totals) -> Step {
        let now = world.now();
        let environment = &mut self.environments[n];
        let Some((id, task)) = &mut environment.now else {
            let Some((id, received)) = environment.batch.pop_front() else {
                self.free.push(n);
                return Step::default();
            };
            let engine = environment.engine.clone();
            environment.now = Some((id, Box::pin(async move { play(&*engine, &received).await })));
            self.busy += self.settings.message.0;
            return Step { next: Some(now + self.settings.message), returns: vec![] };
        };
        let id = *id;
        let before = {
            let mut core = world.core();
            core.pausing = None;
            core.request_count()
        };
        let polled = step(task);
        let mut core = world.core();
        let requests = i64::try_from(core.request_count() - before).unwrap_or(0);
        let paused = core.pausing.take().map_or(Span(0), |(_, span)| span);
        let took = Span(self.settings.request.0 * requests + paused.0);
        self.busy += took.0;
        let mut returns = vec![];
        if let Poll::Ready(outcome) = polled {
            environment.now = None;
            self.in_flight -= 1;
            totals.handled += 1;
            match outcome {
                Ok(_) => core.queue.acknowledge(id),
                Err(error) => {
                    let receives = core.queue.messages.get(&id).map_or(1, |message| message.receives);
                    let visible = now + took + comes_back_in(id, receives, &error);
                    core.queue.give_back(id, visible);
                    totals.failed += 1;
                    returns.push((visible, id));
                }
            }
        }
        Step { next: Some(now + took), returns }
    }
}

/// How long a message that failed stays invisible, as the functions have it: longer with each time, but not after contention.
fn comes_back_in(id: u64, receives: u32, error: &PortError) -> Span {
    let most = match error {
        PortError::Contended { .. } => 3,
        _ => 2u64.saturating_pow(receives).min(300),
    };
    let scattered = hash64(&[&id.to_be_bytes(), &receives.to_be_bytes()]) % most;
    Span::seconds(1 + i64::try_from(scattered).unwrap_or(0))
}
