//! Evaluations in the simulation: who does what, and when it is over.

use super::acts::{asker, put};
use super::check::{Watch, services};
use super::plan::{Action, INDICATORS, PLACES, PROJECT, Plan, When};
use super::planted::{Plant, Planted};
use crate::sim::{self, OneKind, Scenario, Sim};
use keelway_domain::evaluations::{SOURCE, Service};
use keelway_domain::event::CloudEvent;
use keelway_domain::time::Span;
use keelway_engine::promotions;
use keelway_engine::protocol::record::SKEW;
use keelway_engine::protocol::{Handled, Inbox};
use keelway_world::World;
use keelway_world::bus::Publication;
use keelway_world::evaluations::{Engine, Shared, Task, engine, project};
use keelway_world::queue::Received;
use keelway_world::table::{Change, Table};
use keelway_world::worker::Worker;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// Rounds in which everything must have ended.
const ROUNDS: usize = 60;
/// Without anything lost, an evaluation takes no longer: its window ends five minutes ahead, a source is asked twenty minutes
/// later, five times; a service has ten minutes. What is left is for workers that stop again and again.
const LONGEST: Span = Span::minutes(90);

impl OneKind for Engine {
    type Subject = Service;
}

/// One seed's evaluations.
pub struct Evaluating {
    pub(super) plan: Plan,
    pub(super) plant: Option<Plant>,
    pub(super) sources: Shared,
    pub(super) watch: Watch,
    pub(super) objectives: [Option<usize>; 3],
    /// The triggers that were sent, by the numbers of their tasks.
    pub(super) sent: HashMap<usize, CloudEvent>,
    pub(super) tasks: HashMap<usize, Task>,
    /// How often a pipeline has asked.
    pub(super) times: HashMap<usize, u32>,
    /// So many answers to pipelines were looked at.
    pub(super) told: usize,
    pub(super) started: HashMap<String, usize>,
    pub(super) finished: HashMap<String, usize>,
    pub(super) lost: bool,
    /// What must never happen, and did.
    pub(super) wrong: Option<String>,
}

/// Whether a message was lost, or what a copy of one had begun: the sweep brings that back.
fn is_lost(sim: &Sim<Evaluating>) -> bool {
    ["dead letters", sim::COPIES].iter().any(|what| sim.stats.0.contains_key(what))
}

impl Evaluating {
    /// Of this plan, with a mistake or without.
    pub fn new(plan: Plan, plant: Option<Plant>) -> Self {
        Self {
            plan,
            plant,
            sources: Shared::default(),
            watch: Watch::default(),
            objectives: [None; 3],
            sent: HashMap::new(),
            tasks: HashMap::new(),
            times: HashMap::new(),
            told: 0,
            started: HashMap::new(),
            finished: HashMap::new(),
            lost: false,
            wrong: None,
        }
    }

    /// Looks at what was asked since the last step: before whoever asked reads anything again.
    fn look(&mut self) {
        let looked = self.watch.look(&self.sources.state().asked);
        if let (Err(wrong), None) = (looked, &self.wrong) {
            self.wrong = Some(wrong);
        }
    }
}

impl Scenario for Evaluating {
    type Engine = Engine;
    type Action = Action;

