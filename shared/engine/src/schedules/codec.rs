//! The stored form of schedules.

use super::keys;
use crate::item::{Attrs, Item};
use crate::json::{json, member, stored};
use crate::keys::{hash, record_id, record_sort};
use crate::ports::PortError;
use keelway_domain::ids::SubjectId;
use keelway_domain::names::ProjectName;
use keelway_domain::schedules::Schedule;
use keelway_domain::stored::Stored;
use keelway_domain::time::Timestamp;

/// The newest format of a schedule that this code knows.
pub const FORMAT: i64 = 1;

/// The attributes of a schedule. `expires`: when a deleted one is removed.
pub fn attributes(x: &Schedule, expires: Timestamp) -> Attrs {
    Item::new(keys::schedule(&x.project, &x.name))
        .with("pj", x.project.as_str())
        .with("na", x.name.as_str())
        .with("be", x.began.0)
        .with("sp", x.spec.to_json())
        .with("src", x.source.as_str())
        .with("at", x.applied.0)
        .with_some("pd", x.planned.then_some(true))
        .with_some("nx", x.next.map(|next| next.0))
        .with_some("wb", x.next.map(|_| hash(x.armed_by)))
        .with_some("rn", (!x.runs.is_empty()).then(|| json(&x.runs)))
        .with_some("la", x.last.as_ref().map(json))
        .with_some("re", x.record.map(|id| record_sort(&id)))
        .with_some("de", x.deleted.then_some(true))
        .with_some("ttl", x.deleted.then_some(expires.0 / 1000))
        .attrs
}

/// Reads a schedule.
///
/// # Errors
/// [`PortError::Refused`] for an item that cannot be read.
pub fn schedule(item: &Item) -> Result<Schedule, PortError> {
    let broken = |what: &str| PortError::Refused { request: "decode", reason: format!("item {} has no usable {what}", item.key) };
    let text = |name: &str| item.text(name).map(str::to_owned);
    let time = |name: &str| item.number(name).map(Timestamp);
    Ok(Schedule {
        project: text("pj").and_then(|name| ProjectName::new(name).ok()).ok_or_else(|| broken("project"))?,
        name: text("na").ok_or_else(|| broken("name"))?,
        began: time("be").unwrap_or_default(),
        spec: stored(item, "sp")?.ok_or_else(|| broken("spec"))?,
        source: text("src").unwrap_or_default(),
        applied: time("at").unwrap_or_default(),
        planned: item.flag("pd"),
        next: time("nx"),
        armed_by: item.text("wb").and_then(SubjectId::parse).map_or(0, |id| id.0),
        runs: member(item, "rn")?,
        last: member(item, "la")?,
        record: item.text("re").and_then(record_id),
        deleted: item.flag("de"),
    })
}
