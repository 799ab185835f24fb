//! The messages of the engine. Each may arrive twice, late, or when it is no longer needed.

use super::{DEPLOYERS, NAME};
use crate::protocol::messages::messages;
use crate::protocol::{Letter, OwnMessage, Sameness};
use keelway_domain::deployments::notice::Notice;
use keelway_domain::deployments::{Command, Sight};
use keelway_domain::note::Note;
use keelway_domain::stored::Stored;
use keelway_domain::time::Timestamp;

pub use keelway_domain::address::Address;

messages! {
    /// A message to a config.
    pub enum Message {
        /// Something it depends on has changed.
        Evaluate {
            /// The addressee.
            to: Address,
            /// The reason, which distinguishes messages that are sent for different reasons.
            because: String,
        },
        /// A wake-up.
        Wake {
            /// The addressee.
            to: Address,
            /// The time that it was planned for.
            at: Timestamp,
        },
        /// An alarm has changed its state.
        Alarm {
            /// The addressee.
            to: Address,
            /// Which.
            alarm: String,
            /// On, or off.
            on: bool,
            /// Since when.
            at: Timestamp,
        },
        /// A command of a person or a tool.
        Command {
            /// The addressee.
            to: Address,
            /// The command.
            command: Command,
            /// The person, the time and the reason.
            note: Note,
        },
        /// The sequence no longer waits for a task.
        Over {
            /// The config that carries the task out.
            to: Address,
            /// The id of the task's trigger.
            triggered: String,
        },
        /// A check of what the targets serve.
        Saw {
            /// The addressee.
            to: Address,
            /// What they serve.
            sight: Sight,
        },
        /// AWS has told something. Whoever reads the queue makes it from the event of a service; nobody else sends it.
        Notice {
            /// What.
            notice: Notice,
        },
    }
}

impl OwnMessage for Message {
    /// An evaluation depends on the clock like a wake-up: deadlines pass, and leases end.
    fn sameness(&self) -> Sameness {
        match self {
            Message::Wake { .. } | Message::Evaluate { .. } => Sameness::AnyCopy,
            _ => Sameness::EachMessage,
        }
    }
}

impl Message {
    /// The message, addressed to the engine's queue.
    pub fn letter(&self) -> Letter {
        Letter { to: NAME, body: self.to_json() }
    }
}

messages! {
    /// A message to the deployers that Keelway starts.
    pub enum Job {
        /// Start a deployer for an attempt, or go on with it.
        Start {
            /// The deployment config.
            of: Address,
            /// The number of the version.
            n: u64,
            /// The number of the attempt.
            attempt: u32,
            /// When it was ordered: a later job for the same attempt is another one.
            at: Timestamp,
        },
        /// Look at what the targets serve.
        Look {
            /// The deployment config.
            of: Address,
            /// The version that was deployed there.
            n: u64,
            /// When it was ordered.
            at: Timestamp,
        },
    }
}

impl OwnMessage for Job {
    fn sameness(&self) -> Sameness {
        Sameness::AnyCopy
    }
}

impl Job {
    /// The message, addressed to the queue of deployers.
    pub fn letter(&self) -> Letter {
        Letter { to: DEPLOYERS, body: self.to_json() }
    }
}
