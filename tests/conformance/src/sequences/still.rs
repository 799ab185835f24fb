//! What must be so whenever nothing is on its way and nothing was lost: nobody waits for the sweep.

use super::Shipyards;
use super::check::decode;
use crate::sim::Sim;
use keelway_domain::sequences::{Execution, Lane};
use keelway_domain::time::Span;
use keelway_engine::item::Key;
use keelway_engine::sequences::keys::LaneKey;
use keelway_world::World;
use keelway_world::table::Table;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Clocks differ, and requests take time.
const MARGIN: Span = Span::seconds(60);

/// Whether the lane of `x` has a holder that works.
fn is_held(x: &Execution, table: &Table) -> bool {
    let Some(lock) = table.peek(&LaneKey::of(x).lock()) else { return false };
    let named = |context: &str, id: &str| Key::new(format!("C#{}#{context}", x.project), format!("X#{id}"));
    let holder = lock.text("hc").zip(lock.text("h")).and_then(|(context, id)| table.peek(&named(context, id)));
    holder.and_then(|item| decode(item).ok()).is_some_and(|y| y.lane == Lane::Holds && y.outcome.is_none())
}

impl Shipyards {
    /// Whether something was lost that only the sweep brings back.
    fn is_lost(&self, sim: &Sim<Self>) -> bool {
        let cut = sim.troubles.cut && !sim.faults;
        self.order_lost || self.expired || cut || sim.stats.0.contains_key("dead letters")
    }

    /// No lane is free while somebody waits for it, of one sequence the newest waits only, and nobody has overslept.
    pub(super) fn nobody_waits_for_the_sweep(&self, sim: &Sim<Self>) -> Result<(), String> {
        if self.is_lost(sim) { Ok(()) } else { nobody_waits(&self.open(sim), &sim.world) }
    }
}

/// Of these, which are open: none waits for a free lane or for another of its sequence to be replaced, and none has overslept.
///
/// # Errors
/// Who does.
pub fn nobody_waits(open: &[Arc<Execution>], world: &World) -> Result<(), String> {
    let core = world.core();
    let mut waiting: BTreeMap<(String, String), &Execution> = BTreeMap::new();
    for x in open {
        if x.wake.is_some_and(|wake| wake + MARGIN < core.now) {
            return Err(format!("without anything lost, somebody has overslept: {x:?}"));
        }
        if x.lane != Lane::Wants || x.held.is_some() {
            continue;
        }
        if !is_held(x, &core.table) {
            return Err(format!("without anything lost, somebody waits for a free lane: {x:?}"));
        }
        if x.is_replaceable() {
            let place = (LaneKey::of(x).0, x.sequence.clone());
            match waiting.get(&place) {
                Some(y) if y.accepted != x.accepted => return Err(format!("two of one sequence wait: {x:?} and {y:?}")),
                _ => drop(waiting.insert(place, x)),
            }
        }
    }
    Ok(())
}
