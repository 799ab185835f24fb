//! Entries: they lead from a name that a definition contains to the subject of the definition. Entries are written before the
//! definition that needs them, and deleted after the definition that no longer needs them. The definition notes which entries are
//! still to be deleted, so that its next writer completes an interrupted deletion.

use crate::item::{Attrs, Item, Key, MAX_ITEM_BYTES};
use crate::ports::{Condition, PortError, Ports, Write, Written};
use crate::table;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The attribute with the entries that are still to be deleted.
pub(crate) const LEAVING: &str = "go";

/// The entries to delete when a new definition, which `keeps` some entries, replaces the item `found`, whose definition `named`
/// some: the difference, and those that the item notes as still to be deleted.
pub(crate) fn leaving(found: &Item, mut named: BTreeSet<Key>, keeps: &BTreeSet<Key>) -> Result<Vec<Key>, PortError> {
    let before: Vec<(String, String)> = crate::json::member(found, LEAVING)?;
    named.extend(before.into_iter().map(|(pk, sk)| Key::new(pk, sk)));
    Ok(named.difference(keeps).cloned().collect())
}

/// Notes the entries that are still to be deleted. If the item has no room for the note, entries stay for ever if their deletion is
/// interrupted.
pub(crate) fn note(item: Item, gone: &[Key]) -> Item {
    let text = text(gone);
    let noted = !gone.is_empty() && item.size() + text.len() <= MAX_ITEM_BYTES - 1024;
    item.with_some(LEAVING, noted.then_some(text))
}

/// The condition that neither a definition nor its note of entries to delete has changed since the read. A writer that has just
/// written some of these entries again must not commit after their deletion.
pub(crate) fn as_read(found: Option<&Item>) -> Condition {
    let Some(found) = found else { return Condition::Absent };
    let (mut equal, mut absent) = (Attrs::new(), vec![]);
    match found.version() {
        // Written by a version of Keelway that did not count versions of this kind.
        0 => absent.push("v".into()),
        version => drop(equal.insert("v".into(), version.into())),
    }
    match found.text(LEAVING) {
        None => absent.push(LEAVING.into()),
        Some(leaving) => drop(equal.insert(LEAVING.into(), leaving.into())),
    }
    Condition::Match { equal, absent }
}

/// The write that notes entries to delete at a definition. The definition and its version do not change.
pub(crate) fn noted(found: &Item, gone: &[Key]) -> Write {
    let set = Attrs::from([(LEAVING.into(), text(gone).into())]);
    Write::Update { key: found.key.clone(), condition: as_read(Some(found)), set, remove: vec![], raise: false }
}

fn text(gone: &[Key]) -> String {
    let named: Vec<(&str, &str)> = gone.iter().map(|key| (key.pk.as_str(), key.sk.as_str())).collect();
    serde_json::to_string(&named).unwrap_or_default()
}

/// Deletes entries, and the note of them at the definition with this version. `false`: the definition has changed, so its entries
/// may have changed, too.
///
/// # Errors
/// A port fails.
pub(crate) async fn delete(ports: &impl Ports, definition: Key, version: i64, gone: &[Key]) -> Result<bool, PortError> {
    if gone.is_empty() {
        return Ok(true);
    }
    table::record(ports, vec![], gone.to_vec()).await?;
    let done = Write::Update {
        key: definition,
        condition: Condition::Version(version),
        set: Attrs::new(),
        remove: vec![Cow::Borrowed(LEAVING)],
        raise: false,
    };
    Ok(ports.write(&done).await? == Written::Done)
}
