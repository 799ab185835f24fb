//! Changes one item that has several writers: read it, decide, write it on condition that it has not changed, and repeat this after
//! a conflict. All items that are not a [`super::Subject`] are changed in this way.

use super::run::{COMMIT_TRIES, contended};
use crate::item::{Attrs, Item, Key};
use crate::ports::{Condition, PortError, Ports, Write, Written};

/// The decision about an item, and the result for the caller.
#[derive(Debug)]
pub enum Step<T> {
    /// Write the item. The write must have the condition that the item is as it was read: [`as_read`].
    Write(Write, T),
    /// Leave the item unchanged.
    Leave(T),
}

/// Changes an item: `step` decides by its present state, and is called again if another writer was faster.
///
/// # Errors
/// A port or `step` fails; [`PortError::Contended`] if other writers keep changing the item.
pub async fn change<T: Send, E: From<PortError>>(
    ports: &impl Ports,
    key: &Key,
    step: impl Fn(Option<&Item>) -> Result<Step<T>, E> + Send,
) -> Result<T, E> {
    for _ in 0..COMMIT_TRIES {
        let found = ports.get(key).await?;
        match step(found.as_ref())? {
            Step::Leave(told) => return Ok(told),
            Step::Write(write, told) => {
                if ports.write(&write).await? == Written::Done {
                    return Ok(told);
                }
            }
        }
    }
    Err(contended(key).into())
}

/// The condition that an item is still as it was read.
pub fn as_read(found: Option<&Item>) -> Condition {
    match found.map(Item::version) {
        None => Condition::Absent,
        // Written by a version of Keelway that did not count versions of this kind.
        Some(0) => Condition::Match { equal: Attrs::new(), absent: vec!["v".into()] },
        Some(version) => Condition::Version(version),
    }
}

/// The version that the next write gives an item.
pub fn next_version(found: Option<&Item>) -> i64 {
    found.map_or(0, Item::version) + 1
}
