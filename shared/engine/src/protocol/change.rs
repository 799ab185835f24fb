//! One item that many may write: read it, decide, write it if nobody else did meanwhile, else once more. Whatever is no
//! [`super::Subject`] changes this way.

use super::run::{COMMIT_TRIES, contended};
use crate::item::{Attrs, Item, Key};
use crate::ports::{Condition, PortError, Ports, Write, Written};

/// What becomes of an item, and what is told of it.
#[derive(Debug)]
pub enum Step<T> {
    /// It is written. The write has the condition that the item is as it was read: [`as_read`].
    Write(Write, T),
    /// It stays as it is.
    Leave(T),
}

/// Changes an item: `step` says what becomes of it as it is now, and is asked again if another writer was faster.
///
/// # Errors
/// Of the ports and of `step`; [`PortError::Contended`] when other writers keep changing the item.
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
        // Written before its kind had versions.
        Some(0) => Condition::Match { equal: Attrs::new(), absent: vec!["v".into()] },
        Some(version) => Condition::Version(version),
    }
}

/// The version that the next write gives an item.
pub fn next_version(found: Option<&Item>) -> i64 {
    found.map_or(0, Item::version) + 1
}
