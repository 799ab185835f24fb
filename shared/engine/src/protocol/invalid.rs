//! Input that cannot be used. It is recorded with the reason, acknowledged, and never retried.

use super::delivery::Handled;
use crate::item::{Item, Key};
use crate::keys;
use crate::ports::{PortError, Store};
use crate::table;
use keelway_domain::ids::hash64;
use keelway_domain::time::{Span, Timestamp};

/// At most this many bytes of an unusable input are kept: a sender may send many of them, and all those of a day are in one
/// partition.
const KEPT: usize = 16 * 1024;

/// The longest reason: it quotes the input, which may be long.
pub fn short(reason: &str) -> String {
    reason.chars().take(1000).collect()
}

fn key(at: Timestamp, text: &str) -> Key {
    keys::invalid(at, hash64(&[text.as_bytes()]))
}

/// Whether this input was recorded as one that cannot be used.
///
/// # Errors
/// Of the ports.
pub async fn recorded(store: &impl Store, at: Timestamp, text: &str) -> Result<bool, PortError> {
    store.get(&key(at, text)).await.map(|item| item.is_some())
}

/// Records input that belongs to no subject.
///
/// # Errors
/// Of the ports.
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