    fn engine(&self, ports: Worker) -> Arc<Engine> {
        let planted = Planted::new(&ports, self.plant, self.watch.reads.clone());
        Arc::new(engine(planted.ports().clone(), &self.sources))
    }
    fn prepare(&mut self, world: &World) {
        let prepared = project::create(world, PROJECT, &["dev", "prod"], &["svc", "other"]);
        prepared.unwrap_or_else(|error| panic!("{error}"));
        world.core().queue.absent = Some(promotions::NAME);
        if !self.plan.configured {
            return;
        }
        let indicators = format!("indicators: {{{0}: {0}, {1}: {1}}}\n", INDICATORS[0], INDICATORS[1]);
        project::write(world, PROJECT, ("", "sli.yaml"), Some(&indicators)).unwrap_or_else(|error| panic!("{error}"));
        for at in 0..PLACES.len() {
            self.write(world, at, self.plan.objectives[at]);
        }
        for (source, delay) in self.plan.sources.clone() {
            self.declare(world, source, Some(delay));
        }
    }
    fn schedule(&mut self, sim: &mut Sim<Self>) {
        sim.note(&format!("{:?}", self.plan));
        if let Some(source) = self.plan.chosen {
            self.choose(&sim.world, usize::MAX, source);
        }
        for (when, action) in self.plan.actions.clone() {
            let span = match when {
                When::Soon(requests) => sim.a_while(requests),
                When::Later(span) => span,
            };
            let at = sim.world.now() + span;
            sim.plan(at, action);
        }
    }
    fn act(&mut self, sim: &mut Sim<Self>, action: Action) {
        let (world, now) = (sim.world.clone(), sim.world.now());
        match action {
            Action::Trigger(n, at) => self.trigger(&world, n, at),
            Action::Value(source, indicator, value) => {
                let (key, mut state) = ((source.to_owned(), indicator.to_owned()), self.sources.state());
                match value {
                    Some(value) => drop(state.values.insert(key, value as f64)),
                    None => drop(state.values.remove(&key)),
                }
            }
            Action::Late(source, long) => self.mood(source, |mood| mood.late = now + long),
            Action::Busy(source, long) => self.mood(source, |mood| mood.busy = now + long),
            Action::Refuse(source, does) => self.mood(source, |mood| mood.refuses = does.then(|| "403 no".to_owned())),
            Action::Choose(n, source) => self.choose(&world, n, source),
            Action::Declare(source, delay) => self.declare(&world, source, delay),
            Action::Write(at, objectives) => self.write(&world, at, objectives),
            action => self.about(sim, &action),
        }
    }
    /// The engine for sequences takes the answer; the service on the bus answers what it is asked.
    fn published(&mut self, sim: &mut Sim<Self>, publication: &Publication) {
        let event: Value = serde_json::from_str(&publication.entry.detail).unwrap_or_default();
        let (ty, answers) = (event["type"].as_str().unwrap_or_default(), event["triggeredid"].as_str().unwrap_or_default());
        if ty == "sh.keptn.event.get-sli.triggered" {
            let n = self.tasks.iter().find(|(_, task)| event["id"] == task.get_sli()).map(|(n, _)| *n);
            n.into_iter().for_each(|n| self.asked(sim, n));
        } else if ty.ends_with("evaluation.started") {
            *self.started.entry(answers.to_owned()).or_default() += 1;
        } else if ty.ends_with("evaluation.finished") {
            *self.finished.entry(answers.to_owned()).or_default() += 1;
            if let Some(task) = self.watch.tasks.get(answers).cloned() {
                put(&sim.world, task.waiting.over());
            }
        }
    }
    fn acknowledged(&mut self, sim: &mut Sim<Self>, _: u64, received: Received, handled: Handled) -> Result<(), String> {
        sim.stats.count(match handled {
            Handled::Committed => "committed",
            Handled::Settled => "settled",
            Handled::Stale => "stale",
            Handled::Recorded => "recorded",
            Handled::Invalid => return Err(format!("a good input was refused: {:?}", received.parcel)),
        });
        self.wrong.take().map_or(Ok(()), Err)
    }
    fn changed(&mut self, changes: &[Change], table: &Table, time: u64) -> Result<(), String> {
        self.look();
        if let Some(wrong) = self.wrong.take() {
            return Err(wrong);
        }
        changes.iter().try_for_each(|change| self.watch.changed(change, table, time))
    }
    fn meanwhile(&mut self, sim: &mut Sim<Self>) {
        self.look();
        self.hear(&sim.world);
    }
    fn still(&mut self, sim: &mut Sim<Self>) -> Result<(), String> {
        let cut = sim.troubles.cut && !sim.faults;
        if cut || is_lost(sim) {
            return Ok(());
        }
        let all = services(&sim.world.core().table)?;
        let now = sim.world.now();
        let margin = Span(SKEW.0.max(2 * sim.troubles.skew.0));
        if let Some(x) = all.iter().find(|x| x.wake.is_some_and(|wake| wake + margin < now)) {
            return Err(format!("without anything lost, a service has overslept: {x:?}"));
        }
        self.watch.check_open(&all, now, LONGEST)
    }
    /// Whoever got no answer asks again.
    fn crashed(&mut self, sim: &mut Sim<Self>, action: Action) {
        let now = sim.world.now();
        sim.plan(now, action);
    }
    fn begins(&self, engine: &Engine, received: Option<&Received>) {
        engine.ports().begin(received);
    }
    fn come_to_an_end(&mut self, sim: &mut Sim<Self>) -> Result<(), String> {
        self.lost = is_lost(sim);
        if sim.troubles.cut {
            let swept = sim.sweep_only(self)?;
            let all = services(&sim.world.core().table)?;
            if let Some(x) = all.iter().find(|x| x.wake.is_some_and(|wake| wake + Span::minutes(3) < swept)) {
                return Err(format!("after a sweep a service has overslept: {x:?}"));
            }
            self.lost = true;
        }
        if self.lost {
            sim.troubles.unswept = false;
            sim.redrive(self)?;
        }
        for _ in 0..ROUNDS {
            sim.rest(self, 60_000)?;
            let all: Vec<Service> = services(&sim.world.core().table)?.into_iter().filter(|x| !x.open.is_empty()).collect();
            if all.is_empty() {
                return Ok(());
            }
            if !self.lost {
                return Err(format!("without anything lost, evaluations never end: {all:?}"));
            }
            sim.sweep_after(all.iter().filter_map(|x| x.wake));
        }
        Err("evaluations never end".into())
    }
    fn at_rest(&mut self, sim: &mut Sim<Self>) -> Result<(), String> {
        self.look();
        // Every pipeline has its answer by now.
        for (n, task) in self.tasks.iter().filter(|(n, _)| self.plan.asks[**n]) {
            put(&sim.world, project::pipeline(task, &asker(*n, task, 0), None));
        }
        if let Some(wrong) = self.wrong.take() {
            return Err(wrong);
        }
        let disorder = ["crashes", "given back", "dead letters", sim::COPIES];
        let orderly = sim.troubles.tick < Span::seconds(1) && !disorder.iter().any(|what| sim.stats.0.contains_key(what));
        self.watch.check_answers(&sim.world.core().bus, self.plan.configured, orderly)?;
        self.watch.check_told(&sim.world.core().queue.sent_away)?;
        self.watch.ends_by_word().into_iter().for_each(|word| sim.stats.count(word));
        sim.stats.add("asked", self.sources.state().asked.len() as u64);
        sim.stats.add("given up", self.watch.given_up.len() as u64);
        let foreign = sim.world.core().bus.firsts().any(|publication| publication.entry.source != SOURCE);
        if foreign || (!self.plan.configured && !services(&sim.world.core().table)?.is_empty()) {
            return Err("something came of what is nobody's".into());
        }
        if sim.rng.chance(sim::PAST) { sim.outlive(self) } else { Ok(()) }
    }
}
