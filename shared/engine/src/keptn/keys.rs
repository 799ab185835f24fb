//! The table keys of integrations and their logs.

use crate::partition::{Kind, Partition};

/// The partition of integrations.
pub const INTEGRATIONS: &str = "U";
/// The partition of the logs of integrations.
pub const LOGS: &str = "UL";

static REPORTED: Partition = Partition::new(INTEGRATIONS, "", &[Kind::of("", "<integration>", "integration")]);
static LOGGED: Partition = Partition::new(LOGS, "", &[Kind::of("", "<time>#<content>", "what an integration logs")]);
/// The kinds of items of integrations.
pub static PARTITIONS: &[&Partition] = &[&REPORTED, &LOGGED];
