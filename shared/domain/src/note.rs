//! Notes: who gave a command, when, and why.

use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// Who gave a command, when, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The identity of the person or tool. Empty: it is not known.
    #[serde(rename = "b", default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    #[expect(missing_docs, reason = "the name says it")]
    #[serde(rename = "t")]
    pub at: Timestamp,
    /// The reason that was given.
    #[serde(rename = "m", default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The id of the command among all commands. Each command is obeyed once. 0: it has no id.
    #[serde(rename = "i", default, skip_serializing_if = "is_zero")]
    pub id: u64,
    /// The run for which the command was given; it has no effect on other runs. 0: the current run.
    #[serde(rename = "n", default, skip_serializing_if = "is_zero")]
    pub run: u64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}
