//! A delivery in the simulation: who does what, and where what is published goes.

use super::check::Watch;
use super::hand::{Hand, Shared, lock};
use super::manifests;
use super::plan::{self, Plan};
use super::planted::{Plant, Planted};
use super::{PROJECT, STAGES, clusters, config, deleted, namespace, pipeline, project, tags};
use crate::deployments::Pushed;
use crate::deployments::crew::{self, Say};
use crate::engines;
use crate::promotions::judge::Verdicts;
use crate::sim::{self, Outcome, Scenario, Sim, Stats, Told, Violation};
use keelway_domain::border::Update;
use keelway_domain::deployments::Command as Ask;
use keelway_domain::deployments::definition::Definition;
use keelway_domain::event::CloudEvent;
use keelway_domain::promotions::{At, Command};
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::deployments;
use keelway_engine::deployments::configs::Wanted;
use keelway_engine::projects::{NewShipyard, ProjectSettings};
use keelway_engine::protocol::Handled;
use keelway_engine::refusal::Refusal;
use keelway_engine::sequences::commands::Control;
use keelway_world::World;
use keelway_world::bus::Publication;
use keelway_world::exec::block_on;
use keelway_world::queue::{Parcel, Received};
use keelway_world::rng::Rng;
use keelway_world::table::{Change, Table};
use keelway_world::worker::Worker;
use std::collections::BTreeMap;
use std::sync::Arc;

/// So many messages are remembered, to be told again.
const MOST_TOLD: usize = 300;

/// What somebody does. A stage is meant by its number.
#[derive(Debug, Clone)]
pub enum Action {
    /// Somebody has a stage deliver an image, by its number.
    Deliver(usize, u64),
    /// An executor answers.
    Answer(Box<CloudEvent>),
    /// A person approves what waits in a context.
    Approve(String, String),
    /// The only one who may approve a promotion does.
    ApprovePromotion(At),
    /// A deployer says something.
    Deployer(usize, Say),
    /// Somebody pauses, resumes or aborts one of the sequences.
    Control(usize, Control),
    /// Somebody wants a sequence repeated.
    Repeat(usize),
    /// Somebody asks the pipeline for something.
    Flow(Command),
    /// Somebody asks a stage's config for something.
    Ask(usize, Ask),
    /// An alarm goes on or off.
    Alarm(usize, bool),
    /// Somebody applies a stage's config with another environment.
    Apply(usize, u64),
    /// Somebody deletes it.
    Delete(usize),
    /// Somebody applies the pipeline.
    ApplyFlow,
    /// Somebody deletes it.
    DeleteFlow,
    /// Somebody applies another shipyard.
    Shipyard(usize),
    /// What was handled comes once more.
    Past(usize),
    /// Something happens in clusters, or to them.
    Cluster(clusters::Act),
    /// An image is pushed.
    Push(tags::Push),
    /// One is deleted, or one of its tags.
    DeleteImage(deleted::Deletion),
}

/// One seed's delivery.
pub struct Delivering {
    pub(super) plan: Plan,
    pub(super) plant: Option<Plant>,
    pub(super) yard: Shared,
    pub(super) crew: crew::Shared,
    /// What evaluations come to.
    pub(super) verdicts: Verdicts,
    pub(super) watch: Watch,
    /// The contexts in which stages deliver.
    pub(super) contexts: Vec<String>,
    /// So many versions, and so many sequences, may have come from people.
    pub(super) asked: (usize, usize),
    /// The events that clients and executors have sent.
    pub(super) given: Vec<CloudEvent>,
    /// What was handled, by its queue: the past.
    pub(super) told: Vec<(String, Parcel)>,
    /// How often people have asked for an evaluation anew, by environment and run.
    pub(super) anew: BTreeMap<(String, u64), u32>,
    /// What the tags point to.
    pub(super) pushed: Pushed,
    /// What the registry has told of images.
    pub(super) registry: Vec<deleted::Told>,
    /// So many images were ready when a version was offered.
    pub(super) built: usize,
    /// Until then, clusters are observed; and whether the observer's clock ticks.
    pub(super) watched: Timestamp,
    pub(super) ticking: bool,
    /// What must never happen, and did.
    pub(super) wrong: Option<String>,
    /// Commands have numbers of their own.
    pub(super) commands: u64,
    pub(super) quiet: bool,
}

