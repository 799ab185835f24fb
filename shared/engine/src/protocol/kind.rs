//! What tells one kind of definition from another.

use crate::item::{Attrs, Item, Key};
use crate::ports::{PortError, Ports, Write};
use keelway_domain::address::Address;
use keelway_domain::time::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::future::Future;

/// A kind of definition. Everything else about it follows: [`super::declare::Declarations`].
pub trait Kind: Sync {
    /// As manifests call it.
    const KIND: &'static str;
    /// The newest format of its items that this code knows.
    const FORMAT: i64 = 1;
    /// So many bytes of an item are kept free, for what is noted at it later.
    const ROOM: usize = 1024;
    /// What one says.
    type Spec: Clone + PartialEq + Serialize + DeserializeOwned + Send + Sync;

    /// Where those of a namespace lie.
    fn shelf(&self, namespace: &str) -> Shelf;
    /// The items that lead to one, from what it names.
    fn entries(&self, _at: &Address, _spec: &Self::Spec) -> Vec<Item> {
        vec![]
    }
    /// What a new one has beside what it says. Applying it again does not change that.
    fn beside(&self, _now: Timestamp) -> Attrs {
        Attrs::new()
    }
    /// What has to be there before it is in force, beside its entries. `expires`: when what is made now may go, if nobody needs it.
    fn before(
        &self,
        _ports: &impl Ports,
        _at: &Address,
        _spec: &Self::Spec,
        _expires: Timestamp,
    ) -> impl Future<Output = Result<(), PortError>> + Send {
        async { Ok(()) }
    }
    /// The write that happens with the one that makes one more (1) or one less (-1). An error tells that there may be no more.
    fn along(
        &self,
        _ports: &impl Ports,
        _more: i64,
    ) -> impl Future<Output = Result<Result<Option<Write>, Full>, PortError>> + Send {
        async { Ok(Ok(None)) }
    }
    /// Tells those whom it concerns that it has changed.
    fn after(&self, _ports: &impl Ports, _at: &Address, _version: i64) -> impl Future<Output = Result<(), PortError>> + Send {
        async { Ok(()) }
    }
}

/// There may be no more of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

/// Where definitions lie: in a partition, under sort keys that begin alike and end with their names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shelf {
    /// The partition.
    pub partition: String,
    /// How their sort keys begin: empty, or `<namespace>/` in a partition that all namespaces share.
    pub prefix: String,
    /// The partition that lists the namespaces; none for those that share one.
    pub namespaces: Option<&'static str>,
}

impl Shelf {
    /// The key of one of them.
    pub fn key(&self, name: &str) -> Key {
        Key::new(self.partition.clone(), format!("{}{name}", self.prefix))
    }
}
