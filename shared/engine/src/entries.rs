//! The entries that lead to a definition: from what it names to whom it concerns. They are written before the definition, and
//! deleted after the one that no longer names them. What is still to be deleted is noted at the definition, so whoever writes or
//! deletes it next completes what another one left undone.

use crate::item::{Attrs, Item, Key, MAX_ITEM_BYTES};
use crate::ports::{Condition, PortError, Ports, Write, Written};
use crate::table;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The attribute with the entries that are to be deleted.
pub(crate) const LEAVING: &str = "go";

/// The entries that are to be deleted when a definition that `keeps` some takes the place of the item `found`, which has `named`
/// some: those, and what the item had still to delete.
pub(crate) fn leaving(found: &Item, mut named: BTreeSet<Key>, keeps: &BTreeSet<Key>) -> Result<Vec<Key>, PortError> {
    let before: Vec<(String, String)> = crate::json::member(found, LEAVING)?;
    named.extend(before.into_iter().map(|(pk, sk)| Key::new(pk, sk)));
    Ok(named.difference(keeps).cloned().collect())
}

/// Notes the entries that are to be deleted. Without room for them they are left out: then they stay if they cannot be deleted at
/// once.
pub(crate) fn note(item: Item, gone: &[Key]) -> Item {
    let text = text(gone);
    let noted = !gone.is_empty() && item.size() + text.len() <= MAX_ITEM_BYTES - 1024;
    item.with_some(LEAVING, noted.then_some(text))
}

/// The condition that a definition is still as it was read, and that what it notes to be deleted is still to be deleted: whoever
/// has written some of that again must not commit after the deletion.
pub(crate) fn as_read(found: Option<&Item>) -> Condition {
    let Some(found) = found else { return Condition::Absent };
    let (mut equal, mut absent) = (Attrs::new(), vec![]);
    match found.version() {
        // Written before its kind had versions.
        0 => absent.push("v".into()),
        version => drop(equal.insert("v".into(), version.into())),
    }
    match found.text(LEAVING) {
        None => absent.push(LEAVING.into()),
        Some(leaving) => drop(equal.insert(LEAVING.into(), leaving.into())),
    }
    Condition::Match { equal, absent }
}

/// The write that notes at a definition that entries are to be deleted. What it says stays, and so does its version.
pub(crate) fn noted(found: &Item, gone: &[Key]) -> Write {
    let set = Attrs::from([(LEAVING.into(), text(gone).into())]);
    Write::Update { key: found.key.clone(), condition: as_read(Some(found)), set, remove: vec![], raise: false }
}

fn text(gone: &[Key]) -> String {
    let named: Vec<(&str, &str)> = gone.iter().map(|key| (key.pk.as_str(), key.sk.as_str())).collect();
    serde_json::to_string(&named).unwrap_or_default()
}

/// Deletes entries, and what a definition of this version noted about them. `false`: the definition has changed, so its entries may
/// have, too.
///
/// # Errors
/// Of the ports.
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
