//! Inputs from the past: events are told again after a day and after a year, as an archive of the bus does, and messages of the
//! engines' own after a day, as somebody does who sends dead letters again; and nothing changes.

use super::scenario::Delivering;
use crate::engines;
use crate::sim::Sim;
use crate::stand::expire;
use keelway_domain::time::Span;
use keelway_engine::item::{Item, Key};
use keelway_engine::keys::MAIN;
use keelway_world::World;
use keelway_world::queue::Parcel;
use std::collections::BTreeMap;

/// So many of them are told again.
const SOME: usize = 25;

/// What counts: executions, configs, pipelines and facts, with their versions.
fn states(world: &World) -> BTreeMap<Key, i64> {
    let core = world.core();
    let counts = |key: &Key| {
        key.pk.starts_with("C#") && key.sk.starts_with("X#")
            || ["D#", "P#", "O#"].iter().any(|kind| key.pk.starts_with(kind)) && key.sk == MAIN
    };
    // A fact that no pipeline asks for expires, and is told anew.
    let lasts = |item: &Item| !item.key.pk.starts_with("O#") || item.number("ttl").is_none();
    core.table.items().filter(|item| counts(&item.key) && lasts(item)).map(|item| (item.key.clone(), item.version())).collect()
}

impl Delivering {
    /// Time passes, and what was told is told again.
    pub(super) fn outlive(&mut self, sim: &mut Sim<Self>) -> Result<(), String> {
        for days in [1, 365] {
            sim.note(&format!("{days} days pass, and the past is told again"));
            sim.world.pass(Span::minutes(days * 24 * 60));
            sim.rest(self, 60_000)?;
            expire(&sim.world);
            let before = states(&sim.world);
            let log: Vec<_> = sim.world.core().bus.log.clone();
            let told = log.iter().filter_map(engines::published).chain(self.given.iter().cloned());
            let again: Vec<_> = told
                .flat_map(|event| {
                    let takers: Vec<_> = engines::takers(&event).collect();
                    takers.into_iter().map(move |queue| (queue.to_owned(), Parcel::Event(event.clone())))
                })
                // No queue keeps a message for a year, and no dead letter outlives what it is about.
                .chain(self.told.iter().filter(|_| days == 1).cloned())
                .collect();
            for _ in 0..SOME.min(again.len()) {
                let (queue, parcel) = sim.rng.pick(&again).clone();
                sim.world.enqueue(&queue, parcel);
            }
            sim.rest(self, 60_000)?;
            let after = states(&sim.world);
            if let Some((key, version)) = after.iter().find(|(key, version)| before.get(*key) != Some(version)) {
                let (old, core) = (before.get(key), sim.world.core());
                return Err(format!("after {days} days the past changed {old:?} to {version}: {:?}", core.table.peek(key)));
            }
        }
        Ok(())
    }
}
