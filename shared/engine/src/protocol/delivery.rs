//! What arrives in an engine's queue: events from the bus, and the engine's own messages.

use keelway_domain::cause::Cause;
use keelway_domain::event::CloudEvent;
use keelway_domain::time::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;

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

/// One of an inbox's own messages.
pub trait OwnMessage: Debug + PartialEq + Clone + Serialize + DeserializeOwned + Send + Sync {
    /// Which copies of it are the same cause.
    fn sameness(&self) -> Sameness;
}

/// Which copies of a message are the same cause. A copy says the same and was sent at another time; a redelivery is no copy, but
/// the same message once more, and always the same cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sameness {
    /// None: each message is a cause of its own.
    EachMessage,
    /// All of them, because what the message decides depends on the clock: wake-ups, and evaluations. See [`Cause::of_any_copy`].
    AnyCopy,
    /// None; but whoever settles a subject sends such messages again, so most that find nothing to decide are copies. They schedule
    /// no wake-up, unless they are redelivered.
    Copied,
}

impl<M: OwnMessage> Delivery<M> {
    /// The message as a cause: the same for every delivery of it, and for its copies if they are the same cause.
    pub fn cause(&self) -> Cause {
        let (text, sameness) = match &self.body {
            Body::Event(event) => (event.to_bytes(), Sameness::EachMessage),
            Body::Own(message) => (body(message), message.sameness()),
            Body::Invalid { text, .. } => (text.clone(), Sameness::EachMessage),
        };
        let cause = match sameness {
            Sameness::AnyCopy => Cause::of_any_copy(text.as_bytes(), self.sent),
            Sameness::EachMessage | Sameness::Copied => Cause::of(text.as_bytes(), self.sent),
        };
        Cause { again: self.again, copied: sameness == Sameness::Copied, ..cause }
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
