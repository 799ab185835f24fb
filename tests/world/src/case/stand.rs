//! What a case is run on.

use keelway_cases::Entrance;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::protocol::Handled;
use serde_json::Value;

/// What the sender of an input hears.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answer {
    /// `None`: this stand cannot say.
    pub said: Option<Said>,
    /// The refusal's text.
    pub problem: String,
}

/// The two kinds of answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// From the handler.
    Handled(Handled),
    /// From the API.
    Status(u16),
}

impl Answer {
    /// This stand cannot say.
    pub fn unknown() -> Self {
        Self::default()
    }
    /// The handler's answer.
    pub fn handled(handled: Handled) -> Self {
        Self { said: Some(Said::Handled(handled)), problem: String::new() }
    }
    /// The API's answer.
    pub fn status(status: u16, problem: impl Into<String>) -> Self {
        Self { said: Some(Said::Status(status)), problem: problem.into() }
    }
}

/// A running control plane: in memory, or deployed. Every input returns when what it set off at once has happened.
pub trait Stand {
    /// Distinguishes this run's projects and contexts from other runs'; at most 12 characters of a project's name.
    fn salt(&self) -> String;
    /// Whether [`Stand::outgoing`] has one order; otherwise only inside one stream.
    fn ordered(&self) -> bool;
    /// The time to put into events.
    fn now(&self) -> Timestamp;
    /// Something goes wrong on purpose that takes time to mend: what a case says of single steps is not compared.
    fn is_disturbed(&self) -> bool {
        false
    }
    /// A step begins.
    fn step(&mut self);
    /// Sends an event in structured JSON.
    fn send(&mut self, event: &Value, at: Entrance) -> Answer;
    /// Time goes by, and with it what comes due. A disturbed stand may leave it to [`Stand::passes_time`].
    fn wait(&mut self, span: Span);
    /// What takes time on a disturbed stand goes on a little; `false`: nothing does. Before the next step it is asked until then.
    fn passes_time(&mut self) -> bool {
        false
    }
    /// Everything sent so far about these projects or contexts, by first publication, in structured JSON.
    fn outgoing(&mut self) -> Vec<Value>;
}
