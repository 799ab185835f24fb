//! An engine as the tests know it: stories, cases, the world and the simulation take any engine through this.

use crate::played::Played;
use keelway_engine::item::Key;

/// What the tests need of an engine besides the engine.
pub trait Tested: Played + Sized + 'static {
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
