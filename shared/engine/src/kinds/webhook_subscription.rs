//! Webhook subscriptions. Their number is limited, and a counter of changes shows workers that their cache is outdated.

use super::shared;
use crate::item::Attrs;
use crate::ports::{PortError, Ports, Write};
use crate::protocol::declare::{Full, Kind, Shelf};
use crate::webhooks::keys;
use crate::webhooks::subscriptions::{self, BEGAN};
use keelway_domain::address::Address;
use keelway_domain::time::Timestamp;
use keelway_domain::webhooks::Subscription;

/// The webhook subscriptions.
#[derive(Debug, Clone, Copy)]
pub struct WebhookSubscriptions;

impl Kind for WebhookSubscriptions {
    const KIND: &'static str = "WebhookSubscription";
    const ROOM: usize = 2048;
    type Spec = Subscription;

    fn shelf(&self, namespace: &str) -> Shelf {
        shared(keys::SUBSCRIPTIONS, namespace)
    }

    fn beside(&self, now: Timestamp) -> Attrs {
        Attrs::from([(BEGAN, now.0.into())])
    }

    async fn along(&self, ports: &impl Ports, more: i64) -> Result<Result<Option<Write>, Full>, PortError> {
        subscriptions::counted(ports, more).await
    }

    async fn after(&self, ports: &impl Ports, _: &Address, _: i64) -> Result<(), PortError> {
        subscriptions::touch(ports).await
    }
}
