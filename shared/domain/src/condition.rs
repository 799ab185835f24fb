//! How something is, in a word for machines and a sentence for people.

use serde::{Deserialize, Serialize};

/// Why something is as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// A word for machines; empty: there is nothing to say.
    #[serde(rename = "r", default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// A sentence for people.
    #[serde(rename = "m", default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl Condition {
    /// A reason and its sentence.
    pub fn new(reason: &str, message: impl Into<String>) -> Self {
        Self { reason: reason.to_owned(), message: message.into() }
    }
}
