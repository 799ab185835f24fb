//! An engine as the tests know it: stories, cases, the world and the simulation take any engine through this.

use crate::bus::{rule_takes, webhooks_rule_takes};
use keelway_engine::item::Key;
use keelway_engine::ports::Ports;
use keelway_engine::protocol::Inbox;
use keelway_engine::register;
use keelway_engine::schedules;
use keelway_engine::sequences::{self, Sequences};
use keelway_engine::webhooks::{self, Sender, Webhooks};

/// What the tests need of an engine besides the engine.
pub trait Tested: Inbox + Sized + 'static {
    /// The same, with what another one remembers, as if it had handled what that one has.
    fn remembering(self, _other: &Self) -> Self {
        self
    }
    /// Whether both remember the same.
    fn remembers_what(&self, _other: &Self) -> bool {
        true
    }
    /// Whether the rule that feeds its queue takes an event from the bus.
    fn takes(source: &str, detail_type: &str) -> bool;
    /// Whether an item is state: it must be the same however often messages are handled. History and what expires is not.
    fn is_state(key: &Key) -> bool;
}

impl<P: Ports + 'static> Tested for Sequences<P> {
    fn remembering(self, other: &Self) -> Self {
        Self::remembering(self, other)
    }
    fn remembers_what(&self, other: &Self) -> bool {
        Self::remembers_what(self, other)
    }
    fn takes(source: &str, detail_type: &str) -> bool {
        rule_takes(source, detail_type)
    }
    fn is_state(key: &Key) -> bool {
        [sequences::keys::PARTITIONS, schedules::keys::PARTITIONS].iter().any(|kept| register::is_state(kept, key))
    }
}

impl<P: Ports + Clone + 'static, S: Sender + 'static> Tested for Webhooks<P, S> {
    fn remembering(self, other: &Self) -> Self {
        Self::remembering(self, other)
    }
    fn remembers_what(&self, other: &Self) -> bool {
        Self::remembers_what(self, other)
    }
    fn takes(_: &str, detail_type: &str) -> bool {
        webhooks_rule_takes(detail_type)
    }
    /// Deliveries and subscriptions.
    fn is_state(key: &Key) -> bool {
        register::is_state(webhooks::keys::PARTITIONS, key)
    }
}
