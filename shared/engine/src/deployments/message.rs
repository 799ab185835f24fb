//! The messages of the engine. Each may arrive twice, late, or when it is no longer needed.

use super::{DEPLOYERS, NAME};
use crate::protocol::{Letter, OwnMessage, Sameness, delivery};
use keelway_domain::deployments::notice::Notice;
use keelway_domain::deployments::{Command, Sight};
use keelway_domain::note::Note;
use keelway_domain::time::Timestamp;
use serde::{Deserialize, Serialize};

pub use keelway_domain::address::Address;

/// A message to a config.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "keelway", rename_all = "lowercase")]
pub enum Message {
    /// Something it depends on has changed.
    Evaluate {
        /// Whom.
        to: Address,
        /// What; tells apart what is sent for different reasons.
        because: String,
    },
    /// A wake-up.
    Wake {
        /// Whom.
        to: Address,
        /// For when it was armed.
        at: Timestamp,
    },
    /// An alarm went on or off.
    Alarm {
        /// Whom.
        to: Address,
        /// Which.
        alarm: String,
        /// On, or off.
        on: bool,
        /// Since when.
        at: Timestamp,
    },
    /// A person or a tool asks for something.
    Command {
        /// Whom.
        to: Address,
        /// For what.
        command: Command,
        /// Who, when and why.
        note: Note,
    },
    /// The sequence does not wait for a task any more.
    Over {
        /// Who carries it out.
        to: Address,
        /// The id of the task's trigger.
        triggered: String,
    },
    /// Somebody looked at the targets.
    Saw {
        /// Of whom.
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
        Letter { to: NAME, body: delivery::body(self) }
    }
}

/// A message to the deployers that Keelway starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "keelway", rename_all = "lowercase")]
pub enum Job {
    /// Start a deployer for an attempt, or go on with it.
    Start {
        /// Of which config.
        of: Address,
        /// Which version.
        n: u64,
        /// Which attempt.
        attempt: u32,
        /// When it was ordered: a later job for the same attempt is another one.
        at: Timestamp,
    },
    /// Look at what the targets serve.
    Look {
        /// Of which config.
        of: Address,
        /// The version that was deployed there.
        n: u64,
        /// When it was ordered.
        at: Timestamp,
    },
}

impl OwnMessage for Job {
    fn sameness(&self) -> Sameness {
        Sameness::AnyCopy
    }
}

impl Job {
    /// The message, addressed to the queue of deployers.
    pub fn letter(&self) -> Letter {
        Letter { to: DEPLOYERS, body: delivery::body(self) }
    }
}