/// Runs one seed.
///
/// # Errors
/// The first invariant that is violated.
pub fn simulate(seed: u64, plant: Option<Plant>, trace: bool) -> Result<Stats, Violation> {
    let scenario = |rng: &mut Rng| {
        let (plan, troubles) = plan::draw(rng);
        (Delivering::new(plan, plant), troubles)
    };
    sim::simulate(seed, scenario, trace)
}

/// Applies a config.
pub(super) async fn apply(hand: &Hand, stage: &str, definition: &Definition) -> Outcome {
    let source = definition.template.to_string();
    let wanted = Wanted { definition, source: &source, by: "somebody", request: None, over: None };
    hand.engines.configs.apply(&config(stage), &wanted).await.map(|_| None)
}

impl Delivering {
    fn new(plan: Plan, plant: Option<Plant>) -> Self {
        let verdicts = Verdicts::default();
        verdicts.lock().verdicts.extend(plan.verdicts.iter().cloned());
        let yard = Shared::default();
        Self {
            plan,
            plant,
            yard: yard.clone(),
            crew: crew::Shared::default(),
            watch: Watch::new(verdicts.clone(), yard),
            verdicts,
            contexts: vec![],
            asked: (0, 0),
            given: vec![],
            told: vec![],
            anew: BTreeMap::new(),
            pushed: Pushed::default(),
            registry: vec![],
            built: 0,
            watched: Timestamp(0),
            ticking: false,
            wrong: None,
            commands: 1000,
            quiet: false,
        }
    }

    /// What is there from the beginning.
    async fn furnish(&mut self, hand: &Hand) -> Result<(), Refusal> {
        let shipyard = manifests::shipyard(&self.plan.shipyards[0]);
        hand.engines.sequences.projects().apply(&self.plan.project()).await?;
        let new = NewShipyard { revision: "r0", source: "", shipyard: &shipyard, replaces: None, by: "" };
        hand.engines.sequences.apply_shipyard(&project(PROJECT), new).await?;
        self.watch.shipyards.insert("r0".into(), shipyard);
        let promotions = self.plan.pipeline.environments.iter().filter_map(|environment| environment.promotion.as_ref());
        self.watch.expect(&self.plan.pipeline);
        self.watch.windows = promotions.flat_map(|settings| settings.windows.clone()).take(1).collect();
        self.furnish_tags(hand).await?;
        for (stage, definition) in STAGES.iter().zip(&self.plan.configs) {
            let consents = Update::Set(manifests::consents());
            let settings = ProjectSettings { consents, ..ProjectSettings::plain(project(&namespace(stage))) };
            hand.engines.sequences.projects().apply(&settings).await?;
            apply(hand, stage, definition).await?;
        }
        hand.engines.pipelines.apply(&pipeline(), &self.plan.pipeline, "").await?;
        self.furnish_clusters(hand).await?;
        Ok(())
    }
}

impl Scenario for Delivering {
    type Engine = Hand;
    type Action = Action;

