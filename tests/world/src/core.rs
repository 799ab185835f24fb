//! All twins behind one lock, the clock, the meter and the faults.

use crate::bus::BusTwin;
use crate::queue::QueueTwin;
use crate::rng::Rng;
use crate::table::Table;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::ports::PortError;

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
}

impl Core {
    /// A copy that goes its own way. Nothing goes wrong in it, and no trace is kept.
    pub(crate) fn fork(&self) -> Self {
        Self { table: self.table.fork(), bus: self.bus.clone(), queue: self.queue.clone(), faults: None, trace: None, ..*self }
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
