//! The messages in an engine's queue: events from the bus, and the engine's own messages.

use keelway_domain::cause::Cause;
use keelway_domain::event::CloudEvent;
use keelway_domain::stored::Stored;
use keelway_domain::time::Timestamp;
use std::fmt::Debug;

/// A message from a queue. It may be delivered again, so nothing in it is random or depends on the time of receipt.
#[derive(Debug, Clone, PartialEq)]
pub struct Incoming<M> {
    /// When it was first put into the queue (`SentTimestamp`): the same on every redelivery, so it orders acceptance.
    pub sent: Timestamp,
    /// Whether this is a redelivery (`ApproximateReceiveCount`), or a dead letter that is sent again.
    pub again: bool,
    /// What it says.
    pub body: Body<M>,
}

/// A delivery's content.
#[derive(Debug, Clone, PartialEq)]
pub enum Body<M> {
    /// An event from the bus.
    Event(CloudEvent),
    /// One of the engine's own messages.
    Own(M),
    /// Neither. It is recorded and acknowledged.
    Invalid {
        /// Why, naming the field and what to do.
        reason: String,
        /// As it arrived, shortened if necessary.
        text: String,
    },
}

/// One of an inbox's own messages.
pub trait OwnMessage: Debug + PartialEq + Clone + Stored + Send + Sync {
    /// Which copies of the message share its cause.
    fn sameness(&self) -> Sameness;
}

/// Which copies of a message share its cause. A copy has the same content and was sent at another time. A redelivery is not a copy:
/// it is the same message, and always has the same cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sameness {
    /// None: each message has its own cause.
    EachMessage,
    /// All copies, because the decision depends on the clock: wake-ups and evaluations. See [`Cause::of_any_copy`].
    AnyCopy,
    /// None; but such messages are sent again whenever a subject is settled, so most of those that find nothing to decide are
    /// copies. They schedule no wake-up, unless they are redeliveries.
    Copied,
}

impl<M: OwnMessage> Incoming<M> {
    /// The cause of the message, which all its deliveries share, and its copies as [`Sameness`] says.
    pub fn cause(&self) -> Cause {
        let (text, sameness) = match &self.body {
            Body::Event(event) => (event.to_bytes(), Sameness::EachMessage),
            Body::Own(message) => (message.to_json(), message.sameness()),
            Body::Invalid { text, .. } => (text.clone(), Sameness::EachMessage),
        };
        let cause = match sameness {
            Sameness::AnyCopy => Cause::of_any_copy(text.as_bytes(), self.sent),
            Sameness::EachMessage | Sameness::Copied => Cause::of(text.as_bytes(), self.sent),
        };
        Cause { again: self.again, copied: sameness == Sameness::Copied, ..cause }
    }
}

/// The outcome of a delivery that needs no retry: all of these are acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handled {
    /// It changed the state.
    Committed,
    /// It was absorbed before, or decides nothing now. The effects of its own commit, if any, are complete.
    Settled,
    /// It came too late to count and is recorded as stale.
    Stale,
    /// It cannot be used and is recorded as invalid.
    Invalid,
    /// It is kept as history and decides nothing.
    Recorded,
}
