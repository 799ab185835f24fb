//! All twins behind one lock, the clock, the meter and the faults.

use crate::bus::BusTwin;
use crate::queue::QueueTwin;
use crate::quota::{Quotas, Throttle, Throughput};
use crate::rng::Rng;
use crate::table::Table;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::ports::{BusEntry, PortError};

/// A port's method: one request each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Method {
    /// `Store::get`
    Get,
    /// `Store::get_batch`
    GetBatch,
    /// `Store::query`
    Query,
    /// `Store::put_batch`
    PutBatch,
    /// `Store::write`
    Write,
    /// `Store::transact`
    Transact,
    /// `Bus::publish`
    Publish,
    /// `Queue::send`
    Send,
    /// `Queue::send_at`
    SendAt,
    /// A request to somebody else's server.
    Outside,
}

impl Method {
    /// All of them.
    pub const ALL: [Method; 10] = [
        Method::Get,
        Method::GetBatch,
        Method::Query,
        Method::PutBatch,
        Method::Write,
        Method::Transact,
        Method::Publish,
        Method::Send,
        Method::SendAt,
        Method::Outside,
    ];
    /// Whether it only reads.
    pub fn is_read(self) -> bool {
        matches!(self, Method::Get | Method::GetBatch | Method::Query)
    }
    fn name(self) -> &'static str {
        match self {
            Method::Get => "GetItem",
            Method::GetBatch => "BatchGetItem",
            Method::Query => "Query",
            Method::PutBatch => "BatchWriteItem",
            Method::Write => "write",
            Method::Transact => "TransactWriteItems",
            Method::Publish => "PutEvents",
            Method::Send => "SendMessageBatch",
            Method::SendAt => "SendMessage with a delay",
            Method::Outside => "a request outside",
        }
    }
}

/// What goes wrong with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// Refused for now; it did not happen.
    Throttled,
    /// It happened; the answer is lost.
    AnswerLost,
    /// It happened, the answer was lost on the way, and the client's own retry did it again: the second answer counts.
    Repeated,
    /// Unprocessed items, failed entries, or a conflict with another transaction: part of it is left.
    Partial,
}

/// Decides about each request before it happens.
pub type Faults = Box<dyn FnMut(usize, Method) -> Fault + Send>;

/// The state of the world.
#[derive(Default)]
pub struct Core {
    /// The table.
    pub table: Table,
    /// The bus.
    pub bus: BusTwin,
    /// The queue.
    pub queue: QueueTwin,
    /// The time, by hand. Workers' clocks may differ from it.
    pub now: Timestamp,
    /// Requests by method.
    pub requests: [u64; Method::ALL.len()],
    /// The method of the last request.
    pub last: Option<Method>,
    /// The worker that pauses since the last step, and for how long it means to.
    pub pausing: Option<(usize, Span)>,
    /// What goes wrong; nothing when absent.
    pub faults: Option<Faults>,
    /// A line per request while it is `Some`.
    pub trace: Option<Vec<String>>,
    /// The quotas of the bus and of Scheduler; none while absent. Those of the table are in `table.throughput`.
    pub throttle: Option<Throttle>,
}

/// A client of AWS makes a request that was throttled up to this often.
pub(crate) const TRIES: u32 = 3;
/// It waits so long before the second time, and twice as long before each further one.
const BACKOFF: Span = Span(25);
/// The ports wait so long after an answer that leaves something undone.
const BREATH: Span = Span(100);

