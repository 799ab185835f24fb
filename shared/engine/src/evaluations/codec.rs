//! The stored form of evaluations.

use super::keys;
use crate::item::{Attrs, Item};
use crate::json::{json, member};
use crate::keys::{record_id, record_sort};
use crate::ports::PortError;
use keelway_domain::evaluations::{Ended, Service};
use keelway_domain::stored::Stored;
use keelway_domain::time::Timestamp;

/// The newest format of a service's evaluations that this code knows.
pub const FORMAT: i64 = 1;

/// The attributes of a service's evaluations.
pub fn attributes(x: &Service) -> Attrs {
    let some = |text: String, empty: bool| (!empty).then_some(text);
    Item::new(keys::service(&x.place))
        .with("be", x.began.0)
        .with_some("op", some(json(&x.open), x.open.is_empty()))
        .with_some("pa", some(json(&x.past), x.past.is_empty()))
        .with_some("wk", x.wake.map(|wake| wake.0))
        .with_some("re", x.record.map(|id| record_sort(&id)))
        .attrs
}

/// Reads a service's evaluations.
///
/// # Errors
/// [`PortError::Refused`] for an item that cannot be read.
pub fn service(item: &Item) -> Result<Service, PortError> {
    let broken = || PortError::Refused { request: "decode", reason: format!("{} is no service", item.key) };
    Ok(Service {
        place: keys::place(&item.key).ok_or_else(broken)?,
        began: Timestamp(item.number("be").unwrap_or_default()),
        open: member(item, "op")?,
        past: member(item, "pa")?,
        wake: item.number("wk").map(Timestamp),
        record: item.text("re").and_then(record_id),
    })
}

/// The item of an evaluation that has ended.
pub fn ended(place: &[String; 3], ended: &Ended, expires: Timestamp) -> Item {
    Item::new(keys::ended(place, (&ended.id, &ended.content()))).with("j", ended.to_json()).with("ttl", expires.0 / 1000)
}

/// Reads an evaluation that has ended.
///
/// # Errors
/// [`PortError::Refused`] for an item that cannot be read.
pub fn read_ended(item: &Item) -> Result<Ended, PortError> {
    let broken = |what: String| PortError::Refused { request: "decode", reason: format!("{}: attribute j{what}", item.key) };
    let text = item.text("j").ok_or_else(|| broken(" is missing".into()))?;
    Ended::from_json(text).map_err(|error| broken(format!(": {error}")))
}
