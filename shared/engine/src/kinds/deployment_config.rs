//! Deployment configs. The tags that a config watches, and its alarms, lead to it.

use crate::deployments::keys;
use crate::deployments::message::Message;
use crate::item::Item;
use crate::ports::{PortError, Ports};
use crate::protocol::create;
use crate::protocol::declare::{Kind, Shelf};
use crate::protocol::fact;
use crate::table;
use keelway_domain::address::Address;
use keelway_domain::deployments::{Applied, Config};
use keelway_domain::time::Timestamp;

/// The deployment configs.
#[derive(Debug, Clone, Copy)]
pub struct DeploymentConfigs;

impl Kind for DeploymentConfigs {
    const KIND: &'static str = "DeploymentConfig";
    /// A snapshot contains the definition with its images, so it needs more room.
    const ROOM: usize = 16 * 1024;
    /// The definition with its author, and the version that it asks for.
    type Spec = Applied;

    fn shelf(&self, namespace: &str) -> Shelf {
        Shelf { partition: keys::definitions(namespace), prefix: String::new(), namespaces: Some(keys::NAMESPACES) }
    }

    fn entries(&self, at: &Address, spec: &Applied) -> Vec<Item> {
        let definition = &spec.definition;
        let tags = definition.watched().into_iter().map(|tag| keys::watches(tag, at));
        let alarms = definition.auto_rollback.iter().flat_map(|auto| &auto.alarms).map(|alarm| keys::alarmed(alarm, at));
        tags.chain(alarms).map(|key| fact::entry(Item::new(key), at)).collect()
    }

    async fn before(&self, ports: &impl Ports, at: &Address, _: &Applied, expires: Timestamp) -> Result<(), PortError> {
        let state = Config::new(&at.namespace, &at.name, ports.now());
        ports.write(&create(&state, expires)).await.map(drop)
    }

    async fn after(&self, ports: &impl Ports, at: &Address, version: i64) -> Result<(), PortError> {
        let because = format!("definition {version}");
        table::send_all(ports, &[Message::Evaluate { to: at.clone(), because }.letter()]).await
    }
}
