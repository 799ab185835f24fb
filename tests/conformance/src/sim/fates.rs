//! What becomes of workers and of what they had at hand.

use super::past::MOST_TOLD;
use super::repair::BROKEN_OFF;
use super::scenario::Scenario;
use super::scheduler::{Deed, Job, Outcome, Sim};
use keelway_domain::time::Span;

/// Workers that crashed or failed with a copy of a message that another one had acknowledged.
pub const COPIES: &str = "copies lost";

impl<S: Scenario> Sim<S> {
    /// All workers stop, and half of what is in the queue is dead.
    pub(super) fn stop(&mut self, scenario: &mut S) {
        self.note("everything stops");
        while !self.running.is_empty() {
            self.crash(scenario, 0);
        }
        let mut core = self.world.core();
        let now = core.now;
        for id in core.queue.receivable(now) {
            if self.rng.chance(50.0) {
                core.queue.bury(id);
                self.stats.count("dead letters");
            }
        }
    }

    pub(super) fn crash(&mut self, scenario: &mut S, place: usize) {
        let running = self.running.swap_remove(place);
        self.stats.count("crashes");
        self.world.core().note(|| format!("          w{} CRASHES", running.slot));
        if self.rng.chance(20.0) {
            self.slots[running.slot] = None;
        }
        let now = self.world.now();
        if let Job::Message(id) = running.job {
            self.count_copy(id);
        }
        match running.job {
            Job::Message(id) if self.slots[running.slot].as_ref().is_some_and(|engine| scenario.acknowledged_early(engine)) => {
                self.world.core().queue.acknowledge(id);
            }
            Job::Message(id) if self.rng.chance(self.troubles.dead) => {
                self.world.core().queue.bury(id);
                self.stats.count("dead letters");
            }
            Job::Message(id) => {
                let later = *self.rng.pick(&[Span(0), Span(0), Span::seconds(1), Span::seconds(60)]);
                self.world.core().queue.give_back(id, now + later);
            }
            Job::Deed(Deed::Action(action)) => scenario.crashed(self, action),
            Job::Deed(Deed::Sweep) => self.stats.count(BROKEN_OFF),
        }
    }

    pub(super) fn done(&mut self, scenario: &mut S, place: usize, outcome: Outcome) -> Result<(), String> {
        let running = self.running.swap_remove(place);
        let id = match (running.job, &outcome) {
            (Job::Message(id), _) => id,
            (Job::Deed(deed), Err(e)) if e.passes() => {
                if matches!(deed, Deed::Sweep) {
                    self.stats.count(BROKEN_OFF);
                }
                let later = self.world.now() + Span::seconds(5);
                self.agenda.push((later, deed));
                return Ok(());
            }
            (Job::Deed(Deed::Action(action)), Ok(Some(handled))) => {
                scenario.answered(self, action, *handled);
                return Ok(());
            }
            (Job::Deed(_), Ok(_)) => return Ok(()),
            (Job::Deed(deed), Err(e)) => return Err(format!("{deed:?} failed: {e}")),
        };
        match outcome {
            Ok(handled) => {
                let received = self.received.remove(&id);
                // Another copy has failed, and is not delivered again.
                let failed = self.world.core().queue.messages.get(&id).is_some_and(|message| !message.in_flight);
                if failed {
                    self.stats.count(COPIES);
                }
                self.world.core().queue.acknowledge(id);
                self.world.core().note(|| format!("          w{} acknowledges #{id} as {handled:?}", running.slot));
                if let (Some(received), Some(handled)) = (received, handled) {
                    if self.told.len() < MOST_TOLD && received.letter.is_none() {
                        self.told.push((received.engine.clone(), received.parcel.clone()));
                    }
                    scenario.acknowledged(self, self.original(id), received, handled)?;
                }
                Ok(())
            }
            Err(e) if e.passes() => {
                self.count_copy(id);
                let later = self.world.now() + Span(1000 + self.rng.below(19_000) as i64);
                self.world.core().queue.give_back(id, later);
                self.stats.count("given back");
                if self.faults { Ok(()) } else { self.contention() }
            }
            Err(e) => Err(format!("a request can never succeed: {e}")),
        }
    }

    /// A message at hand is not done with. If another copy of it was acknowledged, nobody goes on with what this one began.
    fn count_copy(&mut self, id: u64) {
        if !self.world.core().queue.messages.contains_key(&id) {
            self.stats.count(COPIES);
        }
    }

    /// Without faults, only contention sends a message back, and that cannot go on for ever.
    fn contention(&mut self) -> Result<(), String> {
        self.stats.count("contention at rest");
        let times = self.stats.0.get("contention at rest").copied().unwrap_or(0);
        if times > 50 { Err("messages keep coming back without any fault".into()) } else { Ok(()) }
    }
}
