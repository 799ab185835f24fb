//! Invalid input. It is recorded with the reason, acknowledged, and never retried.

use super::incoming::Handled;
use crate::item::{Item, Key};
use crate::keys;
use crate::ports::{Cursor, PortError, Query, Store};
use crate::table;
use keelway_domain::ids::hash64;
use keelway_domain::time::{Span, Timestamp};

/// The most bytes of an invalid input that are stored: a sender may send many of them, and those of one day share a partition.
const KEPT: usize = 16 * 1024;

/// The longest reason: it quotes the input, which may be long.
pub fn short(reason: &str) -> String {
    reason.chars().take(1000).collect()
}

fn key(at: Timestamp, text: &str) -> Key {
    keys::invalid(at, hash64(&[text.as_bytes()]))
}

/// Whether this input was recorded as invalid.
///
/// # Errors
/// A port fails.
pub async fn recorded(store: &impl Store, at: Timestamp, text: &str) -> Result<bool, PortError> {
    store.get(&key(at, text)).await.map(|item| item.is_some())
}

/// Records input that belongs to no subject.
///
/// # Errors
/// A port fails.
pub async fn record(store: &impl Store, retention: Span, at: Timestamp, reason: &str, text: &str) -> Result<Handled, PortError> {
    let item = Item::new(key(at, text))
        .with("why", short(reason))
        .with("b", &text[..text.floor_char_boundary(KEPT)])
        .with_some("cut", (text.len() > KEPT).then_some(true))
        .with("ttl", (at + retention).0 / 1000);
    table::record(store, vec![item], vec![]).await?;
    tracing::warn!(reason = short(reason), "input recorded as invalid");
    Ok(Handled::Invalid)
}

/// A recorded invalid input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unusable {
    /// When it was accepted.
    pub at: Timestamp,
    /// Why it is invalid.
    pub reason: String,
    /// Its text, or the beginning of it.
    pub text: String,
    /// Whether the text goes on.
    pub cut: bool,
    /// The position after it in a list.
    pub position: String,
}

/// A page of what was recorded on a day (UTC), newest first; with the position after which the next page begins.
///
/// # Errors
/// A port fails.
pub async fn of_day(
    store: &impl Store,
    day: Timestamp,
    after: Option<&str>,
    most: u32,
) -> Result<(Vec<Unusable>, Option<String>), PortError> {
    let partition = key(day, "").pk;
    let after = after.map(|sort| Cursor { key: Key::new(partition.clone(), sort), index_sort: None });
    let page = store.query(&Query::table(partition, most).newest_first().after(after)).await?;
    let unusable = |item: &Item| Unusable {
        at: Timestamp(item.key.sk.split('#').next().and_then(|at| at.parse().ok()).unwrap_or_default()),
        reason: item.text("why").unwrap_or_default().to_owned(),
        text: item.text("b").unwrap_or_default().to_owned(),
        cut: item.flag("cut"),
        position: item.key.sk.clone(),
    };
    let found: Vec<Unusable> = page.items.iter().map(unusable).collect();
    let next = page.next.and_then(|_| found.last().map(|last| last.position.clone()));
    Ok((found, next))
}
