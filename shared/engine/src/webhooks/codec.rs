//! The stored form of deliveries.

use super::keys;
use crate::item::{Attrs, Item};
use crate::json::{json, member};
use crate::keys::{record_id, record_sort};
use crate::ports::PortError;
use keelway_domain::ids::SubjectId;
use keelway_domain::time::Timestamp;
use keelway_domain::webhooks::Delivery;

/// The newest format of a delivery that this code knows.
pub const FORMAT: i64 = 1;

/// The attributes of a delivery. `expires`: when one that has ended is removed.
pub fn attributes(x: &Delivery, expires: Timestamp) -> Attrs {
    Item::new(keys::delivery(x.id))
        .with("ns", x.of.0.as_str())
        .with("na", x.of.1.as_str())
        .with("ev", x.event.to_string())
        .with_some("ag", x.again.as_deref())
        .with("be", x.began.0)
        .with_some("ex", (x.executor != Default::default()).then(|| json(&x.executor)))
        .with_some("tr", (!x.attempts.is_empty()).then(|| json(&x.attempts)))
        .with_some("du", x.due.map(|due| due.0))
        .with_some("en", x.end.as_ref().map(json))
        .with_some("he", x.health.as_ref().map(json))
        .with_some("si", x.since.map(|since| since.0))
        .with_some("re", x.record.map(|id| record_sort(&id)))
        .with("gp1", keys::log(&x.of.0))
        .with("gs1", keys::place(x.began, x.id))
        .with_some("ttl", x.end.map(|_| expires.0 / 1000))
        .attrs
}

/// Reads a delivery.
///
/// # Errors
/// [`PortError::Refused`] for an item that cannot be read.
pub fn delivery(item: &Item) -> Result<Delivery, PortError> {
    let broken = |what: &str| PortError::Refused { request: "decode", reason: format!("{}: {what}", item.key) };
    let text = |name: &str| item.text(name).map(str::to_owned).ok_or_else(|| broken(&format!("attribute {name} is missing")));
    let id = item.key.pk.strip_prefix(keys::DELIVERIES.begins).and_then(SubjectId::parse).ok_or_else(|| broken("no delivery"))?;
    Ok(Delivery {
        id,
        of: (text("ns")?, text("na")?),
        event: serde_json::from_str(&text("ev")?).map_err(|error| broken(&format!("attribute ev: {error}")))?,
        again: item.text("ag").map(str::to_owned),
        began: Timestamp(item.number("be").unwrap_or_default()),
        executor: member(item, "ex")?,
        attempts: member(item, "tr")?,
        due: item.number("du").map(Timestamp),
        end: member(item, "en")?,
        health: member(item, "he")?,
        since: item.number("si").map(Timestamp),
        record: item.text("re").and_then(record_id),
    })
}
