//! The engine's own messages.

use super::NAME;
use crate::protocol::messages::messages;
use crate::protocol::{Letter, OwnMessage, Sameness};
pub use keelway_domain::address::Address;
use keelway_domain::ids::SubjectId;
use keelway_domain::stored::Stored;
use keelway_domain::time::Timestamp;
use serde_json::Value;

messages! {
    /// A message of the webhooks engine.
    pub enum Message {
        /// An event is to be delivered.
        Deliver {
            /// To which subscription.
            to: Address,
            /// The event, as structured JSON.
            event: Value,
            /// A person asked for it again: what tells it from the first time.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            again: Option<String>,
            /// The subscription could not be read when the event came: whether it takes the event is still to be decided.
            #[serde(default, skip_serializing_if = "std::ops::Not::not")]
            unmatched: bool,
        },
        /// The next attempt is due.
        Wake {
            /// The delivery.
            to: SubjectId,
            /// When.
            at: Timestamp,
        },
        /// A person wants the next attempt now.
        Now {
            /// The delivery.
            to: SubjectId,
            /// How many there were before.
            attempts: usize,
        },
    }
}

impl OwnMessage for Message {
    fn sameness(&self) -> Sameness {
        match self {
            Message::Wake { .. } => Sameness::AnyCopy,
            Message::Deliver { .. } | Message::Now { .. } => Sameness::EachMessage,
        }
    }
}

impl Message {
    /// The message on its way to the engine's queue.
    pub fn letter(&self) -> Letter {
        Letter { to: NAME, body: self.to_json() }
    }
}
