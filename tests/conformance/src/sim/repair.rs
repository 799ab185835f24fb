//! What brings back what was lost: dead letters, sent again, and the sweep.

use super::scenario::Scenario;
use super::scheduler::{Outcome, Sim};
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::protocol::record::SKEW;
use keelway_engine::protocol::sweep::{self, Tick};
use keelway_engine::protocol::{Engine, dead_letter};
use keelway_world::exec::block_on;
use keelway_world::queue::QueueTwin;

impl<S: Scenario> Sim<S> {
    /// Stores what is dead, as the function on the dead-letter queues does, and has a sweep send it again.
    ///
    /// # Errors
    /// As [`Sim::rest`].
    pub fn redrive(&mut self, scenario: &mut S) -> Result<(), String> {
        let dead = std::mem::take(&mut self.world.core().queue.dead);
        for (id, message) in dead {
            let letter = QueueTwin::letter(id, &message);
            block_on(dead_letter::store(&self.world.worker(0), &letter)).map_err(|e| e.to_string())?;
        }
        // A letter is due at once, by its own clock.
        self.world.pass(SKEW);
        self.plan_sweep();
        self.rest(scenario, 60_000)
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
pub(super) async fn swept(engine: &impl Engine) -> Outcome {
    while dead_letter::redrive(engine.ports()).await? > 0 {}
    let mut tick = Tick::default();
    while !sweep::page(engine, &mut tick).await?.finished {}
    Ok(None)
}
