//! The messages of the engine: to pipelines, to the workers for attempts, and to the observer. Each may arrive twice, late, or when
//! it is no longer needed.

use super::{ATTEMPTS, NAME, OBSERVER};
use crate::protocol::messages::messages;
use crate::protocol::{Letter, OwnMessage, Sameness};
use keelway_domain::evaluations::Answer;
use keelway_domain::note::Note;
use keelway_domain::promotions::definition::Strategy;
use keelway_domain::promotions::{Attempt, AttemptResult, Closed, Command, Seen};
use keelway_domain::stored::Stored;
use keelway_domain::time::Timestamp;

pub use keelway_domain::address::Address;

messages! {
    /// A message to a pipeline.
    pub enum Message {
        /// Something it depends on has changed.
        Evaluate {
            /// The addressee.
            to: Address,
            /// The reason, which distinguishes messages that are sent for different reasons.
            because: String,
        },
        /// The wake-up for this time.
        Wake {
            /// The addressee.
            to: Address,
            /// When.
            at: Timestamp,
        },
        /// An attempt was carried out.
        Ended {
            /// The addressee.
            to: Address,
            /// Which.
            attempt: Attempt,
            /// How it ended.
            outcome: AttemptResult,
        },
        /// The state of an attempt's effect was read.
        Seen {
            /// The addressee.
            to: Address,
            /// Which.
            attempt: Attempt,
            /// The state of the effect.
            seen: Seen,
            /// The repository. `None` for a sequence.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            repository: Option<String>,
        },
        /// A worker has tried to take an attempt back.
        Closed {
            /// The addressee.
            to: Address,
            /// Which.
            attempt: Attempt,
            /// The result.
            how: Closed,
        },
        /// An evaluation that the pipeline has ordered has ended.
        Evaluated {
            /// The addressee.
            to: Address,
            /// The environment that was evaluated.
            environment: String,
            /// Which evaluation.
            id: String,
            /// Which time the pipeline had ordered it.
            time: u32,
            /// What it came to.
            answer: Answer,
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
    }
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
        Letter { to: NAME, body: self.to_json() }
    }
}

messages! {
    /// A message to the workers for attempts.
    pub enum Job {
        /// Carry out an attempt.
        Attempt {
            /// The pipeline.
            of: Address,
            /// Which.
            attempt: Attempt,
            /// The strategy, if known: a worker that comes too late needs it to take the effect back.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            strategy: Option<Strategy>,
        },
        /// Take it back.
        Close {
            /// The pipeline.
            of: Address,
            /// Which.
            attempt: Attempt,
            /// When that was due: a later job for the same attempt is another one.
            due: Timestamp,
        },
        /// Look at the sequence that carries out the promotion into an environment.
        Follow {
            /// The pipeline.
            of: Address,
            /// The environment.
            environment: String,
            /// The reason, which distinguishes messages that are sent for different reasons.
            because: String,
        },
        /// Look at the open pull requests of a repository.
        Look {
            /// Its URL.
            repository: String,
            /// The time that the look was planned for. If another time is planned now, this look was replaced.
            at: Timestamp,
        },
    }
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
        Letter { to: ATTEMPTS, body: self.to_json() }
    }
}

messages! {
    /// A message to the observer.
    pub enum Observe {
        /// Read the objects in a cluster that pipelines name.
        Observe {
            /// `<namespace>/<name>` of the cluster.
            cluster: String,
            /// Continue after this place; absent: from the beginning.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            after: Option<String>,
        },
    }
}

impl OwnMessage for Observe {
    fn sameness(&self) -> Sameness {
        Sameness::AnyCopy
    }
}

impl Observe {
    /// The message, addressed to the queue of the observer.
    pub fn letter(&self) -> Letter {
        Letter { to: OBSERVER, body: self.to_json() }
    }
}
