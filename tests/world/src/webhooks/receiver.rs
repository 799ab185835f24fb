//! The receivers of webhooks, as far as a request to one can be seen.

use crate::worker::Worker;
use keelway_cases::webhooks::Reply;
use keelway_domain::time::Span;
use keelway_domain::webhooks::Exchange;
use keelway_engine::ports::PortError;
use keelway_engine::webhooks::{Limits, Request, Sender, Webhooks};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The receivers of all subscriptions.
#[derive(Debug, Clone)]
pub struct Receiver {
    worker: Worker,
    shared: Shared,
}

/// What receivers answer, and what they got.
#[derive(Debug, Clone, Default)]
pub struct Shared(Arc<Mutex<State>>);

#[derive(Debug, Clone, Default, PartialEq)]
struct State {
    replies: BTreeMap<String, Vec<Reply>>,
    got: Vec<String>,
}

impl Shared {
    /// A copy that goes its own way.
    pub(super) fn fork(&self) -> Self {
        Self(Arc::new(Mutex::new(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone())))
    }

    /// Whether it is the same as another one.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let state = |shared: &Self| shared.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        state(self) == state(other)
    }

    /// Makes engines with these receivers.
    pub(super) fn engines(&self) -> impl Fn(Worker) -> Engine + Send + Sync + 'static {
        let receivers = self.clone();
        move |worker| engine(worker, &receivers)
    }

    /// What the receiver of a subscription answers to the first attempt, the second, …; the last one to all further ones.
    pub fn answer(&self, webhook: &str, replies: &[Reply]) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.replies.insert(webhook.to_owned(), replies.to_vec());
    }

    /// `<webhook> <attempt>` of each request, once, however often it was made.
    pub fn got(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).got.clone()
    }
}

impl Sender for Receiver {
    async fn send(&self, request: &Request<'_>) -> Result<Exchange, PortError> {
        let (webhook, n) = (request.of.name.clone(), request.delivery.attempts.len());
        let line = format!("{webhook} {} {}", request.delivery.id, n + 1);
        let reply = self.worker.outside(
            || format!("post {line}"),
            |_| {
                let mut state = self.shared.0.lock().unwrap_or_else(PoisonError::into_inner);
                if !state.got.contains(&line) {
                    state.got.push(line.clone());
                }
                let replies = state.replies.get(&webhook).map(Vec::as_slice).unwrap_or_default();
                replies.get(n).or(replies.last()).cloned().unwrap_or(Reply::Status(200))
            },
        );
        let attempt = Exchange { at: request.now, ms: 7, ..Exchange::default() };
        Ok(match reply.await? {
            Reply::Status(status) => Exchange { status: Some(status), ..attempt },
            Reply::Busy(status, seconds) => Exchange { status: Some(status), retry_after: Some(Span::seconds(seconds)), ..attempt },
            Reply::Nothing(error) => Exchange { error, ms: 5000, ..attempt },
        })
    }
}

/// The engine of the tests.
pub type Engine = Webhooks<Worker, Receiver>;

/// An engine on a worker, with these receivers.
pub fn engine(worker: Worker, shared: &Shared) -> Engine {
    let receiver = Receiver { worker: worker.clone(), shared: shared.clone() };
    Webhooks::with(worker, Limits::default(), receiver)
}
