//! What arrives in the engine's queue: events from the bus, and the engine's own messages to single executions.

use keelway_domain::event::CloudEvent;
use keelway_domain::ids::{ExecutionId, RecordId};
use keelway_domain::names::{Context, ProjectName, SequenceName, StageName};
use keelway_domain::time::Timestamp;
use serde::{Deserialize, Serialize};

/// One delivery from the queue. Its body may come again: nothing in it is drawn or read from a clock at receipt.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery {
    /// When it was first put into the queue (`SentTimestamp`): the same on every redelivery, so it orders acceptance.
    pub sent: Timestamp,
    /// What it says.
    pub body: Body,
}

/// A delivery's content.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// An event someone put on the bus.
    Event(CloudEvent),
    /// One of our own messages.
    Own(Message),
    /// Neither: recorded and acknowledged.
    Invalid {
        /// Why, naming the field and the way out.
        reason: String,
        /// As it arrived, shortened if need be.
        text: String,
    },
}

/// Whom a message is addressed to.
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

/// The engine's own messages. Each may arrive twice, late, or after its reason is gone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "keelway", rename_all = "lowercase")]
pub enum Message {
    /// The lane was given to this execution for its `ask`-th request.
    Granted {
        /// To whom.
        to: Address,
        /// Which of its requests.
        ask: u32,
    },
    /// Start the `n`-th follow-up that this record of the addressed execution names.
    Follow {
        /// The execution that caused it.
        to: Address,
        /// The record that names it.
        #[serde(with = "record_id")]
        record: RecordId,
        /// Its place in the record.
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
        /// When the event was accepted.
        accepted: Timestamp,
    },
    /// The time an execution asked to be woken at.
    Wake {
        /// Whom.
        to: Address,
        /// The time it was armed for: anything else in the state has replaced it.
        at: Timestamp,
    },
    /// The context's flags changed: tell every open execution of it.
    Conform {
        /// The project.
        project: ProjectName,
        /// The context.
        context: Context,
    },
    /// Compare yourself with your context's flags.
    Obey {
        /// Whom.
        to: Address,
    },
    /// A person's decision on an open approval; came in through the API, which knows who it was.
    Decide {
        /// Whom.
        to: Address,
        /// The approval's `.triggered` event.
        #[serde(with = "record_id")]
        trigger: RecordId,
        /// The decision as an `approval.finished` CloudEvent.
        event: serde_json::Value,
    },
    /// Do again what your state owes; sent by the sweep.
    Settle {
        /// Whom.
        to: Address,
    },
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

impl Message {
    /// The body that goes into the queue.
    pub fn to_body(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// What became of a delivery that needs no retry: everything here is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handled {
    /// It changed the state.
    Committed,
    /// It had been absorbed before (or decides nothing now); what the state owes was settled again.
    Settled,
    /// It came too late to count and is recorded as stale.
    Stale,
    /// It cannot be used and is recorded as invalid.
    Invalid,
    /// It is kept as history and decides nothing.
    Recorded,
}