impl Core {
    /// A copy that goes its own way. Nothing goes wrong in it, and no trace is kept.
    pub(crate) fn fork(&self) -> Self {
        Self {
            table: self.table.fork(),
            bus: self.bus.clone(),
            queue: self.queue.clone(),
            faults: None,
            trace: None,
            throttle: None,
            ..*self
        }
    }
    /// Whether from here on everything is as in another world, if the same is done in both. What was counted is no part of that.
    pub(crate) fn goes_on_like(&self, other: &Self) -> bool {
        self.now == other.now
            && self.queue.holds_what(&other.queue)
            && self.bus.said_what(&other.bus)
            && self.table.holds_what(&other.table)
    }
    /// Requests of all methods.
    pub fn request_count(&self) -> u64 {
        self.requests.iter().sum()
    }
    /// Transactions that are decided and not visible as a whole. Only while the table is staged (`table.staged`) are there any.
    pub fn pending_transactions(&self) -> usize {
        self.table.pending_transactions()
    }
    /// Makes the next item of some pending transaction visible, for a scheduler of workers that may be dropped: a transaction goes
    /// on without its caller. `false`: nothing is pending.
    pub fn advance_transaction(&mut self, rng: &mut Rng) -> bool {
        let transaction = self.table.any_pending(rng);
        transaction.is_some_and(|transaction| self.advance(transaction))
    }
    /// Makes the next item of this transaction visible.
    pub(crate) fn advance(&mut self, transaction: u64) -> bool {
        let item = self.table.advance(transaction);
        if let Some(key) = &item {
            self.note(|| format!("          transaction {transaction} is at {key}"));
        }
        item.is_some()
    }
    /// Makes visible whatever is pending.
    pub fn finish_transactions(&mut self) {
        self.table.finish_transactions();
    }
    /// Notes a line in the trace, if one is kept.
    pub fn note(&mut self, line: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(line());
        }
    }

    /// From now on, requests beyond these quotas are throttled.
    pub fn limit(&mut self, quotas: &Quotas) {
        self.throttle = Some(Throttle::new(quotas, self.now));
        self.table.throughput = Some(Throughput::new(quotas, self.now));
    }

    /// Whether the client makes a request once more that failed the n-th time (from 1), after a pause.
    pub(crate) fn tries_again<R>(&mut self, worker: usize, result: &Result<R, PortError>, n: u32) -> bool {
        let again = self.throttle.is_some() && n < TRIES && matches!(result, Err(PortError::Retry { .. }));
        if again {
            self.pausing = Some((worker, Span(BACKOFF.0 << (n - 1))));
        }
        again
    }

    /// `PutEvents`.
    pub(crate) fn publish(&mut self, worker: usize, entries: &[BusEntry], busy: bool) -> Result<Vec<Option<String>>, PortError> {
        const CODE: &str = "ThrottlingException";
        let Some(throttle) = &mut self.throttle else { return self.bus.publish(self.now, entries, busy) };
        let taken = throttle.put_events.take(self.now, entries.len());
        if taken == 0 && !entries.is_empty() {
            return Err(PortError::Retry { request: "PutEvents", reason: CODE.into() });
        }
        if taken < entries.len() {
            self.pausing = Some((worker, BREATH));
        }
        self.bus.publish_some(self.now, entries, (taken, CODE))
    }

    /// `SendMessage` with a delay, or `CreateSchedule`.
    pub(crate) fn send_at(&mut self, skew: Span, engine: &str, text: (&str, &str), at: Timestamp) -> Result<(), PortError> {
        if let Some(throttle) = &mut self.throttle
            && QueueTwin::needs_schedule((self.now, skew), at)
            && throttle.created.take(self.now, 1) == 0
        {
            return Err(PortError::Retry { request: "CreateSchedule", reason: "ThrottlingException".into() });
        }
        self.queue.send_at((self.now, skew), engine, text, at)
    }

    /// One request: what goes wrong, the request itself, the trace. `act` is told whether only part of it is done.
    pub(crate) fn request<R: std::fmt::Debug>(
        &mut self,
        worker: usize,
        method: Method,
        what: impl FnOnce() -> String,
        mut act: impl FnMut(&mut Core, bool) -> Result<R, PortError>,
    ) -> Result<R, PortError> {
        self.requests[method as usize] += 1;
        self.last = Some(method);
        if let Some(throughput) = &mut self.table.throughput {
            throughput.now = self.now;
        }
        let fault = self.faults.as_mut().map_or(Fault::None, |faults| faults(worker, method));
        let failed = |reason: &str| Err(PortError::Retry { request: method.name(), reason: reason.to_owned() });
        let result = match fault {
            Fault::None => act(self, false),
            Fault::Throttled => failed("throttled"),
            Fault::AnswerLost => act(self, false).and_then(|_| failed("the answer was lost")),
            Fault::Repeated => act(self, false).and_then(|_| act(self, false)),
            Fault::Partial => act(self, true),
        };
        if self.trace.is_some() {
            let fault = if fault == Fault::None { String::new() } else { format!(" [{fault:?}]") };
            let line = format!("{:>9} w{worker} {method:?}{fault} {} -> {}", self.now.0, what(), short(&result));
            self.note(|| line);
        }
        result
    }
}

fn short(result: &impl std::fmt::Debug) -> String {
    let mut text = format!("{result:?}");
    if text.len() > 400 {
        let cut = (0..=400).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0);
        text.truncate(cut);
        text.push('…');
    }
    text
}
