//! The sequences engine in the simulation: several executions on two lanes, and everybody around them.

mod actors;
mod check;
mod crowd;
mod expiry;
mod extras;
mod freeze;
mod hand;
mod lanes;
mod people;
mod plan;
mod planted;
mod repeats;
mod rest;
mod still;
mod timetable;
mod versions;

pub use plan::Plan;
pub use planted::Plant;
pub use still::nobody_waits;
pub use versions::side_by_side;

use crate::sim::{self, Scenario, Sim, Stats, Violation};
use actors::{Action, Tag};
use check::Watch;
use hand::Hand;
use keelway_engine::item::Item;
use keelway_engine::ports::{Condition, Store, Write};
use keelway_engine::projects;
use keelway_engine::protocol::Handled;
use keelway_engine::sequences::{Limits, NAME, Sequences};
use keelway_world::World;
use keelway_world::bus::Publication;
use keelway_world::exec::block_on;
use keelway_world::queue::{Parcel, Received};
use keelway_world::rng::Rng;
use keelway_world::table::{Change, Table};
use keelway_world::worker::Worker;
use plan::{PROJECT, REVISION};
use planted::{Planted, Rollout, Seen};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One seed's sequences.
pub struct Shipyards {
    plan: Plan,
    plant: Option<Plant>,
    watch: Watch,
    /// How inputs are meant, by message.
    tags: HashMap<u64, Tag>,
    /// Triggers, and which of their executors have reacted.
    reacted: HashSet<(String, usize)>,
    /// Inputs that were acknowledged, and what the engine said.
    acknowledged: Vec<(Tag, Received, Handled)>,
    /// Somebody's order was lost on the way in; only the sweep can repair that.
    order_lost: bool,
    /// What was open waited for longer than history is kept.
    expired: bool,
    /// What all workers' ports saw.
    seen: Arc<Mutex<Seen>>,
    /// Whether two versions handle the messages.
    rollout: Option<Arc<Rollout>>,
}

/// Runs one seed.
///
/// # Errors
/// The first invariant that is violated.
pub fn simulate(seed: u64, plant: Option<Plant>, trace: bool) -> Result<Stats, Violation> {
    let scenario = |rng: &mut Rng| {
        let (plan, troubles) = Plan::of(rng);
        (Shipyards::new(plan, plant), troubles)
    };
    sim::simulate(seed, scenario, trace)
}

/// Runs one seed without a sweep: everything comes to rest all the same, because no message is lost. Windows do not change: whoever
/// applies the same shipyard again tells nobody of them, and that is left to the sweep.
///
/// # Errors
/// The first invariant that is violated.
pub fn simulate_without_sweeps(seed: u64, plant: Option<Plant>, trace: bool) -> Result<Stats, Violation> {
    let scenario = |rng: &mut Rng| {
        let (mut plan, troubles) = Plan::of(rng);
        plan.extras.windows.truncate(1);
        plan.expiry = false;
        (Shipyards::new(plan, plant), troubles.without_sweeps())
    };
    sim::simulate(seed, scenario, trace)
}

