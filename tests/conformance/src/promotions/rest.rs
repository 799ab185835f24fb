//! What must be so in the simulation of promotions while everything goes on, and when everything is at rest.

use super::host::State;
use super::scenario::Promoting;
use super::target;
use crate::sim::Sim;
use keelway_domain::promotions::{EVALUATION_FAILED, Environment, Phase, Pipeline, Promotion};
use keelway_world::World;

impl Promoting {
    /// Whether nobody is at anything.
    pub(super) fn is_still(&self, world: &World) -> bool {
        let waits = |x: &Pipeline| {
            let created = |state: &Environment| state.promotion.as_ref().is_some_and(Promotion::is_watched);
            x.wake.is_some()
                || x.condition.reason == "ApprovalNeeded"
                || x.condition.reason == EVALUATION_FAILED
                || x.environments.values().any(|state| created(state) || !state.closing.is_empty())
        };
        !self.host.lock().requests.iter().any(|request| request.state == State::Open)
            && !self.states(world).iter().any(|x| waits(x))
    }

    /// Whether a revision may have been healthy in all targets of the first environment at once.
    pub(super) fn was_healthy(&self, revision: &str) -> bool {
        (0..self.targets).all(|place| self.healthy.contains(&(target("dev", place), revision.to_owned())))
    }

    /// What the world's log says about pull requests and notifications, whatever the engine believes.
    pub(super) fn check_host(&self) -> Result<(), String> {
        let host = self.host.lock();
        let effects = host.requests.iter().map(|request| &request.of).chain(host.told.iter().map(|told| &told.of));
        if let Some(of) = effects.into_iter().find(|of| !self.was_healthy(&of.revision)) {
            return Err(format!("an effect for {}, which was never healthy in dev", of.revision));
        }
        self.watch.host(&host)
    }

    /// Nobody has merged or closed anything for a while, and nothing goes wrong: what is superseded is closed by now.
    pub(super) fn check_one_open(&self) -> Result<(), String> {
        let host = self.host.lock();
        for (to, definition) in &self.pipelines {
            let name = to.to_string();
            for environment in &definition.environments {
                let open: Vec<_> = host.open(&name, &environment.name).collect();
                if open.len() > 1 && !self.reopened {
                    return Err(format!("more than one is open: {open:?}"));
                }
            }
        }
        Ok(())
    }

    /// What is open when everything is at rest.
    pub(super) fn check_open(&self) -> Result<(), String> {
        let host = self.host.lock();
        for (to, definition) in &self.pipelines {
            let name = to.to_string();
            for environment in &definition.environments {
                let open: Vec<_> = host.open(&name, &environment.name).collect();
                if !open.is_empty() {
                    return Err(format!("people have merged everything, and still open: {open:?}"));
                }
            }
        }
        Ok(())
    }

    /// Every environment runs the revision of the first one, unless somebody said otherwise.
    pub(super) fn check_arrived(&self, sim: &Sim<Self>) -> Result<(), String> {
        let dev = |place| self.runs.get(&target("dev", place)).map(|(revision, _)| revision);
        let mixed = (1..self.targets).any(|place| dev(place) != dev(0));
        for x in self.states(&sim.world) {
            // Whatever the targets of the first environment disagree about is not promoted.
            let Some(run) = x.run.as_ref().filter(|_| !mixed) else { continue };
            let said_otherwise = x.suspended.is_some()
                || self.reopened
                || x.environments.values().any(|state| state.hold.is_some())
                || x.abandoned.contains(&run.revision)
                || x.environments.values().any(|state| {
                    let phase = state.promotion.as_ref().map(|promotion| promotion.phase);
                    matches!(phase, Some(Phase::Abandoned | Phase::Rejected))
                });
            let done = x.condition.reason.is_empty();
            // Another pipeline on the same targets may have brought something else.
            let shared = self.pipelines.len() > 1 && ["Drifted", "WaitingForRollout"].contains(&x.condition.reason.as_str());
            if !done && !said_otherwise && !shared {
                return Err(format!("at rest, and not done: {:?} {:?} {:?}", x.condition, x.run, x.environments));
            }
            if x.environments.values().any(|state| !state.closing.is_empty()) {
                return Err(format!("at rest, and something is still to be closed: {:?}", x.environments));
            }
        }
        Ok(())
    }
}
