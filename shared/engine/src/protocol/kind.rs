//! The differences between kinds of definitions.

use crate::item::{Attrs, Item, Key};
use crate::ports::{PortError, Ports, Write};
use keelway_domain::address::Address;
use keelway_domain::stored::Stored;
use keelway_domain::time::Timestamp;
use std::future::Future;

/// A kind of definition. [`super::declare::Declarations`] does everything else.
pub trait Kind: Sync {
    /// The name in manifests.
    const KIND: &'static str;
    /// The newest format of its items that this code knows.
    const FORMAT: i64 = 1;
    /// The number of bytes that an item must keep free for later notes.
    const ROOM: usize = 1024;
    /// The content of a definition.
    type Spec: Clone + PartialEq + Stored + Send + Sync;

    /// The place of the definitions of a namespace.
    fn shelf(&self, namespace: &str) -> Shelf;
    /// The entries that lead to a definition.
    fn entries(&self, _at: &Address, _spec: &Self::Spec) -> Vec<Item> {
        vec![]
    }
    /// Additional attributes of a new definition. Applying it again does not change them.
    fn beside(&self, _now: Timestamp) -> Attrs {
        Attrs::new()
    }
    /// Writes, besides the entries, what must exist before the definition is in force. `expires`: when it may be removed if nothing
    /// needs it.
    fn before(
        &self,
        _ports: &impl Ports,
        _at: &Address,
        _spec: &Self::Spec,
        _expires: Timestamp,
    ) -> impl Future<Output = Result<(), PortError>> + Send {
        async { Ok(()) }
    }
    /// An additional write in the transaction that adds (1) or removes (-1) a definition. `Full`: the limit is reached.
    fn along(
        &self,
        _ports: &impl Ports,
        _more: i64,
    ) -> impl Future<Output = Result<Result<Option<Write>, Full>, PortError>> + Send {
        async { Ok(Ok(None)) }
    }
    /// Tells the subjects concerned about the change.
    fn after(&self, _ports: &impl Ports, _at: &Address, _version: i64) -> impl Future<Output = Result<(), PortError>> + Send {
        async { Ok(()) }
    }
}

/// The limit on the number of definitions of a kind is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

/// The place of definitions: a partition, and a prefix of sort keys that end with the names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shelf {
    /// The partition.
    pub partition: String,
    /// The prefix of the sort keys: empty, or `<namespace>/` in a partition that all namespaces share.
    pub prefix: String,
    /// The partition that lists the namespaces. `None`: all namespaces share one partition.
    pub namespaces: Option<&'static str>,
}

impl Shelf {
    /// The key of one of them.
    pub fn key(&self, name: &str) -> Key {
        Key::new(self.partition.clone(), format!("{}{name}", self.prefix))
    }
}
