//! What arrives in an engine's queue: events from the bus, and the engine's own messages.

use keelway_domain::cause::Cause;
use keelway_domain::event::CloudEvent;
use keelway_domain::time::Timestamp;
use serde::Serialize;

/// One delivery from a queue. It may be delivered again: nothing in it is random or read from a clock at receipt.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery<M> {
    /// When it was first put into the queue (`SentTimestamp`): the same on every redelivery, so it orders acceptance.
    pub sent: Timestamp,
    /// Whether it was delivered before (`ApproximateReceiveCount`), or is a dead letter that is sent again.
    pub again: bool,
    /// What it says.
    pub body: Body<M>,
}

/// A delivery's content.
#[derive(Debug, Clone, PartialEq)]
pub enum Body<M> {
    /// An event someone put on the bus.
    Event(CloudEvent),
    /// One of the engine's own messages.
    Own(M),
    /// Neither: recorded and acknowledged.
    Invalid {
        /// Why, naming the field and what to do.
        reason: String,
        /// As it arrived, shortened if necessary.
        text: String,
    },
}

impl<M: Serialize> Delivery<M> {
    /// The message as a cause: the same for every delivery of it.
    pub fn cause(&self) -> Cause {
        Cause { again: self.again, ..Cause::of(self.text().as_bytes(), self.sent) }
    }

    /// The message as a cause that all copies of it share.
    pub fn cause_of_any_copy(&self) -> Cause {
        Cause { again: self.again, ..Cause::of_any_copy(self.text().as_bytes(), self.sent) }
    }

    fn text(&self) -> String {
        match &self.body {
            Body::Event(event) => event.to_bytes(),
            Body::Own(message) => body(message),
            Body::Invalid { text, .. } => text.clone(),
        }
    }
}

/// The text of an engine's own message, as it is in the queue.
pub fn body(message: &impl Serialize) -> String {
    serde_json::to_string(message).unwrap_or_default()
}

/// The outcome of a delivery that needs no retry: all of these are acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handled {
    /// It changed the state.
    Committed,
    /// It was absorbed before, or decides nothing now; the effects of its own commit, if any, were completed.
    Settled,
    /// It came too late to count and is recorded as stale.
    Stale,
    /// It cannot be used and is recorded as invalid.
    Invalid,
    /// It is kept as history and decides nothing.
    Recorded,
}
