//! The stored form of configs and versions. Parts that commits rarely change together are separate attributes, because a commit
//! writes only the attributes that differ, and a heartbeat changes little.

use super::keys;
use super::message::Address;
use crate::item::{Attrs, Item, Key};
use crate::json::{json, member, stored};
use crate::keys::{hash, record_id, record_sort};
use crate::ports::PortError;
use keelway_domain::deployments::{Config, Obeyed, Past, Snapshot, Status, Watch};
use keelway_domain::ids::{SubjectId, hash64};
use keelway_domain::level::Level as _;
use keelway_domain::stored::Stored;
use keelway_domain::time::Timestamp;

/// The newest format of a config that this code knows.
pub const FORMAT: i64 = 1;

/// The attributes of a config.
pub fn attributes(x: &Config, key: Key) -> Attrs {
    let offered = x.in_flight().filter(|d| d.status == Status::New && d.cancel.is_none());
    let unclaimed = offered.map(|d| keys::unclaimed(&x.address(), d.since));
    let some = |text: String, empty: bool| (!empty).then_some(text);
    let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    Item::new(key)
        .with("ns", x.namespace.as_str())
        .with("na", x.name.as_str())
        .with("be", x.began.0)
        .with("ov", x.observed)
        .with("ln", number(x.latest))
        .with("on", number(x.oldest))
        .with_some("la", x.last.as_ref().map(Stored::to_json))
        .with_some("pe", x.pending.as_ref().map(Stored::to_json))
        .with_some("ac", x.active.as_ref().map(json))
        .with_some("pr", x.previous.as_ref().map(json))
        .with_some("pa", x.paused.as_ref().map(json))
        .with_some("sp", x.spec_paused.then_some(1i64))
        .with_some("su", x.suspended.as_ref().map(json))
        .with_some("pi", some(json(&x.pins), x.pins.is_empty()))
        .with_some("se", x.settling.as_ref().map(json))
        .with_some("dr", (x.watch != Watch::default()).then(|| json(&x.watch)))
        .with_some("di", x.dismissed.as_ref().map(json))
        .with_some("al", some(json(&x.alarms), x.alarms.is_empty()))
        .with_some("ob", some(json(&x.obeyed), x.obeyed.is_empty()))
        .with_some("co", some(json(&x.condition), x.condition.reason.is_empty()))
        .with_some("dl", x.deleted.then_some(1i64))
        .with_some("wk", x.wake.map(|wake| wake.0))
        .with_some("wb", x.wake.map(|_| hash(x.armed_by)))
        .with_some("re", x.record.map(|id| record_sort(&id)))
        .with_some("gp1", unclaimed.as_ref().map(|_| keys::UNCLAIMED))
        .with_some("gs1", unclaimed)
        .attrs
}

/// Reads a config.
///
/// # Errors
/// [`PortError::Refused`] for an item that cannot be read.
pub fn config(item: &Item) -> Result<Config, PortError> {
    let text = |name: &'static str| {
        let reason = || format!("{}: attribute {name} is missing", item.key);
        item.text(name).map(str::to_owned).ok_or_else(|| PortError::Refused { request: "decode", reason: reason() })
    };
    let number = |name: &str| item.number(name).and_then(|n| u64::try_from(n).ok()).unwrap_or_default();
    Ok(Config {
        namespace: text("ns")?,
        name: text("na")?,
        began: Timestamp(item.number("be").unwrap_or_default()),
        observed: item.number("ov").unwrap_or_default(),
        latest: number("ln"),
        oldest: number("on").max(1),
        last: stored(item, "la")?,
        pending: stored(item, "pe")?,
        active: member(item, "ac")?,
        previous: member(item, "pr")?,
        paused: member(item, "pa")?,
        spec_paused: item.number("sp").is_some(),
        suspended: member(item, "su")?,
        pins: member(item, "pi")?,
        watch: member(item, "dr")?,
        settling: member(item, "se")?,
        dismissed: member(item, "di")?,
        alarms: member(item, "al")?,
        obeyed: member(item, "ob")?,
        condition: member(item, "co")?,
        deleted: item.number("dl").is_some(),
        wake: item.number("wk").map(Timestamp),
        armed_by: item.text("wb").and_then(SubjectId::parse).map_or(0, |id| id.0),
        record: item.text("re").and_then(record_id),
    })
}

/// The item of a snapshot.
pub fn snapshot(of: &Address, snapshot: &Snapshot) -> Item {
    Item::new(keys::snapshot(of, snapshot.n, snapshot.hash())).with("j", snapshot.to_json())
}

/// The item of an attempt that has ended. The index finds it by its time.
pub fn past(of: &Address, past: &Past) -> Item {
    let d = &past.deployment;
    Item::new(keys::past(of, d.n, d.attempt))
        .with("j", past.to_json())
        .with("gp2", keys::day(past.at))
        .with("gs2", keys::ended(past.at, of, d.n, d.attempt))
}

/// The item of a command that was obeyed.
pub fn obeyed(of: &Address, obeyed: &Obeyed, expires: Timestamp) -> Item {
    Item::new(keys::obeyed(of, obeyed)).with("j", obeyed.to_json()).with("ttl", expires.0 / 1000)
}

/// The item of a drift that was seen, in the audit.
pub fn drifted(of: &Address, said: &str, at: Timestamp, expires: Timestamp) -> Item {
    let content = hash64(&[b"drifted", said.as_bytes()]);
    Item::new(keys::audit(of, at, content)).with("dr", json(&said)).with("ttl", expires.0 / 1000)
}
