//! Commands for dead letters: read them, send one again at once, or drop it.

use super::dead_letter::Redriven;
use crate::item::{Item, Key};
use crate::keys;
use crate::ports::{Condition, Cursor, PortError, Ports, Query, Store, Write};
use crate::table;
use keelway_domain::time::Timestamp;
use std::collections::HashMap;

/// The most planned letters that are read. The times of later ones are not shown.
const PLANS: usize = 1000;

/// A stored dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Names it: `<milliseconds since 1970>-<message id>`.
    pub id: String,
    /// The engine whose message it is.
    pub engine: String,
    /// The dead-letter queue it was in.
    pub queue: String,
    /// When the message was first sent.
    pub sent: Timestamp,
    /// How often it was received before it became a dead letter.
    pub receives: i64,
    /// Why, if the queue knows.
    pub reason: Option<String>,
    /// When the sweep sends it again; `None`: it does not, any more.
    pub next: Option<Timestamp>,
    /// The message's text.
    pub body: String,
    /// Whether only the beginning of the text was kept: then it cannot be sent again.
    pub cut: bool,
}

/// The outcome of sending a letter again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redrive {
    /// It is in its engine's queue. The letter stays until the message is handled.
    Sent,
    /// Its text was cut, so it cannot be sent.
    Cut,
    /// There is no such letter: it was handled, dropped, or never existed.
    Unknown,
}

fn key(id: &str) -> Option<Key> {
    let (at, message) = id.split_once('-')?;
    let time = at.len() == 13 && at.bytes().all(|byte| byte.is_ascii_digit());
    (time && !message.is_empty() && id.len() <= 200).then(|| Key::new(keys::DEAD_LETTERS, format!("{at}#{message}")))
}

fn stored(item: &Item, plans: &HashMap<String, Timestamp>) -> Stored {
    let text = |name: &str| item.text(name).unwrap_or_default().to_owned();
    Stored {
        id: item.key.sk.replacen('#', "-", 1),
        engine: text("to"),
        queue: text("qn"),
        sent: Timestamp(item.number("st").unwrap_or_default()),
        receives: item.number("n").unwrap_or_default(),
        reason: item.text("why").map(str::to_owned),
        next: plans.get(&item.key.sk).copied(),
        body: text("b"),
        cut: item.flag("cut"),
    }
}

/// When each letter is sent again.
async fn plans(store: &impl Store) -> Result<HashMap<String, Timestamp>, PortError> {
    let (items, _) = table::all(store, Query::table(keys::DUE_LETTERS, 100), PLANS).await?;
    let plan = |item: &Item| {
        let (at, letter) = item.key.sk.split_once('#')?;
        Some((letter.to_owned(), Timestamp(at.parse().ok()?)))
    };
    Ok(items.iter().filter_map(plan).collect())
}

/// A page of dead letters, newest first, and the id after which the next page begins.
///
/// # Errors
/// A port fails.
pub async fn list(store: &impl Store, after: Option<&str>, most: u32) -> Result<(Vec<Stored>, Option<String>), PortError> {
    let after = after.and_then(key).map(|key| Cursor { key, index_sort: None });
    let page = store.query(&Query::table(keys::DEAD_LETTERS, most).newest_first().after(after)).await?;
    if page.items.is_empty() {
        return Ok((vec![], None));
    }
    let plans = plans(store).await?;
    let letters: Vec<Stored> = page.items.iter().map(|item| stored(item, &plans)).collect();
    let next = page.next.and_then(|_| letters.last().map(|letter| letter.id.clone()));
    Ok((letters, next))
}

/// Whether a text may be the id of a letter.
pub fn is_id(text: &str) -> bool {
    key(text).is_some()
}

/// One dead letter.
///
/// # Errors
/// A port fails.
pub async fn one(store: &impl Store, id: &str) -> Result<Option<Stored>, PortError> {
    let Some(key) = key(id) else { return Ok(None) };
    let Some(item) = store.get(&key).await? else { return Ok(None) };
    Ok(Some(stored(&item, &plans(store).await?)))
}

/// Sends a letter to its engine's queue at once. Its message is handled as at the first time, so sending it twice is safe.
///
/// # Errors
/// A port fails.
pub async fn redrive(ports: &impl Ports, id: &str) -> Result<Redrive, PortError> {
    let Some(key) = key(id) else { return Ok(Redrive::Unknown) };
    let Some(item) = ports.get(&key).await? else { return Ok(Redrive::Unknown) };
    if item.flag("cut") {
        return Ok(Redrive::Cut);
    }
    let sent = Timestamp(item.number("st").unwrap_or_default());
    let body = item.text("b").unwrap_or_default().to_owned();
    // The sweep's plan stays: it finds no letter when this one has been handled.
    let again = Redriven { letter: key.sk, due: String::new(), sent, body };
    table::send(ports, item.text("to").unwrap_or_default(), &[again.to_body()]).await?;
    Ok(Redrive::Sent)
}

/// Drops a letter: its message is never handled. `false`: there is no such letter.
///
/// # Errors
/// A port fails.
pub async fn drop_one(store: &impl Store, id: &str) -> Result<bool, PortError> {
    let Some(key) = key(id) else { return Ok(false) };
    let Some(item) = store.get(&key).await? else { return Ok(false) };
    store.write(&Write::Delete(key, Condition::Always)).await?;
    tracing::warn!(letter = id, queue = item.text("qn").unwrap_or_default(), "a dead letter was dropped");
    Ok(true)
}
