//! Coming to rest, and what must be so whenever nothing is on its way: nobody waits but for a hand that the plan does not give.

use super::acts::state;
use super::scenario::{Action, Delivering};
use super::{STAGES, config};
use crate::deployments::waits_for;
use crate::sequences::nobody_waits;
use crate::sim::{COPIES, Sim};
use keelway_domain::deployments::{Command as Ask, Config, Deployment, Status};
use keelway_domain::event::TaskResult;
use keelway_domain::promotions::observe::Observed;
use keelway_domain::promotions::{Command, EVALUATING, Made, Phase, Promotion};
use keelway_domain::sequences::{Execution, Lane};
use keelway_domain::stored::Stored;
use keelway_domain::time::Span;
use keelway_engine::deployments::keys as configs;
use keelway_engine::protocol::Loaded;
use keelway_engine::sequences::commands::Control;
use keelway_world::World;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rounds in which everything must have ended.
const ROUNDS: usize = 60;
/// Clocks differ, and requests take time.
const MARGIN: Span = Span::minutes(3);

impl Delivering {
    fn all(&self, world: &World) -> Vec<Execution> {
        let core = world.core();
        let items = self.watch.executions.iter().filter_map(|key| core.table.peek(key));
        items.filter_map(|item| Loaded::<Execution>::read(item).ok().map(|loaded| loaded.x)).collect()
    }

    fn open(&self, world: &World) -> Vec<Arc<Execution>> {
        self.all(world).into_iter().filter(|x| x.outcome.is_none()).map(Arc::new).collect()
    }

    pub(super) fn config(world: &World, place: usize) -> Option<Config> {
        state(world, &configs::config(&config(STAGES[place])))
    }

    /// Whether something was lost that only the sweep brings back. What a copy of a message owes that nobody goes on with, the next
    /// input pays.
    fn is_lost(sim: &Sim<Self>) -> bool {
        let lost = ["dead letters", COPIES].iter().any(|what| sim.stats.0.contains_key(what));
        sim.troubles.cut && !sim.faults || lost
    }

    /// Nothing is on its way: what one engine waits for from another one has not happened yet.
    pub(super) fn nobody_waits_for_the_sweep(&self, sim: &Sim<Self>) -> Result<(), String> {
        if Self::is_lost(sim) {
            return Ok(());
        }
        nobody_waits(&self.open(&sim.world), &sim.world)?;
        let (now, all) = (sim.world.now(), self.all(&sim.world));
        for place in 0..STAGES.len() {
            let Some(x) = Self::config(&sim.world, place) else { continue };
            if x.wake.is_some_and(|wake| wake + MARGIN < now) {
                return Err(format!("without anything lost, a config has overslept: {x:?}"));
            }
            self.believes(sim, place, &x)?;
            self.follows_its_tag(&sim.world, place, &x)?;
        }
        let open: Vec<&Execution> = all.iter().filter(|x| x.outcome.is_none()).collect();
        self.somebody_carries_out(sim, &open)?;
        let Some(x) = Self::flow(&sim.world) else { return Ok(()) };
        if x.wake.is_some_and(|wake| wake + MARGIN < now) {
            return Err(format!("without anything lost, the pipeline has overslept: {x:?}"));
        }
        let goes_on = |(environment, run): &(String, u64)| {
            let state = x.environments.get(environment);
            let current = state.and_then(|state| state.promotion.as_ref());
            current.is_some_and(|promotion| promotion.run == *run && !promotion.phase.is_final())
                || state.is_some_and(|state| state.closing.iter().any(|closing| closing.promotion.run == *run))
        };
        for x in open.iter().filter(|x| x.parent.is_none()) {
            if self.watch.promotion_of(x.context.as_str()).is_some_and(|of| !goes_on(of)) {
                return Err(format!("a promotion was given up, and its sequence goes on: {x:?}"));
            }
        }
        let ended: BTreeMap<String, &Execution> =
            all.iter().filter(|x| x.outcome.is_some() && x.parent.is_none()).map(|x| (x.context.to_string(), x)).collect();
        for promotion in x.environments.values().filter_map(|state| state.promotion.as_ref()) {
            let Some(Made::Sequence { context }) = promotion.effect.as_ref().filter(|_| promotion.phase == Phase::Created) else {
                continue;
            };
            if let Some(x) = ended.get(context) {
                return Err(format!("the sequence of a promotion has ended, and nobody has told it: {promotion:?} {x:?}"));
            }
        }
        Ok(())
    }

    /// Each task that names a config is carried out by it, or was answered.
    fn somebody_carries_out(&self, sim: &Sim<Self>, open: &[&Execution]) -> Result<(), String> {
        let configs: Vec<Config> = (0..STAGES.len()).filter_map(|place| Self::config(&sim.world, place)).collect();
        for x in open {
            let named = x.open.as_ref().is_some_and(|task| ["deployment", "rollback"].contains(&task.as_str()));
            let Some(trigger) = x.record.filter(|_| named && !x.paused).map(|record| record.uuid().to_string()) else { continue };
            let carries = |d: &Deployment| d.task.as_ref().is_some_and(|task| task.triggered == trigger);
            if !configs.iter().flat_map(|x| x.in_flight().into_iter().chain(&x.pending)).any(carries) {
                return Err(format!("a sequence waits for a task that nobody carries out: {x:?}"));
            }
        }
        Ok(())
    }

