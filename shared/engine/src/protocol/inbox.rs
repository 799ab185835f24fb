//! An inbox: a queue, and the handling of its messages. Inboxes that keep subjects also implement [`Engine`](super::Engine) for
//! each kind of subject. Others only carry out the orders of engines, and keep none.

use super::incoming::{Body, Handled, Incoming, OwnMessage};
use super::invalid;
use crate::ports::{PortError, Ports};
use keelway_domain::cause::Cause;
use keelway_domain::event::CloudEvent;
use keelway_domain::time::{Span, Timestamp};
use std::future::Future;

/// A message on its way to an inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    /// The inbox.
    pub to: &'static str,
    /// What it says.
    pub body: String,
}

/// An inbox on its ports.
pub trait Inbox: Send + Sync {
    /// The ports.
    type Ports: Ports;
    /// Its own messages.
    type Message: OwnMessage;

    /// The name of its queue.
    const NAME: &'static str;

    /// The ports.
    fn ports(&self) -> &Self::Ports;
    /// How long records, and subjects that have ended, are kept.
    fn retention(&self) -> Span;
    /// Whether an event of its records goes on the bus. By default, all of them do.
    fn publishes(&self, _event: &CloudEvent) -> bool {
        true
    }
    /// Handles one of its own messages.
    fn message(&self, message: &Self::Message, cause: Cause) -> impl Future<Output = Result<Handled, PortError>> + Send;

    /// Handles an event from the bus. `cause`: the message with the event. The default is for queues that no rule of the bus leads
    /// to.
    fn event(&self, event: &CloudEvent, cause: Cause) -> impl Future<Output = Result<Handled, PortError>> + Send {
        let reason = "no event is meant for this queue";
        async move { invalid::record(self.ports(), self.retention(), cause.sent, reason, &event.to_bytes()).await }
    }
    /// Handles a message that is neither. By default, it is recorded.
    fn unreadable(&self, sent: Timestamp, reason: &str, text: &str) -> impl Future<Output = Result<Handled, PortError>> + Send {
        async move { invalid::record(self.ports(), self.retention(), sent, reason, text).await }
    }

    /// Handles one delivery. `Ok`: acknowledge it. `Err`: it must be delivered again; handling it again is always safe.
    fn handle(&self, incoming: &Incoming<Self::Message>) -> impl Future<Output = Result<Handled, PortError>> + Send {
        async {
            match &incoming.body {
                Body::Event(event) => self.event(event, incoming.cause()).await,
                Body::Own(message) => self.message(message, incoming.cause()).await,
                Body::Invalid { reason, text } => self.unreadable(incoming.sent, reason, text).await,
            }
        }
    }
}
