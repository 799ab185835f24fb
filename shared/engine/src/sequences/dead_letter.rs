//! Dead letters: messages that failed too often end as items in the table. Nothing that was accepted is ever only in a queue.
//!
//! The sweep sends each of them again a few times, further and further apart: an end whose message died in an outage is published
//! when the outage is over. What fails even then stays in the table for a person.

use super::Engine;
use crate::item::{Attr, Attrs, Item, Key, Name};
use crate::keys;
use crate::ports::{Condition, PortError, Ports, Query, Store, Write, Written};
use crate::table;
use keelway_domain::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};

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

/// A dead letter is sent again this often before it waits for a person.
const REDRIVES: i64 = 5;
/// Between the first redrive and the second; three times as long before each further one.
const REDRIVE_AFTER: Span = Span::minutes(10);
/// Letters looked at in one sweep, in pages of 25.
const LOOKED_AT: usize = 200;

/// A dead letter on its way again, as it stands in the queue: the message it was, and the letter to take out when that is handled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "keelway", rename = "redrive")]
pub struct Redriven {
    /// Sort key of the letter.
    pub letter: String,
    /// When the message was first sent: it keeps its place by acceptance.
    pub sent: Timestamp,
    /// The message.
    pub body: String,
}

impl Redriven {
    /// Reads a body; `None` if it is any other message.
    pub fn parse(body: &str) -> Option<Self> {
        let ours = body.starts_with(r#"{"keelway":"redrive""#);
        ours.then(|| serde_json::from_str(body).ok()).flatten()
    }
}

/// Takes a letter out whose message was handled after all.
pub async fn handled(store: &impl Store, letter: &str) -> Result<(), PortError> {
    table::record(store, vec![], vec![Key::new(keys::DEAD_LETTERS, letter)]).await
}

impl<P: Ports> Engine<P> {
    /// Sends due letters again; how many.
    pub(super) async fn redrive(&self) -> Result<usize, PortError> {
        let now = self.ports.now();
        let (letters, _) = table::all(&self.ports, Query::table(keys::DEAD_LETTERS, 25), LOOKED_AT).await?;
        let mut sent = 0;
        for item in letters {
            let times = item.number("rd").unwrap_or(0);
            let (Some(body), false) = (item.text("b"), item.flag("cut")) else { continue };
            if times >= REDRIVES || item.number("nx").unwrap_or(0) > now.0 {
                continue;
            }
            let next = now + Span(REDRIVE_AFTER.0 * 3i64.pow(u32::try_from(times).unwrap_or(0)));
            let version = item.version();
            let set = Attrs::from(
                [("v", version + 1), ("rd", times + 1), ("nx", next.0)].map(|(name, n)| (Name::Borrowed(name), Attr::N(n))),
            );
            let write =
                Write::Update { key: item.key.clone(), condition: Condition::Version(version), set, remove: vec![], raise: false };
            // Counted before it is sent: one that is lost in between is sent with the next round.
            if self.ports.write(&write).await? == Written::Done {
                let first = Timestamp(item.number("st").unwrap_or(now.0));
                let again = Redriven { letter: item.key.sk.clone(), sent: first, body: body.to_owned() };
                table::send(&self.ports, &[serde_json::to_string(&again).unwrap_or_default()]).await?;
                sent += 1;
            }
        }
        Ok(sent)
    }
}

/// Stores a dead letter. It stays until it is handled.
pub async fn store(store: &impl Store, letter: &DeadLetter) -> Result<(), PortError> {
    if let Some(again) = Redriven::parse(&letter.body) {
        tracing::error!(letter = again.letter, "a dead letter failed again; it is still stored");
        return Ok(());
    }
    let kept: String = letter.body.char_indices().take_while(|(i, c)| i + c.len_utf8() <= KEPT).map(|(_, c)| c).collect();
    let item = Item::new(keys::dead_letter(letter.sent, &letter.message_id))
        .with("v", 1i64)
        .with("st", letter.sent.0)
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