    /// What a config is at is known to whoever waits for it, and nobody else's.
    fn believes(&self, sim: &Sim<Self>, place: usize, x: &Config) -> Result<(), String> {
        let core = sim.world.core();
        for d in x.in_flight().into_iter().chain(&x.pending).filter(|d| d.cancel.is_none()) {
            if let Some(task) = d.task.as_ref().filter(|task| !waits_for(task, &core.table)) {
                return Err(format!("{} #{} carries out a task that was given up: {task:?}", x.name, d.n));
            }
        }
        let Some(last) = &x.last else { return Ok(()) };
        if let Some(task) = last.task.as_ref().filter(|task| last.status.is_final() && waits_for(task, &core.table)) {
            return Err(format!("{} #{} has ended, and its task waits: {task:?} {last:?}", x.name, last.n));
        }
        // One that no pipeline asks for expires.
        let Some(fact) = core.table.peek(&self.watch.fact_of(place)).filter(|fact| fact.number("ttl").is_none()) else {
            return Ok(());
        };
        let observed = fact.text("j").and_then(|text| Observed::from_json(text).ok());
        let ready = observed.as_ref().is_some_and(|observed| observed.ready);
        if last.status.is_final() && ready != (last.status == Status::Complete) && !x.deleted {
            return Err(format!("{} #{} is {}, and observed as {observed:?}", x.name, last.n, last.status));
        }
        Ok(())
    }

    /// Nothing goes wrong any more, and people do what they are willing to.
    pub(super) fn end_everything(&mut self, sim: &mut Sim<Self>) -> Result<(), String> {
        self.quiet = true;
        self.verdicts.lock().verdicts.clear();
        self.heal(sim);
        sim.troubles.tick = sim.troubles.tick.min(Span(200));
        if sim.troubles.cut && !sim.troubles.redrive_first {
            sim.sweep_only(self)?;
        }
        if Self::is_lost(sim) {
            sim.troubles.unswept = false;
        }
        if !sim.troubles.unswept {
            sim.redrive(self)?;
        }
        let mut still = 0;
        for _ in 0..ROUNDS {
            sim.rest(self, 60_000)?;
            if !sim.troubles.unswept {
                sim.world.pass(Span::minutes(5));
                sim.plan_sweep();
                sim.rest(self, 60_000)?;
            }
            let given = self.people(sim) | self.approve(sim) | self.resume(sim);
            still = if given { 0 } else { still + 1 };
            if still > 2 {
                return Ok(());
            }
            sim.stats.count("rounds at the end");
        }
        Err("it does not come to rest: people approve, and something waits for approval again".into())
    }

    /// People approve what waits for them, whatever became of those who were asked before.
    fn approve(&mut self, sim: &mut Sim<Self>) -> bool {
        let mut given = false;
        for x in self.open(&sim.world) {
            let Some(record) = x.record.filter(|_| x.open.as_ref().is_some_and(|task| task.as_str() == "approval")) else {
                continue;
            };
            let trigger = record.uuid().to_string();
            if self.give(&trigger) {
                given = true;
                let now = sim.world.now();
                sim.plan(now, Action::Approve(x.context.to_string(), trigger));
            }
        }
        given
    }

    /// People set free what they hold.
    fn resume(&mut self, sim: &mut Sim<Self>) -> bool {
        let now = sim.world.now();
        let mut acts = vec![];
        for x in self.open(&sim.world).iter().filter(|x| x.paused) {
            let place = self.contexts.iter().position(|context| context == x.context.as_str());
            acts.extend(place.map(|place| Action::Control(place, Control::Resume)));
        }
        for place in 0..STAGES.len() {
            let paused = Self::config(&sim.world, place).is_some_and(|x| x.paused.is_some() && !x.deleted);
            acts.extend(paused.then_some(Action::Ask(place, Ask::Resume)));
        }
        let suspended = Self::flow(&sim.world).is_some_and(|x| x.suspended.is_some() && !x.deleted);
        acts.extend(suspended.then_some(Action::Flow(Command::Resume)));
        acts.retain(|action| self.give(&format!("{action:?}")));
        let given = !acts.is_empty();
        acts.into_iter().for_each(|action| sim.plan(now, action));
        given
    }

