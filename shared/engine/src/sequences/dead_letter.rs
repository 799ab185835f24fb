//! Dead letters: messages that failed too often end as items in the table, where they can be listed and redriven. Nothing that
//! was accepted is ever only in a queue.

use crate::item::Item;
use crate::keys;
use crate::ports::{Condition, PortError, Store, Write, Written};
use keelway_domain::time::Timestamp;

/// Kept of a body; SQS allows more than an item holds.
const KEPT: usize = 350 * 1024;

/// A message from a dead-letter queue.
#[derive(Debug, Clone, PartialEq)]
pub struct DeadLetter {
    /// The dead-letter queue it was in.
    pub queue: String,
    /// Its message id: the same letter is stored once.
    pub message_id: String,
    /// When it was first sent.
    pub sent: Timestamp,
    /// Its body, byte for byte.
    pub body: String,
    /// How often it was received before.
    pub receives: i64,
    /// Why it ended there, if the queue knows.
    pub reason: Option<String>,
}

/// Stores a dead letter. It stays until somebody handles it.
pub async fn store(store: &impl Store, letter: &DeadLetter) -> Result<(), PortError> {
    let kept: String = letter.body.char_indices().take_while(|(i, c)| i + c.len_utf8() <= KEPT).map(|(_, c)| c).collect();
    let item = Item::new(keys::dead_letter(letter.sent, &letter.message_id))
        .with("qn", letter.queue.as_str())
        .with("b", kept)
        .with_some("cut", (letter.body.len() > KEPT).then_some(true))
        .with("n", letter.receives)
        .with_some("why", letter.reason.as_deref());
    match store.write(&Write::Put(item, Condition::Absent)).await? {
        Written::Done => tracing::error!(queue = letter.queue, message.id = letter.message_id, "dead letter stored"),
        Written::Conflict(_) => tracing::info!(message.id = letter.message_id, "dead letter was stored before"),
    }
    Ok(())
}
