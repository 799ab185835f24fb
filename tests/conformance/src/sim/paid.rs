//! What a subject owed was performed.

use keelway_engine::item::{Item, Name};

/// Whether one thing alone has changed of a subject: the note of what it owed is removed, and, if it is over, its place in the
/// sweep. That raises no version.
pub fn paid(old: &Item, new: &Item) -> bool {
    let differs = |name: &Name| old.attrs.get(name) != new.attrs.get(name);
    let mut changed = old.attrs.keys().chain(new.attrs.keys()).filter(|name| differs(name));
    old.attrs.contains_key("ow") && changed.all(|name| ["ow", "gp2", "gs2"].contains(&name.as_ref()))
}
