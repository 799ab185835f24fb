//! The stored form of pipelines. Parts that commits rarely change together are separate attributes, because a commit writes only
//! the attributes that differ.

use super::keys;
use crate::item::{Attrs, Item, Key};
use crate::json::{json, member};
use crate::keys::{record_id, record_sort};
use crate::ports::PortError;
use keelway_domain::ids::SubjectId;
use keelway_domain::promotions::{Obeyed, Pipeline};
use keelway_domain::stored::Stored;
use keelway_domain::time::Timestamp;

/// The newest format of a pipeline that this code knows.
pub const FORMAT: i64 = 1;

/// The attributes of a pipeline. `expires`: when a deleted one is removed.
pub fn attributes(x: &Pipeline, key: Key, expires: Timestamp) -> Attrs {
    let some = |text: String, empty: bool| (!empty).then_some(text);
    Item::new(key)
        .with("ns", x.namespace.as_str())
        .with("na", x.name.as_str())
        .with("be", x.began.0)
        .with_some("ru", x.run.as_ref().map(json))
        .with_some("pr", i64::try_from(x.past_runs).ok().filter(|runs| *runs > 0))
        .with_some("en", some(json(&x.environments), x.environments.is_empty()))
        .with_some("su", x.suspended.as_ref().map(json))
        .with_some("ab", some(json(&x.abandoned), x.abandoned.is_empty()))
        .with_some("ob", some(json(&x.obeyed), x.obeyed.is_empty()))
        .with_some("co", some(json(&x.condition), x.condition.reason.is_empty()))
        .with_some("dl", x.deleted.then_some(1i64))
        .with_some("wk", x.wake.map(|wake| wake.0))
        .with_some("wb", x.wake.map(|_| crate::keys::hash(x.armed_by)))
        .with_some("re", x.record.map(|id| record_sort(&id)))
        .with_some("ttl", x.over().then_some(expires.0 / 1000))
        .attrs
}

/// Reads a pipeline.
///
/// # Errors
/// [`PortError::Refused`] for an item that cannot be read.
pub fn pipeline(item: &Item) -> Result<Pipeline, PortError> {
    let text = |name: &'static str| {
        let reason = || format!("{}: attribute {name} is missing", item.key);
        item.text(name).map(str::to_owned).ok_or_else(|| PortError::Refused { request: "decode", reason: reason() })
    };
    Ok(Pipeline {
        namespace: text("ns")?,
        name: text("na")?,
        began: Timestamp(item.number("be").unwrap_or_default()),
        run: member(item, "ru")?,
        past_runs: item.number("pr").and_then(|runs| u64::try_from(runs).ok()).unwrap_or_default(),
        environments: member(item, "en")?,
        suspended: member(item, "su")?,
        abandoned: member(item, "ab")?,
        obeyed: member(item, "ob")?,
        condition: member(item, "co")?,
        deleted: item.number("dl").is_some(),
        wake: item.number("wk").map(Timestamp),
        armed_by: item.text("wb").and_then(SubjectId::parse).map_or(0, |id| id.0),
        record: item.text("re").and_then(record_id),
    })
}

/// The item of a command in the history. Its attribute has another name than that of a promotion, so that older code, which only
/// knows promotions, skips it.
pub fn obeyed(of: &super::Address, obeyed: &Obeyed, expires: Timestamp) -> Item {
    Item::new(Key::new(keys::pipeline_partition(of), keys::command(obeyed)))
        .with("c", obeyed.to_json())
        .with("ttl", expires.0 / 1000)
}

/// The item of a promotion that has become history.
pub fn past(of: &super::Address, past: &keelway_domain::promotions::Past, expires: Timestamp) -> Item {
    Item::new(Key::new(keys::pipeline_partition(of), keys::history(past))).with("j", past.to_json()).with("ttl", expires.0 / 1000)
}
