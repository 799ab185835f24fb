//! Trouble: what an operator should look at. Each function tells it in one way, so one alarm covers all of it.
//!
//! A function that crashes or does not start tells nothing. It leaves its messages in its queue, where the sweep finds them.

use crate::ports::PortError;
use std::future::Future;

/// The queue of dead letters, and the function that stores them.
pub const DEAD_LETTERS: &str = "dead-letters";

/// A kind of trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Messages of a queue wait for longer than the limit.
    MessagesWait,
    /// A function on a queue crashes, runs out of time or memory, or does not start.
    FunctionFails,
    /// Lambda refuses to run a function on a queue.
    FunctionThrottled,
    /// A message failed too often, or could not be handed over. It is stored.
    DeadLetter,
    /// Dead letters stay in their queue, which drops them after 14 days.
    DeadLettersWait,
    /// Open work should have gone on long ago, and the messages of the sweep did not help.
    WorkStuck,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 6] = [
        Kind::MessagesWait,
        Kind::FunctionFails,
        Kind::FunctionThrottled,
        Kind::DeadLetter,
        Kind::DeadLettersWait,
        Kind::WorkStuck,
    ];

    /// The name in the log and in the runbook.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::MessagesWait => "messages-wait",
            Kind::FunctionFails => "function-fails",
            Kind::FunctionThrottled => "function-throttled",
            Kind::DeadLetter => "dead-letter",
            Kind::DeadLettersWait => "dead-letters-wait",
            Kind::WorkStuck => "work-stuck",
        }
    }
}

/// One trouble.
#[derive(Debug, Clone, PartialEq)]
pub struct Trouble {
    /// Its kind.
    pub kind: Kind,
    /// The engine whose queue and function it is about; empty if it is about several.
    pub engine: String,
    /// How much of it: seconds, failures, throttled attempts, letters, or subjects.
    pub much: f64,
}

/// What CloudWatch keeps of a queue and of its function, minute by minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// The age of the queue's oldest message in seconds: the largest of the minute.
    Age,
    /// The messages of the queue that wait: the smallest number of the minute.
    Waiting,
    /// The invocations of the function that failed.
    Errors,
    /// The invocations of the function that Lambda refused.
    Throttles,
}

/// Looks at queues and their functions from outside.
pub trait Watch: Send + Sync {
    /// The messages of a queue, without those whose delay is not over.
    ///
    /// # Errors
    /// [`PortError::Retry`] if the queue cannot be asked now, [`PortError::Refused`] if it must not be asked.
    fn messages(&self, engine: &str) -> impl Future<Output = Result<u64, PortError>> + Send;

    /// The values of the last minutes of each measure, so many at most; a minute may have none.
    ///
    /// # Errors
    /// As for [`Watch::messages`].
    fn measured(
        &self,
        engine: &str,
        what: &[Measure],
        minutes: i64,
    ) -> impl Future<Output = Result<Vec<Vec<f64>>, PortError>> + Send;
}