    /// No circle runs for ever. Each sequence was triggered by hand or for a promotion, and at most one follows it. A run begins
    /// with a complete version of the first stage, and each run has one promotion into each stage, and one more each time somebody
    /// wants it anew. A version was cut by hand, for a push or for a task, and Keelway rolls each one back at most once. A config
    /// that follows a tag deploys the tag's image again when another version has ended.
    fn check_bounds(&self, sim: &mut Sim<Self>) -> Result<(), String> {
        let all = self.all(&sim.world);
        let (by_hand, promoted) = (self.asked.1, self.watch.promotions());
        let roots = all.iter().filter(|x| x.parent.is_none() || x.retry_of().is_some()).count();
        if roots > by_hand + promoted || all.len() > 2 * (by_hand + promoted) {
            return Err(format!("{roots} of {} sequences, by {by_hand} hands and {promoted} promotions", all.len()));
        }
        let tasks = all.iter().map(|x| usize::from(x.task) + 1).sum::<usize>();
        let versions: u64 = (0..STAGES.len()).filter_map(|place| Self::config(&sim.world, place)).map(|x| x.latest).sum();
        let each = if self.has_tags() { 4 } else { 2 };
        if versions > each * (self.asked.0 + tasks) as u64 {
            return Err(format!("{versions} versions, for {tasks} tasks and {} requests", self.asked.0));
        }
        sim.stats.add("sequences", all.len() as u64);
        Ok(())
    }

    /// Everything that must be so when nothing is left to do.
    pub(super) fn check_rest(&self, sim: &mut Sim<Self>) -> Result<(), String> {
        self.wrong.clone().map_or(Ok(()), Err)?;
        let open = self.open(&sim.world);
        for x in &open {
            let asked = x.open.as_ref().is_some_and(|task| task.as_str() == "approval");
            let waits = x.lane == Lane::Wants && open.iter().any(|y| y.lane == Lane::Holds && y.stage == x.stage);
            if !asked && !waits && !x.paused {
                return Err(format!("a sequence does not end: {x:?}"));
            }
            sim.stats.count(if asked { "left to people" } else { "left behind another one" });
        }
        for place in 0..STAGES.len() {
            let Some(x) = Self::config(&sim.world, place) else { continue };
            if (x.in_flight().is_some() || x.pending.is_some()) && x.paused.is_none() {
                return Err(format!("a deployment does not end: {x:?}"));
            }
            self.believes(sim, place, &x)?;
            let how = self.follows_its_tag(&sim.world, place, &x)?;
            sim.stats.count(how);
        }
        self.check_promotions(sim, &open)?;
        self.check_clusters(sim)?;
        self.check_deleted(sim)?;
        self.check_bounds(sim)
    }

    /// The promotions: none is at work but by a sequence that goes on, and no other sequence goes on for one.
    fn check_promotions(&self, sim: &Sim<Self>, open: &[Arc<Execution>]) -> Result<(), String> {
        let Some(x) = Self::flow(&sim.world) else { return Ok(()) };
        // A promotion whose environment before is no longer ready keeps the reason of before.
        if x.condition.reason == EVALUATING && !x.deleted {
            return Err(format!("an evaluation is never answered: {x:?}"));
        }
        let current = |promotion: &Promotion| match &promotion.effect {
            Some(Made::Sequence { context }) if promotion.phase == Phase::Created => Some(context.clone()),
            _ => None,
        };
        let current: Vec<String> =
            x.environments.values().filter_map(|state| state.promotion.as_ref()).filter_map(current).collect();
        // Whoever carried out an attempt is gone, and the next one waits until the environment before is ready again: it finds the
        // sequence.
        let lost = |(environment, run): &(String, u64)| {
            let promotion = x.environments.get(environment).and_then(|state| state.promotion.as_ref());
            promotion.is_some_and(|of| of.run == *run && of.phase == Phase::Failed && of.due.is_some())
        };
        for x in open.iter().filter(|x| x.parent.is_none()) {
            let Some(of) = self.watch.promotion_of(x.context.as_str()) else { continue };
            if !current.contains(&x.context.to_string()) && !lost(of) {
                return Err(format!("a promotion was given up, and its sequence goes on: {x:?}"));
            }
        }
        let all = self.all(&sim.world);
        for (name, state) in &x.environments {
            let Some(promotion) = &state.promotion else { continue };
            let by = current_of(promotion, &all);
            let what = format!("{name}: {promotion:?}, by {by:?}");
            match promotion.phase {
                Phase::Attempting => return Err(format!("an attempt does not end: {what}")),
                Phase::Created if by.is_none_or(|x| x.outcome.is_some()) => return Err(format!("nobody carries it out: {what}")),
                Phase::Succeeded if !promotion.completed => {
                    let failed = by.and_then(|x| x.outcome).is_some_and(|outcome| outcome.result == TaskResult::Fail);
                    if failed {
                        return Err(format!("it succeeded, and its sequence failed: {what}"));
                    }
                }
                _ => {}
            }
            if !state.closing.is_empty() {
                return Err(format!("something is still to be taken back: {name}: {:?}", state.closing));
            }
        }
        Ok(())
    }
}

/// The sequence that carries a promotion out.
fn current_of<'x>(promotion: &Promotion, all: &'x [Execution]) -> Option<&'x Execution> {
    let Some(Made::Sequence { context }) = &promotion.effect else { return None };
    all.iter().find(|x| x.parent.is_none() && x.context.as_str() == context)
}
