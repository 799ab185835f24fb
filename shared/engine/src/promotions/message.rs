//! The messages of the engine: to pipelines, to whoever carries out their attempts, and to the observer. Each may arrive twice,
//! late, or when it is no longer needed.

use super::{ATTEMPTS, NAME, OBSERVER};
use crate::protocol::{Letter, OwnMessage, Sameness, delivery};
use keelway_domain::note::Note;
use keelway_domain::promotions::definition::Strategy;
use keelway_domain::promotions::{Attempt, Closed, Command, Outcome, Seen};
use keelway_domain::time::Timestamp;
use serde::{Deserialize, Serialize};

pub use keelway_domain::address::Address;

/// A message to a pipeline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "keelway", rename_all = "lowercase")]
pub enum Message {
    /// Something it depends on has changed.
    Evaluate {
        /// Whom.
        to: Address,
        /// What has changed; tells apart what caused the message.
        because: String,
    },
    /// The wake-up for this time.
    Wake {
        /// Whom.
        to: Address,
        /// When.
        at: Timestamp,
    },
    /// An attempt was carried out.
    Ended {
        /// Whom.
        to: Address,
        /// Which.
        attempt: Attempt,
        /// How it ended.
        outcome: Outcome,
    },
    /// Somebody looked at what an attempt made.
    Seen {
        /// Whom.
        to: Address,
        /// Which.
        attempt: Attempt,
        /// What was seen.
        seen: Seen,
        /// In which repository; none for a sequence.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repository: Option<String>,
    },
    /// Somebody tried to take an attempt back.
    Closed {
        /// Whom.
        to: Address,
        /// Which.
        attempt: Attempt,
        /// How that went.
        how: Closed,
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
}

impl OwnMessage for Message {
    /// An evaluation depends on the clock like a wake-up: windows open, and pauses end.
    fn sameness(&self) -> Sameness {
        match self {
            Message::Wake { .. } | Message::Evaluate { .. } => Sameness::AnyCopy,
            _ => Sameness::EachMessage,
        }
    }
}

impl Message {
    /// The message, addressed to the queue of pipelines.
    pub fn letter(&self) -> Letter {
        Letter { to: NAME, body: delivery::body(self) }
    }
}

/// A message to whoever carries out attempts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "keelway", rename_all = "lowercase")]
pub enum Job {
    /// Carry out an attempt.
    Attempt {
        /// Of which pipeline.
        of: Address,
        /// Which.
        attempt: Attempt,
        /// How, as far as known: whoever comes too late takes back what was made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        strategy: Option<Strategy>,
    },
    /// Take it back.
    Close {
        /// Of which pipeline.
        of: Address,
        /// Which.
        attempt: Attempt,
        /// When that was due: a later job for the same attempt is another one.
        due: Timestamp,
    },
    /// Look at the sequence that carries out the promotion into an environment.
    Follow {
        /// Of which pipeline.
        of: Address,
        /// Into which environment.
        environment: String,
        /// What caused it; tells apart what is sent for different reasons.
        because: String,
    },
    /// Look at the open pull requests of a repository.
    Look {
        /// Its URL.
        repository: String,
        /// For when the look was planned; if another one is planned now, this one has been replaced.
        at: Timestamp,
    },
}

impl OwnMessage for Job {
    fn sameness(&self) -> Sameness {
        match self {
            Job::Look { .. } | Job::Follow { .. } => Sameness::AnyCopy,
            Job::Attempt { .. } | Job::Close { .. } => Sameness::EachMessage,
        }
    }
}

impl Job {
    /// The message, addressed to the queue of attempts.
    pub fn letter(&self) -> Letter {
        Letter { to: ATTEMPTS, body: delivery::body(self) }
    }
}

/// A message to the observer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "keelway", rename_all = "lowercase")]
pub enum Observe {
    /// Read what applied pipelines name in a cluster.
    Observe {
        /// `<namespace>/<name>` of the cluster.
        cluster: String,
        /// Continue after this place; absent: from the beginning.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<String>,
    },
}

impl OwnMessage for Observe {
    fn sameness(&self) -> Sameness {
        Sameness::AnyCopy
    }
}

impl Observe {
    /// The message, addressed to the queue of the observer.
    pub fn letter(&self) -> Letter {
        Letter { to: OBSERVER, body: delivery::body(self) }
    }
}
