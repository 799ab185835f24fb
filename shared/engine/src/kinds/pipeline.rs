//! Pipelines. Each target leads to the pipelines that name it, and a cluster leads to its targets.

use crate::item::{Item, Key};
use crate::ports::{PortError, Ports};
use crate::promotions::message::Message;
use crate::promotions::{keys, observations, observer};
use crate::protocol::create;
use crate::protocol::declare::{Kind, Shelf};
use crate::protocol::fact;
use crate::table;
use keelway_domain::address::Address;
use keelway_domain::promotions::Pipeline;
use keelway_domain::promotions::definition::{Definition, Target};
use keelway_domain::time::Timestamp;
use std::collections::BTreeSet;

/// The pipelines.
#[derive(Debug, Clone, Copy)]
pub struct Pipelines;

impl Kind for Pipelines {
    const KIND: &'static str = "Pipeline";
    type Spec = Definition;

    fn shelf(&self, namespace: &str) -> Shelf {
        Shelf { partition: keys::definitions(namespace), prefix: String::new(), namespaces: Some(keys::NAMESPACES) }
    }

    /// The entries at each target, and those at the clusters of the targets.
    fn entries(&self, at: &Address, spec: &Definition) -> Vec<Item> {
        let targets: BTreeSet<&Target> = spec.targets().collect();
        let entry = |target: &&Target| fact::entry(Item::new(keys::depends(&spec.app, target, at)), at);
        let named = targets.iter().filter_map(|target| observer::entry(&spec.app, target, at));
        targets.iter().map(entry).chain(named).collect()
    }

    /// Keeps earlier observations of its targets from expiring, and lists the namespace.
    async fn before(&self, ports: &impl Ports, at: &Address, spec: &Definition, expires: Timestamp) -> Result<(), PortError> {
        let targets: BTreeSet<&Target> = spec.targets().collect();
        let wanted: Vec<Key> = targets.iter().map(|target| keys::observation(&spec.app, target)).collect();
        for item in table::read(ports, &wanted).await?.values().filter(|item| observations::unasked(item)) {
            // If the fact has changed in between, the newer one has found the entry, and does not expire.
            drop(ports.write(&observations::keep(item)).await?);
        }
        let state = Pipeline::new(&at.namespace, &at.name, ports.now());
        ports.write(&create(&state, expires)).await.map(drop)
    }

    async fn after(&self, ports: &impl Ports, at: &Address, version: i64) -> Result<(), PortError> {
        let because = format!("definition {version}");
        table::send_all(ports, &[Message::Evaluate { to: at.clone(), because }.letter()]).await
    }
}
