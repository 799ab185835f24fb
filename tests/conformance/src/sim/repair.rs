//! What brings back what was lost: dead letters, sent again, and the sweep.

use super::scenario::Scenario;
use super::scheduler::{Outcome, Sim};
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::item::Item;
use keelway_engine::keys;
use keelway_engine::ports::PortError;
use keelway_engine::protocol::dead_letter::Redriven;
use keelway_engine::protocol::record::SKEW;
use keelway_engine::protocol::sweep::{self, Tick};
use keelway_engine::protocol::{Engine, Subject, dead_letter};
use keelway_world::exec::block_on;
use keelway_world::queue::{Parcel, QueueTwin};
use std::collections::HashSet;
use std::sync::Arc;

/// While only the sweep repairs, nothing waits for longer than this.
const PATIENCE: Span = Span::seconds(60);
/// Rounds in which every letter has been sent again.
const ROUNDS: usize = 20;
/// What [`Sim::stats`] call a sweep that crashed, or that a port failed.
pub(super) const BROKEN_OFF: &str = "sweeps broken off";

impl<S: Scenario> Sim<S> {
    /// Stores what is dead, as the function on the dead-letter queues does. What cannot be stored now comes again.
    pub(super) fn store_letters(&mut self) {
        let dead = std::mem::take(&mut self.world.core().queue.dead);
        for (id, message) in dead {
            let letter = QueueTwin::letter(id, &message);
            if block_on(dead_letter::store(&self.world.worker(0), &letter)).is_err() {
                self.world.core().queue.dead.push((id, message));
            }
        }
    }

    /// Has all dead letters sent again until none is left. What failed as often as it is sent again is sent by a person.
    ///
    /// # Errors
    /// As [`Sim::rest`], or a letter that is not sent again.
    pub fn redrive(&mut self, scenario: &mut S) -> Result<(), String> {
        for _ in 0..ROUNDS {
            self.store_letters();
            self.plan_sweep();
            self.rest(scenario, 60_000)?;
            let due = self.first(keys::DUE_LETTERS).and_then(|item| item.key.sk.split('#').next()?.parse().ok());
            match due.map(Timestamp) {
                Some(due) => {
                    let now = self.world.now();
                    self.world.pass(Span((due - now).0.max(0) + SKEW.0));
                }
                None => break,
            }
        }
        while let Some(item) = self.first(keys::DEAD_LETTERS) {
            let times = self.redriven.get(&item.key.sk).map_or(0, HashSet::len) as u64;
            let rounds = self.rounds.get(&item.key.sk).copied().unwrap_or(0);
            // A sweep that breaks off between putting a letter off and sending it has used up a round.
            let broken_off = self.stats.0.get(BROKEN_OFF).copied().unwrap_or(0);
            if rounds < dead_letter::REDRIVES || times + broken_off < dead_letter::REDRIVES as u64 {
                let key = &item.key.sk;
                return Err(format!("letter {key} was sent again {times} times in {rounds} rounds and then forgotten"));
            }
            self.stats.count("letters left to a person");
            let again = Redriven {
                letter: item.key.sk.clone(),
                due: String::new(),
                sent: Timestamp(item.number("st").unwrap_or(0)),
                body: item.text("b").unwrap_or_default().to_owned(),
            };
            self.world.enqueue(item.text("to").unwrap_or_default(), Parcel::Own(again.to_body()));
            self.rest(scenario, 60_000)?;
        }
        Ok(())
    }

    fn first(&self, partition: &str) -> Option<Arc<Item>> {
        self.world.core().table.partition(partition).next().cloned()
    }

    /// Loses every timer, and sweeps two or three times, five minutes apart: before and after the deadlines of tasks. No letter is
    /// sent again; nothing else waits for long. Returns when the last sweep began.
    ///
    /// # Errors
    /// As [`Sim::rest`].
    pub fn sweep_only(&mut self, scenario: &mut S) -> Result<Timestamp, String> {
        self.note("timers are lost; only the sweep repairs");
        {
            let mut core = self.world.core();
            let now = core.now;
            core.queue.messages.retain(|_, message| message.visible <= now || message.receives > 0);
        }
        self.patience = Some(PATIENCE);
        let mut at = self.world.now();
        let sweeps = if self.rng.chance(30.0) { 2 } else { 3 };
        for _ in 0..sweeps {
            self.world.pass(Span::minutes(5));
            at = self.world.now();
            self.plan_sweep();
            self.rest(scenario, 60_000)?;
        }
        self.patience = None;
        Ok(at)
    }

    /// Sweeps often enough for everything one tick leaves to the next.
    ///
    /// # Errors
    /// As [`Sim::rest`].
    pub fn sweep_until_still(&mut self, scenario: &mut S) -> Result<(), String> {
        self.note("sweeping");
        for _ in 0..3 {
            self.world.pass(Span::minutes(5));
            self.plan_sweep();
            self.rest(scenario, 60_000)?;
        }
        Ok(())
    }

    /// Lets the time of the next wake-up pass, as if it had been lost, and sweeps.
    pub fn sweep_after(&mut self, wakes: impl Iterator<Item = Timestamp>) {
        let now = self.world.now();
        let at = wakes.filter(|wake| *wake > now).min().unwrap_or(now) + Span::minutes(5);
        self.world.pass(at - now);
        self.plan_sweep();
        self.stats.count("sweeps at rest");
    }
}

/// A tick of the sweep, to its end.
///
/// # Errors
/// Of the ports.
pub async fn swept<S: Subject>(engine: &impl Engine<S>) -> Outcome {
    while dead_letter::redrive(engine.ports()).await? > 0 {}
    pages(engine).await?;
    Ok(None)
}

/// All pages of an engine's open work.
///
/// # Errors
/// Of the ports.
pub async fn pages<S: Subject>(engine: &impl Engine<S>) -> Result<(), PortError> {
    let mut tick = Tick::default();
    while !sweep::page(engine, &mut tick).await?.finished {}
    Ok(())
}
