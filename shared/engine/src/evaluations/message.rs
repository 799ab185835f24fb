//! The engine's own messages.

use super::NAME;
use crate::protocol::messages::messages;
use crate::protocol::{Letter, OwnMessage, Sameness};
use keelway_domain::evaluation::Period;
use keelway_domain::evaluations::Asker;
use keelway_domain::stored::Stored;
use keelway_domain::time::Timestamp;

messages! {
    /// A message to the evaluations of a service.
    pub enum Message {
        /// Ask the source of an evaluation.
        Measure {
            /// Project, stage and service.
            to: [String; 3],
            /// The trigger of the evaluation.
            id: String,
            /// Which time this is.
            attempt: u32,
        },
        /// A pipeline asks for an evaluation.
        Evaluate {
            /// Project, stage and service.
            to: [String; 3],
            /// The id that the pipeline gives it.
            id: String,
            /// What is evaluated.
            period: Period,
            /// The pipeline, and which time it asks.
            asker: Asker,
        },
        /// A wake-up.
        Wake {
            /// Project, stage and service.
            to: [String; 3],
            /// The time that it was planned for.
            at: Timestamp,
        },
        /// The sequence no longer waits for an evaluation.
        Over {
            /// Project, stage and service.
            to: [String; 3],
            /// Its trigger.
            id: String,
        },
    }
}

impl OwnMessage for Message {
    fn sameness(&self) -> Sameness {
        match self {
            Message::Wake { .. } => Sameness::AnyCopy,
            Message::Measure { .. } | Message::Evaluate { .. } | Message::Over { .. } => Sameness::EachMessage,
        }
    }
}

impl Message {
    /// The message on its way to the engine's queue.
    pub fn letter(&self) -> Letter {
        Letter { to: NAME, body: self.to_json() }
    }
}
