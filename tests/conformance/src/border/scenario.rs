//! The two projects in the simulation: who does what, and where what is published goes.

use super::check::{Lets, Watch, When};
use super::hand::Hand;
use super::plan::{self, Plan};
use super::planted::{Plant, Planted};
use super::yard::{Shared, lock};
use super::{OURS, THEIRS, project};
use crate::engines;
use crate::sim::{self, Scenario, Sim, Stats, Violation};
use keelway_domain::event::CloudEvent;
use keelway_engine::projects::{NewShipyard, ProjectSettings};
use keelway_engine::protocol::Handled;
use keelway_world::World;
use keelway_world::bus::Publication;
use keelway_world::exec::block_on;
use keelway_world::queue::Received;
use keelway_world::rng::Rng;
use keelway_world::table::{Change, Table};
use keelway_world::worker::Worker;
use serde_json::Value;
use std::sync::Arc;

/// What somebody does. A number is that of the text that comes with it.
#[derive(Debug, Clone)]
pub enum Action {
    /// The honest project says what others may do there.
    Consents(usize),
    /// An administrator of the installation says what the hostile project may use.
    Policy(usize),
    /// Somebody who may only trigger starts the delivery of a stage of the honest project, and says a result with it.
    OurTrigger(u64, &'static str, Option<&'static str>),
    /// Somebody who may only trigger wants a deployment of the honest project's repeated behind its approval.
    Retry(usize),
    /// A person of the honest project approves what waits in a context.
    Approve(String, String),
    /// The only one who may approve a promotion of the honest project does.
    ApprovePromotion(String),
    /// Somebody of the same name at a provider wants to.
    ApproveAsAnother,
    /// An image of the honest project is pushed.
    Push(u64),
    /// Something else runs in the honest project's cluster.
    Runs(u64),
    /// A cluster is read.
    Look(&'static str),
    /// An executor registers: the honest project's, or the other one's under its name.
    Register(bool, u64),
    /// The hostile project triggers a sequence of its own, and names the other one's config in the payload.
    TheirTrigger(&'static str, u64),
    /// It applies a config that watches and moves the other one's tag.
    Reaching(u64),
    /// It applies a config for a function: its own, or the other one's.
    Moving(u64, bool),
    /// It reports a revision, which its pipeline promotes by the other one's sequence.
    Report(u64),
    /// It has that taken back.
    GiveUp(u64),
    /// It puts the trigger of a task on the bus, for the other one's config.
    ForgedTask(u64),
    /// It reports over the bus what the other one's config runs.
    ForgedFact(u64),
    /// It sends what the other one has published, in its own name.
    Copy(u64),
    /// It lists configs with a key that names the other one.
    Page,
    /// An executor answers.
    Answer(Box<CloudEvent>),
}

/// One seed's projects.
pub struct Neighbours {
    pub(super) plan: Plan,
    pub(super) plant: Option<Plant>,
    pub(super) yard: Shared,
    pub(super) watch: Watch,
    /// The contexts of the honest project's deliveries that somebody triggered by hand.
    pub(super) deliveries: Vec<String>,
    /// What the honest project has published, for whoever copies it.
    pub(super) heard: Vec<CloudEvent>,
    /// What the hostile project's texts are let in by, of which the plan knows nothing.
    pub(super) texts: u64,
    pub(super) quiet: bool,
}

/// Runs one seed.
///
/// # Errors
/// The first invariant that is violated.
pub fn simulate(seed: u64, plant: Option<Plant>, trace: bool) -> Result<Stats, Violation> {
    let scenario = |rng: &mut Rng| {
        let (plan, troubles) = plan::draw(rng);
        (Neighbours::new(plan, plant), troubles)
    };
    sim::simulate(seed, scenario, trace)
}

/// Runs one seed without a sweep: the honest project's work ends all the same, because no message is lost.
///
/// # Errors
/// The first invariant that is violated.
pub fn simulate_without_sweeps(seed: u64, plant: Option<Plant>, trace: bool) -> Result<Stats, Violation> {
    let scenario = |rng: &mut Rng| {
        let (plan, troubles) = plan::draw(rng);
        (Neighbours::new(plan, plant), troubles.without_sweeps())
    };
    sim::simulate(seed, scenario, trace)
}

impl Neighbours {
    fn new(plan: Plan, plant: Option<Plant>) -> Self {
        let watch = Watch::new(plan.marks.clone());
        Self { plan, plant, yard: Shared::default(), watch, deliveries: vec![], heard: vec![], texts: 1000, quiet: false }
    }

    /// The number of a new text of the hostile project.
    pub(super) fn text(&mut self, lets: Lets) -> u64 {
        self.texts += 1;
        self.watch.marks.insert(self.texts, lets);
        self.texts
    }

    /// The settings of one of the projects.
    pub(super) fn settings(&self, name: &str, n: usize) -> ProjectSettings {
        use keelway_domain::border::Update;
        let plain = ProjectSettings::plain(project(name));
        if name == OURS {
            ProjectSettings { consents: Update::Set(self.plan.consents[n].clone()), ..plain }
        } else {
            ProjectSettings { policy: Update::Set(self.plan.policies[n].clone()), ..plain }
        }
    }

    fn when(&self, now: u64) -> When {
        When { since: lock(&self.yard).since, now }
    }

    /// Looks at what was done outside.
    fn look_outside(&mut self, world: &World) -> Result<(), String> {
        let (looks, moves, wrong) = {
            let mut yard = lock(&self.yard);
            (std::mem::take(&mut yard.looks), std::mem::take(&mut yard.moves), yard.wrong.take())
        };
        let now = world.core().request_count();
        looks.iter().try_for_each(|look| self.watch.looked(look, now))?;
        moves.iter().try_for_each(|moved| self.watch.moved(moved, now))?;
        wrong.map_or(Ok(()), Err)
    }
}

impl Scenario for Neighbours {
    type Engine = Hand;
    type Action = Action;

    fn engine(&self, ports: Worker) -> Arc<Hand> {
        Arc::new(Hand::new(Planted::new(&ports, self.plant, self.yard.clone())))
    }
    fn prepare(&mut self, world: &World) {
        use super::manifests::{OUR_SHIPYARD, THEIR_SHIPYARD};
        let hand = Hand::new(Planted::new(&world.worker(0), None, self.yard.clone()));
        for (name, shipyard) in [(OURS, &OUR_SHIPYARD), (THEIRS, &THEIR_SHIPYARD)] {
            let applied = block_on(hand.engines.sequences.projects().apply(&self.settings(name, 0)));
            applied.unwrap_or_else(|error| panic!("{error}"));
            let new = NewShipyard { revision: "r1", source: "", shipyard, replaces: None, by: "" };
            block_on(hand.engines.sequences.apply_shipyard(&project(name), new)).unwrap_or_else(|error| panic!("{error}"));
        }
        block_on(self.furnish(&hand)).unwrap_or_else(|error| panic!("{error}"));
        let core = world.core();
        self.watch.begin(core.request_count(), |key| core.table.peek(key).map(|item| (**item).clone()));
    }
    fn schedule(&mut self, sim: &mut Sim<Self>) {
        for (requests, action) in std::mem::take(&mut self.plan.deeds) {
            let at = sim.world.now() + sim.a_while(requests);
            sim.plan(at, action);
        }
    }
    fn act(&mut self, sim: &mut Sim<Self>, action: Action) {
        self.carry_out(sim, action);
    }
    /// Whoever got no answer does it again.
    fn crashed(&mut self, sim: &mut Sim<Self>, action: Action) {
        let now = sim.world.now();
        sim.plan(now, action);
    }
    fn begins(&self, hand: &Hand, received: Option<&Received>) {
        hand.ports.begin(received);
    }
    /// Other simulations look at who publishes what how often.
    fn may_repeat(&self, _: u64, _: &str) -> bool {
        true
    }
    fn published(&mut self, sim: &mut Sim<Self>, publication: &Publication) {
        let detail: Value = serde_json::from_str(&publication.entry.detail).unwrap_or_default();
        let when = self.when(sim.world.core().request_count());
        if let Err(wrong) = self.watch.published(publication, &detail, when) {
            lock(&self.yard).wrong.get_or_insert(wrong);
        }
        if let Some(event) = engines::published(publication) {
            engines::route(&sim.world, &event);
            self.react(sim, event);
        }
    }
    fn meanwhile(&mut self, sim: &mut Sim<Self>) {
        if let Err(wrong) = self.look_outside(&sim.world) {
            lock(&self.yard).wrong.get_or_insert(wrong);
        }
        if !self.quiet {
            self.people(sim);
        }
    }
    fn acknowledged(&mut self, sim: &mut Sim<Self>, _: u64, _: Received, handled: Handled) -> Result<(), String> {
        sim.stats.count(match handled {
            Handled::Committed => "committed",
            Handled::Settled => "settled",
            Handled::Stale => "stale",
            Handled::Invalid => "refused",
            Handled::Recorded => "recorded",
        });
        self.look_outside(&sim.world)
    }
    fn changed(&mut self, changes: &[Change], _: &Table, time: u64) -> Result<(), String> {
        let when = self.when(time);
        changes.iter().try_for_each(|change| self.watch.changed(change, when))?;
        lock(&self.yard).wrong.take().map_or(Ok(()), Err)
    }
    fn come_to_an_end(&mut self, sim: &mut Sim<Self>) -> Result<(), String> {
        self.end_everything(sim)
    }
    fn at_rest(&mut self, sim: &mut Sim<Self>) -> Result<(), String> {
        self.look_outside(&sim.world)?;
        sim.stats.merge(&self.watch.stats);
        sim.stats.add("refused to deploy", lock(&self.yard).refused);
        self.check_rest(sim)
    }
}
