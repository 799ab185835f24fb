//! The engine's own messages. Each may arrive twice, late, or when it is no longer needed.

use super::NAME;
use crate::protocol::messages::messages;
use crate::protocol::{Letter, OwnMessage, Sameness};
use keelway_domain::ids::{ExecutionId, RecordId};
use keelway_domain::names::{Context, ProjectName, SequenceName, StageName};
use keelway_domain::schedules::Firing;
use keelway_domain::sequences::{Execution, Flags};
use keelway_domain::stored::Stored;
use keelway_domain::time::Timestamp;
use serde::{Deserialize, Serialize};

/// The address of a message.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Address {
    /// The project.
    #[serde(rename = "p")]
    pub project: ProjectName,
    /// The context.
    #[serde(rename = "c")]
    pub context: Context,
    /// The execution.
    #[serde(rename = "x")]
    pub execution: ExecutionId,
}

impl Address {
    /// Of an execution.
    pub fn of(x: &Execution) -> Self {
        Self { project: x.project.clone(), context: x.context.clone(), execution: x.id }
    }
}

messages! {
    /// A message of the sequences engine.
    pub enum Message {
        /// The lane was given to this execution for its `ask`-th request.
        Granted {
            /// The addressee.
            to: Address,
            /// Which of its requests.
            ask: u32,
            /// Sort key of the item that holds its first payload: read together with the execution.
            #[serde(default, skip_serializing_if = "String::is_empty")]
            payload: String,
        },
        /// Start the `n`-th follow-up that this record of the addressed execution names.
        Follow {
            /// The execution that caused it.
            to: Address,
            /// The record that names it.
            #[serde(with = "record_id")]
            record: RecordId,
            /// Its index in the record.
            n: usize,
        },
        /// Start a sequence on a domain event that was recorded under this sort key.
        Start {
            /// The execution to start.
            to: Address,
            /// Sort key of the recorded event.
            event: String,
            /// The declaring stage.
            stage: StageName,
            /// The sequence.
            sequence: SequenceName,
            /// The shipyard revision that was in force when the event was accepted.
            #[serde(default)]
            revision: String,
            /// When the event was accepted.
            accepted: Timestamp,
        },
        /// A wake-up at the time that an execution asked for.
        Wake {
            /// The addressee.
            to: Address,
            /// The time it was armed for; if the state has another time, this wake-up has been replaced.
            at: Timestamp,
        },
        /// The context's flags changed: notify its open executions.
        Conform {
            /// The project.
            project: ProjectName,
            /// The context.
            context: Context,
            /// Continue after this sort key; empty = from the beginning.
            #[serde(default, skip_serializing_if = "String::is_empty")]
            after: String,
        },
        /// A schedule was applied: plan its next time.
        Planned {
            /// Its project.
            project: ProjectName,
            /// Its name.
            schedule: String,
        },
        /// A wake-up of a schedule.
        Due {
            /// Its project.
            project: ProjectName,
            /// Its name.
            schedule: String,
            /// The time it was armed for.
            at: Timestamp,
        },
        /// A trigger that a schedule has made.
        Fire {
            /// The execution to start.
            to: Address,
            /// The schedule's name.
            schedule: String,
            /// The trigger.
            firing: Box<Firing>,
        },
        /// The windows of a project's stages changed: notify what they hold back.
        Windows {
            /// The project.
            project: ProjectName,
        },
        /// The execution must compare itself with its context's flags and the windows of its stage.
        Obey {
            /// The addressee.
            to: Address,
        },
        /// The execution is covered by an abort of its context or stage.
        Abort {
            /// The addressee.
            to: Address,
        },
        /// A newer execution of its sequence waits for the same lane.
        Supersede {
            /// The addressee.
            to: Address,
            /// The newer one's context.
            by: Context,
        },
        /// A person's decision on an open approval. It comes in through the API, which passes on who decided.
        Decide {
            /// The addressee.
            to: Address,
            /// The approval's `.triggered` event.
            #[serde(with = "record_id")]
            trigger: RecordId,
            /// The decision as an `approval.finished` CloudEvent.
            event: serde_json::Value,
        },
        /// Repeat an ended execution from a task on.
        Retry {
            /// The execution to start.
            to: Address,
            /// The one that has ended.
            of: ExecutionId,
            /// The index of the first task to repeat.
            from: u16,
            /// Who asked for it; messages of older versions lack it.
            #[serde(default, skip_serializing_if = "String::is_empty")]
            by: String,
        },
        /// The sweep found the execution overdue.
        Settle {
            /// The addressee.
            to: Address,
        },
    }
}

impl OwnMessage for Message {
    fn sameness(&self) -> Sameness {
        match self {
            Message::Wake { .. } | Message::Due { .. } => Sameness::AnyCopy,
            Message::Granted { .. } | Message::Follow { .. } => Sameness::Copied,
            _ => Sameness::EachMessage,
        }
    }
}

impl Message {
    /// The message to an open execution that has not obeyed its context's flags. An abort has its own message, because it publishes
    /// events: two deliveries of one message must not decide differently, as they could if each read the flags.
    pub fn of_flags(x: &Execution, flags: &Flags) -> Option<Self> {
        let to = Address::of(x);
        match () {
            () if x.outcome.is_some() => None,
            () if flags.aborts(&x.stage, x.epoch) => Some(Self::Abort { to }),
            () if flags.pauses(&x.stage) != x.paused => Some(Self::Obey { to }),
            () if flags.lets_through(x) => Some(Self::Obey { to }),
            () => None,
        }
    }

    /// The body that goes into the queue.
    pub fn to_body(&self) -> String {
        self.to_json()
    }

    /// The message, addressed to the engine's queue.
    pub fn letter(&self) -> Letter {
        Letter { to: NAME, body: self.to_body() }
    }
}

mod record_id {
    use keelway_domain::ids::RecordId;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(id: &RecordId, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(&id.uuid())
    }
    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<RecordId, D::Error> {
        let text = String::deserialize(d)?;
        RecordId::from_uuid(&text).ok_or_else(|| D::Error::custom("not the id of a transition record"))
    }
}
