//! Dead letters: messages that failed too often end as items in the table, because a dead-letter queue drops them after 14 days.
//!
//! The sweep sends each letter again a few times, with growing pauses: an end whose message failed during an outage is published
//! when the outage is over. A letter that still fails stays in the table for a person. A letter is one item; while it is to be sent
//! again, it has a companion item sorted by the due time, so letters that are waiting or given up do not delay others.

use crate::item::{Item, Key};
use crate::keys;
use crate::ports::{Condition, PortError, Ports, Query, Store, Write, Written};
use crate::table;
use keelway_domain::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// The most bytes of a body that are kept; SQS allows more than an item holds.
const KEPT: usize = 350 * 1024;

/// A message from a dead-letter queue.
#[derive(Debug, Clone, PartialEq)]
pub struct DeadLetter {
    /// The engine whose queue it was meant for.
    pub engine: String,
    /// The name of the queue it was meant for; of the one it was in, if that is not known.
    pub queue: String,
    /// Its message id: the same letter is stored once.
    pub message_id: String,
    /// When it was first sent.
    pub sent: Timestamp,
    /// Its body, byte for byte.
    pub body: String,
    /// How often it was received before.
    pub receives: i64,
    /// Why it became a dead letter, if the queue knows.
    pub reason: Option<String>,
}

/// A dead letter is sent again this often before it waits for a person.
pub const REDRIVES: i64 = 5;
/// The pause before the second redrive; it triples before each further one.
const REDRIVE_AFTER: Span = Span::minutes(10);
/// Letters sent again in one call: one batch of writes and few requests to the queues.
const AT_ONCE: u32 = 10;

/// A dead letter that is sent again, as it is in the queue: the original message, and the letter to delete when that is handled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "keelway", rename = "redrive")]
pub struct Redriven {
    /// Sort key of the letter.
    pub letter: String,
    /// Sort key of the item that says when it is sent next; empty = it is not sent any more.
    #[serde(default)]
    pub due: String,
    /// When the message was first sent: it keeps its place in the order of acceptance.
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
    /// The body that goes into the queue.
    pub fn to_body(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Deletes a letter whose message was handled after all.
///
/// # Errors
/// A port fails.
pub async fn handled(store: &impl Store, again: &Redriven) -> Result<(), PortError> {
    let mut gone = vec![Key::new(keys::DEAD_LETTERS, again.letter.as_str())];
    gone.extend((!again.due.is_empty()).then(|| Key::new(keys::DUE_LETTERS, again.due.as_str())));
    table::record(store, vec![], gone).await
}

/// Stores a dead letter. It stays until it is handled.
///
/// # Errors
/// A port fails.
pub async fn store(store: &impl Store, letter: &DeadLetter) -> Result<(), PortError> {
    if let Some(again) = Redriven::parse(&letter.body) {
        tracing::error!(letter = again.letter, "a dead letter failed again; it is still stored");
        return Ok(());
    }
    let key = keys::dead_letter(letter.sent, &letter.message_id);
    let cut = letter.body.len() > KEPT;
    let due = Item::new(keys::due_letter(letter.sent, &key.sk)).with("n", 0i64);
    let item = Item::new(key)
        .with("st", letter.sent.0)
        .with("to", letter.engine.as_str())
        .with("qn", letter.queue.as_str())
        .with("b", &letter.body[..letter.body.floor_char_boundary(KEPT)])
        .with_some("cut", cut.then_some(true))
        .with("n", letter.receives)
        .with_some("why", letter.reason.as_deref());
    match store.write(&Write::Put(item, Condition::Absent)).await? {
        Written::Done => tracing::error!(queue = letter.queue, message.id = letter.message_id, "dead letter stored"),
        Written::Conflict(_) => tracing::info!(message.id = letter.message_id, "dead letter was stored before"),
    }
    // A truncated message is kept for a person and not sent again. Any other letter is made due, even if it was stored before: the
    // earlier delivery may have stopped here.
    if !cut {
        store.write(&Write::Put(due, Condition::Always)).await?;
    }
    Ok(())
}

/// Sends a few due letters again, those due longest first. A caller with time left calls again until none was sent.
///
/// # Errors
/// A port fails.
pub async fn redrive(ports: &impl Ports) -> Result<usize, PortError> {
    let now = ports.now();
    let mut query = Query::table(keys::DUE_LETTERS, AT_ONCE);
    query.to = Some(keys::due_bound(now));
    let due = ports.query(&query).await?.items;
    if due.is_empty() {
        return Ok(0);
    }
    let letter = |item: &Item| Key::new(keys::DEAD_LETTERS, keys::letter_of(&item.key.sk));
    let letters = table::read(ports, &due.iter().map(letter).collect::<Vec<_>>()).await?;
    let (mut later, mut bodies) = (Vec::new(), Vec::new());
    let mut seen = HashSet::new();
    for item in &due {
        let (key, times) = (letter(item), item.number("n").unwrap_or(0));
        // Two concurrent sweeps may have postponed a letter to two different times.
        if !seen.insert(key.clone()) {
            continue;
        }
        // A letter that no longer exists was handled.
        let Some((letter, body)) = letters.get(&key).and_then(|letter| Some((letter, letter.text("b")?))) else { continue };
        let next = (times + 1 < REDRIVES).then(|| now + Span(REDRIVE_AFTER.0 * 3i64.pow(u32::try_from(times).unwrap_or(0))));
        let next = next.map(|next| keys::due_letter(next, &key.sk));
        let again = Redriven {
            letter: key.sk,
            due: next.as_ref().map(|key| key.sk.clone()).unwrap_or_default(),
            sent: Timestamp(letter.number("st").unwrap_or(now.0)),
            body: body.to_owned(),
        };
        bodies.push((letter.text("to").unwrap_or_default().to_owned(), again.to_body()));
        later.extend(next.map(|key| Item::new(key).with("n", times + 1)));
    }
    // Postponed before they are sent: a letter that is lost in between is sent in the next round.
    table::record(ports, later, due.iter().map(|item| item.key.clone()).collect()).await?;
    let mut engines: Vec<&str> = bodies.iter().map(|(to, _)| to.as_str()).collect();
    engines.sort_unstable();
    engines.dedup();
    for engine in engines {
        let own: Vec<String> = bodies.iter().filter(|(to, _)| to == engine).map(|(_, body)| body.clone()).collect();
        match table::send(ports, engine, &own).await {
            // Letters that cannot be sent do not delay others.
            Err(error @ PortError::Refused { .. }) => tracing::error!(engine, %error, "dead letters cannot be sent again"),
            sent => sent?,
        }
    }
    Ok(due.len())
}