    fn engine(&self, ports: Worker) -> Arc<Hand> {
        Arc::new(Hand::new(Planted::new(&ports, self.plant, self.yard.clone()), &self.verdicts))
    }
    fn prepare(&mut self, world: &World) {
        let hand = Hand::new(Planted::new(&world.worker(0), None, self.yard.clone()), &self.verdicts);
        block_on(self.furnish(&hand)).unwrap_or_else(|error| panic!("{error}"));
    }
    fn schedule(&mut self, sim: &mut Sim<Self>) {
        let margin = Span(2 * sim.troubles.skew.0);
        crew::lock(&self.crew).margin = margin;
        (self.watch.margin, self.watch.deployed.skew) = (margin, sim.troubles.skew);
        self.stir(sim);
        // Every version that an apply cuts, too, comes from people.
        self.asked.0 += STAGES.len();
        for (within, action) in std::mem::take(&mut self.plan.deeds) {
            let whole = Span::minutes(1).0;
            let within = if self.plan.at_once { Span(within.0 - within.0 % whole) } else { within };
            sim.plan(sim.world.now() + within, action);
        }
    }
    fn act(&mut self, sim: &mut Sim<Self>, action: Action) {
        self.carry_out(sim, action);
    }
    fn crashed(&mut self, sim: &mut Sim<Self>, action: Action) {
        self.interrupted(sim, action);
    }
    fn begins(&self, hand: &Hand, received: Option<&Received>) {
        hand.ports.begin(received);
    }
    /// Other simulations look at who publishes what how often.
    fn may_repeat(&self, _: u64, _: &str) -> bool {
        true
    }
    fn published(&mut self, sim: &mut Sim<Self>, publication: &Publication) {
        let Some(event) = engines::published(publication) else { return };
        if let Err(wrong) = self.watch.published(&event) {
            self.wrong.get_or_insert(wrong);
        }
        if event.ty.ends_with(".delivery.triggered") && !self.contexts.contains(&event.context.to_string()) {
            self.contexts.push(event.context.to_string());
        }
        engines::route(&sim.world, &event);
        self.react(sim, &event, publication.again);
    }
    fn meanwhile(&mut self, sim: &mut Sim<Self>) {
        self.watch.deployed.now = sim.world.now();
        self.roll_out(sim);
        let heard = std::mem::take(&mut crew::lock(&self.crew).heard);
        for heard in heard {
            let at = (sim.world.now(), self.quiet);
            let next = crew::lock(&self.crew).next(&mut sim.rng, heard, at);
            if let Some((at, say)) = next {
                sim.plan(at, Action::Deployer(heard.who, say));
            }
        }
        let started = std::mem::take(&mut lock(&self.yard).started);
        for (namespace, n) in started {
            self.offered(sim, &namespace, n);
        }
        if !self.quiet {
            self.people(sim);
        }
    }
    fn acknowledged(&mut self, sim: &mut Sim<Self>, _: u64, received: Received, handled: Handled) -> Result<(), String> {
        if self.told.len() < MOST_TOLD && received.letter.is_none() && received.engine != deployments::DEPLOYERS {
            self.told.push((received.engine, received.parcel));
        }
        sim.stats.count(match handled {
            Handled::Committed => "committed",
            Handled::Settled => "settled",
            Handled::Stale => "stale",
            Handled::Invalid => "refused",
            Handled::Recorded => "recorded",
        });
        self.wrong.take().map_or(Ok(()), Err)
    }
    fn changed(&mut self, changes: &[Change], table: &Table, _: u64) -> Result<(), String> {
        let mut crew = crew::lock(&self.crew);
        for change in changes {
            self.watch.deployed.changed(change, table, &mut crew)?;
            self.watch.changed(change, table)?;
        }
        self.wrong.take().or_else(|| crew.wrong.take()).map_or(Ok(()), Err)
    }
    fn still(&mut self, sim: &mut Sim<Self>) -> Result<(), String> {
        self.nobody_waits_for_the_sweep(sim)
    }
    fn come_to_an_end(&mut self, sim: &mut Sim<Self>) -> Result<(), String> {
        self.end_everything(sim)
    }
    fn at_rest(&mut self, sim: &mut Sim<Self>) -> Result<(), String> {
        self.check_rest(sim)?;
        sim.stats.merge(&self.watch.stats);
        sim.outlive(self)
    }
    /// The archive has what was published, too.
    fn past(&self, sim: &Sim<Self>, _: i64) -> (Vec<Told>, Vec<Told>) {
        let log: Vec<_> = sim.world.core().bus.log.clone();
        let events = log.iter().filter_map(engines::published).chain(self.given.iter().cloned());
        let taken = events.flat_map(|event| {
            let takers: Vec<_> = engines::takers(&event).collect();
            takers.into_iter().map(move |queue| (queue.to_owned(), Parcel::Event(event.clone())))
        });
        (taken.collect(), self.told.clone())
    }
}
