//! How everything comes to rest in the simulation of deployments, and what must be so then.

use super::crew::{Fate, lock};
use super::scenario::Deploying;
use crate::sim::Sim;
use keelway_domain::deployments::{Applied, Command, Config, Past, Snapshot, Status, template};
use keelway_domain::stored::Stored;
use keelway_domain::time::Span;
use keelway_engine::deployments::{configs, keys};
use keelway_engine::item::Item;
use std::collections::{BTreeMap, BTreeSet};

/// Whoever waits for longer waits while people act: a deployer that is started is started again after two minutes. In every other
/// round people act sooner: in a slow world, two configs whose deployers nobody started would run into their timeouts in turn, and
/// for ever.
const PATIENCE: [Span; 2] = [Span::seconds(50), Span::seconds(20)];
/// Rounds in which everything comes to rest once nothing goes wrong any more.
const ROUNDS: usize = 150;

fn read<T: Stored>(item: &Item) -> Option<T> {
    T::from_json(item.text("j")?).ok()
}

impl Deploying {
    pub(super) fn end_everything(&mut self, sim: &mut Sim<Self>) -> Result<(), String> {
        self.quiet = true;
        // Where requests take seconds, some deployers never come in time.
        sim.troubles.tick = sim.troubles.tick.min(Span(50));
        if sim.troubles.cut && !sim.troubles.redrive_first {
            sim.sweep_only(self)?;
        }
        sim.patience = Some(PATIENCE[0]);
        sim.redrive(self)?;
        let mut still = 0;
        for round in 0..ROUNDS {
            sim.patience = Some(PATIENCE[round % 2]);
            sim.rest(self, 60_000)?;
            let mut acted = false;
            for place in 0..self.configs.len() {
                acted |= self.people(sim, place);
            }
            let wakes = (0..self.configs.len()).any(|place| self.state(&sim.world, place).is_some_and(|x| x.wake.is_some()));
            let working = lock(&self.crew).all.iter().any(|d| !d.gone && d.attempt.is_some() && d.said.is_empty());
            still = if acted || wakes || working { 0 } else { still + 1 };
            if still > 2 {
                sim.patience = None;
                return Ok(());
            }
            sim.stats.count("rounds at the end");
            if acted {
                // Whoever was started comes some time.
                sim.world.pass(Span::seconds(5));
            } else {
                sim.world.pass(Span::minutes(1));
                sim.plan_sweep();
            }
        }
        sim.patience = None;
        let states: Vec<_> = (0..self.configs.len()).map(|place| self.state(&sim.world, place)).collect();
        Err(format!("it does not come to rest: {states:?}"))
    }

    /// People set a config free, and a deployer that succeeds takes what waits. Whether anybody did anything.
    fn people(&mut self, sim: &mut Sim<Self>, place: usize) -> bool {
        let Some(x) = self.state(&sim.world, place) else { return false };
        let failed = x.last.as_ref().is_some_and(|last| last.status == Status::Failed) && x.settling.is_none();
        let asked = match () {
            () if x.deleted || !self.forgiving => None,
            () if x.paused.is_some() => Some(Command::Resume),
            () if x.suspended.is_some() => Some(Command::ResumeTriggers),
            () if failed && x.pending.is_none() => Some(Command::Retry),
            () => None,
        };
        if let Some(command) = &asked {
            self.commands += 1;
            self.ask(sim, place, command.clone(), self.commands);
        }
        let waits = x.in_flight().filter(|d| d.claim.is_none() && d.cancel.is_none() && x.paused.is_none());
        let comes = |n: u64| lock(&self.crew).all.iter().any(|d| (d.place, d.n) == (place, n) && !d.gone && d.attempt.is_none());
        let Some(d) = waits else { return asked.is_some() };
        if !comes(d.n) {
            let n = d.n;
            self.hire(sim, place, n, Fate::Succeeds);
        }
        true
    }

    pub(super) fn check_rest(&mut self, sim: &mut Sim<Self>) -> Result<(), String> {
        if let Some(wrong) = lock(&self.crew).wrong.take() {
            return Err(wrong);
        }
        for place in 0..self.configs.len() {
            let name = self.configs[place].0.to_string();
            let applied = {
                let core = sim.world.core();
                let item = core.table.peek(&keys::definition(&self.configs[place].0));
                item.map(|item| configs::read(item)).transpose().map_err(|error| error.to_string())?.flatten()
            };
            let Some(x) = self.state(&sim.world, place) else {
                if applied.is_some() {
                    return Err(format!("{name} has no state"));
                }
                continue;
            };
            sim.stats.add("versions", x.latest);
            self.check_history(sim, place, &x).map_err(|what| format!("{name}: {what}\n{x:?}"))?;
            self.check_state(sim, place, &x, applied.map(|(applied, _)| applied))
                .map_err(|what| format!("{name}: {what}\n{x:?}"))?;
        }
        self.check_tasks(sim)
    }

