//! The table keys of integrations, and of what they log.

use crate::partition::{Kind, Partition};

/// The partition of integrations.
pub const INTEGRATIONS: &str = "U";
/// The partition of what integrations log.
pub const LOGS: &str = "UL";

static REPORTED: Partition = Partition::new(INTEGRATIONS, "", &[Kind::of("", "<integration>", "integration")]);
static LOGGED: Partition = Partition::new(LOGS, "", &[Kind::of("", "<time>#<content>", "what an integration logs")]);
/// What is kept of integrations.
pub static PARTITIONS: &[&Partition] = &[&REPORTED, &LOGGED];
