//! History expires while executions are open: what they need must stay.

use super::Shipyards;
use super::check::decode;
use crate::sim::Sim;
use keelway_domain::time::Span;
use keelway_engine::item::{Item, Key};
use keelway_engine::sequences::{Address, keys};
use std::sync::Arc;

/// How long history is kept in seeds in which it expires.
pub(super) const RETENTION: Span = Span::minutes(24 * 60);

impl Shipyards {
    /// Three times as long as history is kept goes by, with sweeps.
    pub(super) fn outlive(&mut self, sim: &mut Sim<Self>) -> Result<(), String> {
        sim.note("history expires");
        for _ in 0..12 {
            sim.world.pass(Span(RETENTION.0 / 4));
            sim.plan_sweep();
            sim.rest(self, 60_000)?;
            let now = sim.world.now().0 / 1000;
            self.remove(sim, |ttl| ttl <= now)?;
        }
        self.expired = true;
        sim.stats.count("histories expired");
        Ok(())
    }

    /// Removes what has expired. Of executions, only those have that ended, and they leave a tombstone.
    pub(super) fn remove(&mut self, sim: &Sim<Self>, expired: impl Fn(i64) -> bool) -> Result<(), String> {
        let mut core = sim.world.core();
        let gone: Vec<Arc<Item>> = core.table.items().filter(|item| item.number("ttl").is_some_and(&expired)).cloned().collect();
        for item in gone {
            if item.key.sk.starts_with("X#") {
                let x = decode(&item)?;
                if x.outcome.is_none() || core.table.peek(&keys::tombstone(&x.project, x.id)).is_none() {
                    return Err(format!("{} expires and leaves no trace: {x:?}", Address::of(&x).execution));
                }
                self.watch.executions.remove(&item.key);
            }
            let keys: [Key; 1] = [item.key.clone()];
            core.table.put_batch(&[], &keys, false).map_err(|e| e.to_string())?;
        }
        core.table.journal.clear();
        Ok(())
    }
}
