//! Who did something, when, and why: with commands and with what they leave behind.

use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// Who did something, when, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Who.
    #[serde(rename = "b", default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// When.
    #[serde(rename = "t")]
    pub at: Timestamp,
    /// Why.
    #[serde(rename = "m", default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Identifies the command among all that anybody gives: each is obeyed once. 0: it has no id.
    #[serde(rename = "i", default, skip_serializing_if = "is_zero")]
    pub id: u64,
    /// The run that was seen when the command was given; it counts for no other. 0: for whichever is current.
    #[serde(rename = "n", default, skip_serializing_if = "is_zero")]
    pub run: u64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}