impl Shipyards {
    fn new(plan: Plan, plant: Option<Plant>) -> Self {
        Self {
            plan,
            plant,
            watch: Watch::default(),
            tags: HashMap::new(),
            reacted: HashSet::new(),
            acknowledged: vec![],
            order_lost: false,
            expired: false,
            seen: Arc::default(),
            rollout: None,
        }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Scenario for Shipyards {
    type Engine = Hand;
    type Action = Action;

    fn engine(&self, ports: Worker) -> Arc<Self::Engine> {
        let retention = if self.plan.expiry { expiry::RETENTION } else { Limits::default().retention };
        let max_executions = self.plan.most.unwrap_or(Limits::default().max_executions);
        // With two versions, nobody asks what is open.
        let polled = self.rollout.is_none();
        let limits = Limits { retention, max_executions, polled, ..Limits::default() };
        let ports = Planted::new(&ports, self.plant, (self.seen.clone(), self.rollout.clone()));
        let engine = Sequences::new(ports.ports().clone(), limits);
        Arc::new(Hand { engine, ports, schedules: !self.plan.extras.schedules.is_empty() })
    }
    /// The project, as applying it would have left it.
    fn prepare(&mut self, world: &World) {
        let worker = world.worker(0);
        let project = check::project();
        let revisions = freeze::revisions(&self.plan.extras.windows);
        let text = serde_json::to_string(&revisions[REVISION]).unwrap_or_default();
        let mut items = vec![
            Item::new(projects::keys::listed(PROJECT)),
            Item::new(projects::keys::project(&project)).with("v", 1i64).with("rev", REVISION),
            Item::new(projects::keys::revision(&project, REVISION)).with("j", text),
        ];
        items.extend((self.plan.extras.actions > 0).then(|| repeats::actions(self.plan.extras.actions)));
        if !self.plan.extras.windows.is_empty() {
            self.seen().judges = revisions.len() > 1;
            self.watch.freeze.revisions = revisions;
        }
        for item in items {
            #[expect(clippy::unwrap_used, reason = "the twin takes these items")]
            block_on(worker.write(&Write::Put(item, Condition::Always))).unwrap();
        }
        if self.plan.crowd {
            crowd::gather(world);
        }
    }
    fn schedule(&mut self, sim: &mut Sim<Self>) {
        sim.note(&format!("{:?}", self.plan));
        self.watch.staged = sim.troubles.staged;
        self.watch.most = self.plan.most;
        self.watch.extended = self.plan.extras.any();
        self.schedule_plan(sim);
        self.schedule_extras(sim);
    }
    fn act(&mut self, sim: &mut Sim<Self>, action: Action) {
        self.carry_out(sim, action);
    }
    fn published(&mut self, sim: &mut Sim<Self>, publication: &Publication) {
        self.on_publication(sim, publication);
    }
    fn acknowledged(&mut self, sim: &mut Sim<Self>, id: u64, received: Received, handled: Handled) -> Result<(), String> {
        self.on_acknowledged(sim, id, received, handled)
    }
    fn changed(&mut self, changes: &[Change], table: &Table, time: u64) -> Result<(), String> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        self.watch.look(changes, table, (time, &seen))
    }
    fn may_repeat(&self, cause: u64, _: &str) -> bool {
        self.watch.repeats(cause)
    }
    fn come_to_an_end(&mut self, sim: &mut Sim<Self>) -> Result<(), String> {
        if let Some(rollout) = &self.rollout {
            rollout.complete();
        }
        self.end_everything(sim)
    }
    fn at_rest(&mut self, sim: &mut Sim<Self>) -> Result<(), String> {
        if let Some(rollout) = &self.rollout {
            sim.stats.add("waited for the later version", rollout.waited());
        }
        self.check_rest(sim)?;
        self.replay(sim)
    }
    fn meanwhile(&mut self, sim: &mut Sim<Self>) {
        if self.plan.pull && sim.rng.chance(5.0) {
            self.poll_for_work(sim);
        }
    }
    fn still(&mut self, sim: &mut Sim<Self>) -> Result<(), String> {
        self.nobody_waits_for_the_sweep(sim)
    }
    fn answered(&mut self, sim: &mut Sim<Self>, action: Action, handled: Handled) {
        let Action::Post(event) = action else { return };
        sim.stats.count("answers over HTTP");
        // When it was accepted, only the function knows.
        let handled = if handled == Handled::Stale { Handled::Settled } else { handled };
        let parcel = Parcel::Event(*event);
        let received = Received { engine: NAME.into(), sent: sim.world.now(), parcel, letter: None, again: false };
        self.acknowledged.push((Tag::Honest, received, handled));
    }
    fn crashed(&mut self, sim: &mut Sim<Self>, action: Action) {
        if let Action::Post(event) = action {
            // Whoever gets no answer sends the same again, one way or the other.
            let now = sim.world.now();
            let again = if sim.rng.chance(70.0) { Action::Post(event) } else { Action::Emit(event, Tag::Honest) };
            return sim.plan(now, again);
        }
        if matches!(action, Action::Emit(..) | Action::Decide(..)) {
            return;
        }
        // Whoever applies the same shipyard again tells nobody of its windows: that is left to the sweep.
        self.order_lost |= matches!(action, Action::Apply(_)) && !sim.troubles.unswept;
        if sim.troubles.unswept || sim.rng.chance(50.0) {
            let now = sim.world.now();
            sim.plan(now, action);
        } else {
            self.order_lost = true;
        }
    }
    fn begins(&self, engine: &Self::Engine, received: Option<&Received>) {
        engine.ports.begin(received);
    }
    fn acknowledged_early(&self, engine: &Self::Engine) -> bool {
        self.plant == Some(Plant::AcknowledgeAfterCommit) && engine.ports.committed()
    }
}
