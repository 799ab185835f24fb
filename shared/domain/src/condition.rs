//! A condition: a reason for machines, and a message for people.

use serde::{Deserialize, Serialize};

/// Why something is in its state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// One word in camel case, for machines. Empty: there is nothing to report.
    #[serde(rename = "r", default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// One sentence, for people.
    #[serde(rename = "m", default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl Condition {
    /// A condition with a reason and a message.
    pub fn new(reason: &str, message: impl Into<String>) -> Self {
        Self { reason: reason.to_owned(), message: message.into() }
    }
}
