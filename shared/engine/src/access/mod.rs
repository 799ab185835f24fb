//! Access to the API: tokens and the audit. Neither belongs to an engine, because no messages are involved.

mod audit;
mod tokens;

pub use audit::{Entry, Filter, MAX_PAGE, TYPE};
pub use tokens::{Held, REMEMBERED, RETRY, Refused, Verdict};

use crate::item::Key;
use crate::keys::{hash, ms};
use crate::partition::{Kind, Partition};
use keelway_domain::names::TokenName;
use keelway_domain::time::{Span, Timestamp};
use std::collections::HashMap;
use std::sync::Mutex;

/// Tokens and the audit, over ports. Each process has its own cache of tokens.
#[derive(Debug)]
pub struct Access<P> {
    ports: P,
    /// How long entries of the audit are kept, and tokens after their end.
    retention: Span,
    remembered: Mutex<HashMap<TokenName, tokens::Remembered>>,
}

impl<P> Access<P> {
    /// Over these ports.
    pub fn new(ports: P, retention: Span) -> Self {
        Self { ports, retention, remembered: Mutex::default() }
    }
}

/// The partition of all tokens.
const TOKENS: &str = "TOKENS";

static ALL_TOKENS: Partition = Partition::new(TOKENS, "", &[Kind::of("", "<name>", "API token")]);
static AUDIT: Partition = Partition::new("AUDIT#", "<day>", &[Kind::of("", "<time>#<id>", "entry of the audit")]);
/// The partitions of access.
pub(crate) static PARTITIONS: &[&Partition] = &[&ALL_TOKENS, &AUDIT];

/// A token.
fn token(name: &TokenName) -> Key {
    Key::new(TOKENS, name.as_str())
}

/// The partition of a day's audit.
fn day(at: Timestamp) -> String {
    AUDIT.named(at.day())
}

/// An entry of the audit.
fn entry(at: Timestamp, id: u64) -> Key {
    Key::new(day(at), format!("{}#{}", ms(at), hash(id)))
}
