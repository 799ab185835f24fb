//! The keys of subscriptions and deliveries.

use super::message::Address;
use crate::item::Key;
use crate::keys::{MAIN, ms};
use crate::partition::{Kind, Partition};
use keelway_domain::ids::SubjectId;
use keelway_domain::time::Timestamp;

/// The partition of all subscriptions.
pub const SUBSCRIPTIONS: &str = "WS";

static DEFINED: Partition =
    Partition::new(SUBSCRIPTIONS, "", &[Kind::of("", "<namespace>/<name>", "webhook subscription").state()]);
static CHANGED: Partition = Partition::new("WC", "", &[Kind::main("how often webhook subscriptions have changed")]);
pub(super) static DELIVERIES: Partition =
    Partition::new("WD#", "<delivery>", &[Kind::main("delivery of a webhook").state(), Kind::records()]);
/// What webhooks keep.
pub static PARTITIONS: &[&Partition] = &[&DEFINED, &CHANGED, &DELIVERIES];

/// A subscription.
pub fn subscription(of: &Address) -> Key {
    Key::new(SUBSCRIPTIONS, of.to_string())
}

/// The subscription of a key.
pub fn address(key: &Key) -> Address {
    Address::parse(&key.sk)
}

/// Says when the subscriptions last changed: whoever knows them reads this one item to see whether that is still so.
pub fn changed() -> Key {
    Key::new(CHANGED.begins, MAIN)
}

/// A delivery. Its records are in the same partition.
pub fn delivery(id: SubjectId) -> Key {
    Key::new(DELIVERIES.named(id), MAIN)
}

/// Index partition: the deliveries of a namespace.
pub fn log(namespace: &str) -> String {
    format!("WL#{namespace}")
}

/// The place of a delivery in the log.
pub fn place(began: Timestamp, id: SubjectId) -> String {
    format!("{}#{id}", ms(began))
}