    fn check_state(&self, sim: &Sim<Self>, place: usize, x: &Config, applied: Option<Applied>) -> Result<(), String> {
        let held = x.paused.is_some();
        if let Some(d) = x.in_flight().filter(|d| !held || d.claim.is_some()) {
            return Err(format!("#{} is still on its way", d.n));
        }
        if x.pending.is_some() && !held {
            return Err("a version still waits".into());
        }
        if x.wake.is_some() || x.settling.is_some() && !held {
            return Err("something is still to come".into());
        }
        let Some(applied) = applied else {
            return if x.over() { Ok(()) } else { Err("it was deleted, and is not over".into()) };
        };
        if x.deleted {
            return Err("it is applied, and counts as deleted".into());
        }
        if held || x.suspended.is_some() {
            return Ok(());
        }
        let definition = &applied.definition;
        if !self.pushed.resolves(definition) || definition.triggers.is_empty() {
            return Ok(());
        }
        let Some(last) = &x.last else { return Err(format!("nothing was ever deployed: {definition:?}")) };
        let core = sim.world.core();
        let snapshot = core.table.peek(&keys::snapshot(&self.configs[place].0, last.n, last.snapshot));
        let Some(deployed) = snapshot.and_then(|item| read::<Snapshot>(item)).map(|snapshot| snapshot.definition.template) else {
            return Err(format!("#{} has no snapshot", last.n));
        };
        self.pushed.followed(definition, &template::images(&deployed))?;
        let containers = &deployed["spec"]["containers"];
        let env = &definition.template["spec"]["containers"][0]["env"];
        if definition.on_config_change() && containers[0]["env"] != *env {
            return Err(format!("{} is deployed, and {env} is applied", containers[0]["env"]));
        }
        let status = last.status;
        if self.forgiving && status != Status::Complete { Err(format!("#{} is {status}", last.n)) } else { Ok(()) }
    }

    /// Every attempt that has ended has its record and its snapshot, and was told.
    fn check_history(&self, sim: &Sim<Self>, place: usize, x: &Config) -> Result<(), String> {
        let (to, seen) = (&self.configs[place].0, &self.watch.seen[place]);
        let core = sim.world.core();
        let partition = keys::partition(to);
        let items: Vec<_> = core.table.partition(&partition).collect();
        let past: Vec<Past> =
            items.iter().filter(|item| item.key.sk.starts_with(keys::PAST)).filter_map(|item| read(item)).collect();
        let ended: BTreeMap<(u64, u32), &Past> =
            past.iter().map(|past| ((past.deployment.n, past.deployment.attempt), past)).collect();
        let running = x.in_flight().map(|d| (d.n, d.attempt));
        for (at, status) in seen.attempts.iter().filter(|(at, _)| at.0 >= x.oldest && Some(**at) != running) {
            let Some(past) = ended.get(at) else { return Err(format!("attempt {at:?} has no record")) };
            let d = &past.deployment;
            if !d.status.is_final() || status.is_some_and(|status| status != d.status) {
                return Err(format!("attempt {at:?} ended as {status:?}, and its record says {d:?}"));
            }
            if core.table.peek(&keys::snapshot(to, d.n, d.snapshot)).is_none() {
                return Err(format!("attempt {at:?} has no snapshot"));
            }
        }
        if let Some(at) = ended.keys().find(|at| !seen.attempts.contains_key(at) || at.0 < x.oldest) {
            return Err(format!("attempt {at:?} has a record, and is not there"));
        }
        let versions: BTreeSet<u64> = seen.attempts.keys().map(|at| at.0).collect();
        if !versions.iter().copied().eq(1..=x.latest) {
            return Err(format!("versions {versions:?} up to {}", x.latest));
        }
        for past in ended.values().map(|past| &past.deployment).filter(|d| d.status == Status::Failed) {
            let in_time = !past.message.ends_with("could not be taken back in time");
            if in_time && self.starter.changed().versions.contains(&format!("{}-{}-{}", to.name, past.n, past.attempt)) {
                return Err(format!("what Keelway changed for {past:?} was not taken back"));
            }
        }
        if let Some(id) = seen.obeyed.iter().find(|id| !seen.audit.contains_key(id)) {
            return Err(format!("command {id} was obeyed, and is not in the audit"));
        }
        for at in seen.attempts.keys().filter(|at| Some(**at) != running) {
            let told = self.told.get(&(to.name.clone(), at.0, u64::from(at.1))).cloned().unwrap_or_default();
            let end = told.contains("complete") || told.contains("failed");
            let begin = told.contains(if at.1 == 1 { "created" } else { "retried" }) && told.contains("requested");
            if !begin || !end || told.contains("complete") && told.contains("failed") {
                return Err(format!("of attempt {at:?} only {told:?} was told"));
            }
        }
        Ok(())
    }

    /// Every task is answered, once.
    fn check_tasks(&self, sim: &mut Sim<Self>) -> Result<(), String> {
        let waits = |place| self.state(&sim.world, place).is_some_and(|x| x.in_flight().is_some() || x.pending.is_some());
        let waits = (0..self.configs.len()).any(waits);
        for (task, answers) in &self.tasks {
            let count = |kind: &str| answers.get(kind).map_or(0, BTreeSet::len);
            // One that came when nobody waited for it any more gets no answer.
            let unanswered = !waits && count("finished") == 0 && !self.over.contains(task);
            if count("started") > 1 || count("finished") > 1 || unanswered {
                return Err(format!("{task} got these answers: {answers:?}"));
            }
            sim.stats.count("tasks");
        }
        Ok(())
    }
}
