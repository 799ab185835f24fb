//! Contexts as items.

use super::{FORMAT, stored};
use crate::item::{Attr, Attrs, Item, Key, Name};
use crate::ports::{Condition, Write};
use crate::sequences::keys;
use keelway_domain::names::{Context, ProjectName, ServiceName};
use keelway_domain::sequences::Flags;
use keelway_domain::time::Timestamp;
use std::collections::BTreeMap;

/// A context and the version of its item; version 0: there is none yet.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LoadedContext {
    /// The desired state.
    pub flags: Flags,
    /// The item's version.
    pub version: i64,
    /// When it expires.
    pub expires: Option<Timestamp>,
    /// How many executions it has had, without those that were refused.
    pub executions: u32,
}

/// Reads a context; an absent one has no flags set.
pub fn context(item: Option<&Item>) -> LoadedContext {
    let Some(item) = item else { return LoadedContext::default() };
    let small = |name: &str| item.number(name).and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
    let stages: BTreeMap<String, u32> = stored(item, "es").unwrap_or_default();
    let paused: Vec<String> = stored(item, "ps").unwrap_or_default();
    let flags = Flags {
        epoch: small("ep"),
        aborted: small("ea"),
        aborted_stages: stages,
        paused: item.flag("pa"),
        paused_stages: paused.into_iter().collect(),
        overrides: stored(item, "ov").unwrap_or_default(),
    };
    let expires = item.number("ttl").map(|ttl| Timestamp(ttl * 1000));
    LoadedContext { flags, version: item.version(), expires, executions: small("n") }
}

/// The item of a new context, with what the list of sequences shows.
pub fn new_context(project: &ProjectName, context: &Context, sequence: &str, service: &ServiceName, at: Timestamp) -> Item {
    Item::new(keys::context(project, context))
        .with("v", 1i64)
        .with("f", FORMAT)
        .with("sq", sequence)
        .with("sv", service.as_str())
        .with("at", at.0)
        .with("gp2", keys::contexts(project))
        .with("gs2", keys::by_age(at, context))
}

/// The item of a new context in which nothing ever begins.
pub fn closed_context(item: Item) -> Item {
    item.with("ea", i64::from(Flags::ALL))
}

/// The write that counts executions of a context, on condition that its flags are still those that were read. It leaves the version
/// as it is, so executions that begin at the same moment do not hinder each other.
pub fn count_executions(key: Key, old: &LoadedContext, more: usize) -> Write {
    let by = i64::try_from(more).unwrap_or(i64::MAX);
    Write::Add { key, condition: Condition::Version(old.version), name: Name::Borrowed("n"), by }
}

/// The write that postpones the expiry of a context and counts `more` executions. Counting does not raise the version, so the count
/// that was read is part of the condition.
pub fn prolong_context(key: Key, old: &LoadedContext, more: u32, expires: Timestamp) -> Write {
    let number = |(name, n): (&'static str, i64)| (Name::Borrowed(name), Attr::N(n));
    let counted = old.executions > 0;
    let equal = [("v", old.version)].into_iter().chain(counted.then_some(("n", i64::from(old.executions)))).map(number).collect();
    let absent = if counted { vec![] } else { vec![Name::Borrowed("n")] };
    let executions = i64::from(old.executions + more);
    let set = [("v", old.version + 1), ("ttl", expires.0 / 1000), ("n", executions)].map(number).into();
    Write::Update { key, condition: Condition::Match { equal, absent }, set, remove: vec![], raise: false }
}

/// The write that changes a context's flags.
pub fn update_context(key: Key, old: &LoadedContext, flags: &Flags) -> Write {
    let mut set = Attrs::new();
    let mut remove = vec![];
    let mut put = |name: &'static str, value: Option<Attr>| match value {
        Some(value) => drop(set.insert(Name::Borrowed(name), value)),
        None => remove.push(Name::Borrowed(name)),
    };
    put("v", Some(Attr::N(old.version + 1)));
    put("ep", Some(Attr::N(i64::from(flags.epoch))));
    put("ea", (flags.aborted > 0).then(|| Attr::N(i64::from(flags.aborted))));
    put("es", (!flags.aborted_stages.is_empty()).then(|| Attr::S(serde_json::json!(flags.aborted_stages).to_string())));
    put("pa", flags.paused.then_some(Attr::Flag(true)));
    put("ps", (!flags.paused_stages.is_empty()).then(|| Attr::S(serde_json::json!(flags.paused_stages).to_string())));
    put("ov", (!flags.overrides.is_empty()).then(|| Attr::S(serde_json::json!(flags.overrides).to_string())));
    Write::Update { key, condition: Condition::Version(old.version), set, remove, raise: false }
}
