//! The entries that lead to a definition: from what it names to whom it concerns. They are written before the definition, and deleted
//! after the one that no longer names them. What is still to be deleted is noted at the definition, so whoever writes or deletes it next
//! completes what another one left undone.

use crate::item::{Attrs, Item, Key, MAX_ITEM_BYTES};
use crate::ports::{Condition, PortError, Ports, Write};
use crate::table;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The attribute with the entries that are to be deleted.
const LEAVING: &str = "go";

/// The entries that are to be deleted when a definition that `keeps` some takes the place of the item `found`, which has `named`
/// some: those, and what the item had still to delete.
pub(crate) fn leaving(found: &Item, mut named: BTreeSet<Key>, keeps: &BTreeSet<Key>) -> Result<Vec<Key>, PortError> {
    let before: Vec<(String, String)> = crate::json::member(found, LEAVING)?;
    named.extend(before.into_iter().map(|(pk, sk)| Key::new(pk, sk)));
    Ok(named.difference(keeps).cloned().collect())
}

/// Notes the entries that are to be deleted. Without room for them they are left out: then they stay if they cannot be deleted at once.
pub(crate) fn note(item: Item, gone: &[Key]) -> Item {
    let named: Vec<(&str, &str)> = gone.iter().map(|key| (key.pk.as_str(), key.sk.as_str())).collect();
    let text = serde_json::to_string(&named).unwrap_or_default();
    let noted = !gone.is_empty() && item.size() + text.len() <= MAX_ITEM_BYTES - 1024;
    item.with_some(LEAVING, noted.then_some(text))
}

/// Deletes entries, and what a definition of this version noted about them.
///
/// # Errors
/// Of the ports.
pub(crate) async fn delete(ports: &impl Ports, definition: Key, version: i64, gone: Vec<Key>) -> Result<(), PortError> {
    if gone.is_empty() {
        return Ok(());
    }
    table::record(ports, vec![], gone).await?;
    let done = Write::Update {
        key: definition,
        condition: Condition::Version(version),
        set: Attrs::new(),
        remove: vec![Cow::Borrowed(LEAVING)],
        raise: false,
    };
    // If it changed in between, the newer one has noted them as well.
    drop(ports.write(&done).await?);
    Ok(())
}
