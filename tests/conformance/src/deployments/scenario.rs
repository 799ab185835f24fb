//! Deployments in the simulation: who does what, and what must hold.

use super::check::{self, Watch};
use super::crew::{self, Fate, Heard, Say, lock};
use super::plan::{self, Edit};
use super::tags::Pushed;
use super::{Both, Plant, Starter, both};
use crate::sim::{self, Outcome, Scenario, Sim, Standing, Stats, Told, Violation};
use keelway_domain::deployments::definition::Definition;
use keelway_domain::deployments::registry::{ArtifactSource, Origin};
use keelway_domain::deployments::{Command, Config, QUIET};
use keelway_domain::event::CloudEvent;
use keelway_domain::note::Note;
use keelway_domain::stored::Stored;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::deployments::configs::Wanted;
use keelway_engine::deployments::images::Push;
use keelway_engine::deployments::{Address, Message, NAME, keys};
use keelway_engine::protocol::{Handled, Inbox};
use keelway_world::World;
use keelway_world::bus::Publication;
use keelway_world::deployments::Waiting;
use keelway_world::exec::{Task, block_on};
use keelway_world::queue::{Parcel, Received};
use keelway_world::rng::Rng;
use keelway_world::table::{Change, Table};
use keelway_world::worker::Worker;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// So many deployers at most are drawn; then those at the end come.
const MOST_DEPLOYERS: usize = 40;

/// What somebody does.
#[derive(Debug, Clone)]
pub enum Action {
    /// An image was pushed: to this tag, its digest, and when.
    Push(&'static str, u64, Timestamp),
    /// Somebody applies the config, changed.
    Apply(usize, Edit),
    /// Somebody deletes it.
    Delete(usize),
    /// Somebody asks for something. The same number is the same command.
    Ask(usize, Command, u64),
    /// An alarm goes on or off.
    Alarm(usize, bool),
    /// A task of a sequence names the config: a deployment, or a rollback.
    Task(usize, &'static str, u64),
    /// A sequence does not wait for its task any more; and whether somebody tells so.
    Over(usize, Waiting, bool),
    /// The trigger of a task comes again.
    Again(Box<CloudEvent>),
    /// A deployer says something.
    Deployer(usize, Say),
}

/// One seed's configs: they share their tags.
pub struct Deploying {
    pub(super) configs: Vec<(Address, Definition)>,
    pub(super) plan: Vec<(plan::When, Action)>,
    pub(super) crew: crew::Shared,
    pub(super) starter: Starter,
    pub(super) watch: Watch,
    /// What the tags point to.
    pub(super) pushed: Pushed,
    /// What was published: by config, version and attempt, the ends of the types.
    pub(super) told: BTreeMap<(String, u64, u64), BTreeSet<String>>,
    /// The tasks that were triggered: whose answers they may get, and the ids of those they got.
    pub(super) tasks: BTreeMap<String, BTreeMap<String, BTreeSet<String>>>,
    pub(super) answers_to_tasks: BTreeSet<String>,
    /// The executions with these tasks.
    pub(super) waiting: Vec<Waiting>,
    /// The triggers of tasks that no sequence waits for any more.
    pub(super) over: BTreeSet<String>,
    pub(super) quiet: bool,
    /// Many things happen at the same moments.
    at_once: bool,
    /// Whether people set everything free at the end.
    pub(super) forgiving: bool,
    pub(super) commands: u64,
    pub(super) plant: Option<Plant>,
}

/// Runs one seed.
///
/// # Errors
/// The first invariant that is violated.
pub fn simulate(seed: u64, plant: Option<Plant>, trace: bool) -> Result<Stats, Violation> {
    sim::simulate(seed, |rng| plan::draw(rng, plant), trace)
}

/// Runs one seed without a sweep: everything comes to rest all the same, because no message is lost. Of every second seed,
/// requests take no time, and people, registries and alarms act at the same moments.
///
/// # Errors
/// The first invariant that is violated.
pub fn simulate_without_sweeps(seed: u64, plant: Option<Plant>, trace: bool) -> Result<Stats, Violation> {
    let draw = |rng: &mut Rng| {
        let (mut scenario, troubles) = plan::draw(rng, plant);
        let mut troubles = troubles.without_sweeps();
        scenario.at_once = seed % 2 == 1;
        if scenario.at_once {
            troubles.tick = Span(0);
        }
        (scenario, troubles)
    };
    sim::simulate(seed, draw, trace)
}

impl Deploying {
    /// With these configs and this plan.
    pub(super) fn new(configs: Vec<(Address, Definition)>, plan: Vec<(plan::When, Action)>, plant: Option<Plant>) -> Self {
        let watch = Watch::new(&configs.iter().map(|(to, _)| to.clone()).collect::<Vec<_>>());
        Self {
            configs,
            plan,
            crew: crew::Shared::default(),
            starter: Starter::default(),
            watch,
            pushed: Pushed::default(),
            told: BTreeMap::new(),
            tasks: BTreeMap::new(),
            answers_to_tasks: BTreeSet::new(),
            waiting: vec![],
            over: BTreeSet::new(),
            quiet: false,
            at_once: false,
            forgiving: true,
            commands: 1000,
            plant,
        }
    }

    pub(super) fn state(&self, world: &World, place: usize) -> Option<Arc<Config>> {
        let core = world.core();
        let item = core.table.peek(&keys::config(&self.configs[place].0))?;
        check::state(item).ok()
    }

    pub(super) fn ask(&mut self, sim: &mut Sim<Self>, place: usize, command: Command, id: u64) {
        let note = Note { by: "ann".into(), at: sim.world.now(), id, ..Note::default() };
        let message = Message::Command { to: self.configs[place].0.clone(), command, note };
        sim.world.enqueue(NAME, Parcel::Own(message.letter().body));
    }

    /// Whether it tells of an alarm of which its config has not heard. The config did not watch the alarm then, or was not there,
    /// if only for the minute by which clocks differ: what was told since it is there changes it once.
    fn is_news(&self, world: &World, parcel: &Parcel) -> bool {
        let Parcel::Own(text) = parcel else { return false };
        let Ok(Message::Alarm { to, alarm, at, .. }) = Message::from_json(text) else { return false };
        let place = self.configs.iter().position(|(of, _)| *of == to);
        let x = place.and_then(|place| self.state(world, place));
        x.is_some_and(|x| x.alarms.get(&alarm).is_none_or(|(_, since)| *since < at))
    }

    fn push(&mut self, sim: &mut Sim<Self>, action: Action) {
        let Action::Push(tag, digest, at) = action else { return };
        let image = format!("registry/shop@sha256:{digest:04}");
        self.pushed.push(tag, at, &image);
        let push = Push { tag: tag.into(), image, at, by: String::new() };
        sim.work(self, action, move |engine: Arc<Both>| {
            Box::pin(async move { engine.decides.pushed("shop", "images", &push).await.map(|_| None) })
        });
    }

    fn apply(&mut self, sim: &mut Sim<Self>, place: usize, edit: Edit) {
        edit.change(&mut self.configs[place].1);
        let (to, definition) = self.configs[place].clone();
        sim.work(self, Action::Apply(place, Edit::Again), move |engine: Arc<Both>| Box::pin(apply(engine, to, definition)));
    }

    /// A deployer says something to whoever serves it.
    fn say(&mut self, sim: &mut Sim<Self>, who: usize, say: Say) {
        let (call, place, n) = {
            let mut crew = lock(&self.crew);
            if crew.all[who].gone {
                return;
            }
            let call = crew.call(who, say);
            (call, crew.all[who].place, crew.all[who].n)
        };
        let (to, crew, sent) = (self.configs[place].0.clone(), self.crew.clone(), sim.world.now());
        sim.work(self, Action::Deployer(who, say), move |engine: Arc<Both>| -> Task<Outcome> {
            Box::pin(async move {
                let told = engine.carries.say(&to, n, &call).await?;
                lock(&crew).hear(who, say, sent, &told);
                Ok(None)
            })
        });
    }

    /// A deployer reacts to what it heard.
    fn react(&mut self, sim: &mut Sim<Self>, heard: Heard) {
        let at = (sim.world.now(), self.quiet);
        let next = lock(&self.crew).next(&mut sim.rng, heard, at);
        if let Some((at, say)) = next {
            sim.plan(at, Action::Deployer(heard.who, say));
        }
    }

    pub(super) fn hire(&mut self, sim: &mut Sim<Self>, place: usize, n: u64, fate: Fate) {
        let lease = *sim.rng.pick(&[Span::seconds(60), Span::seconds(60), Span::seconds(20), Span::minutes(5)]);
        let beats = sim.rng.below(5) as u32;
        let beats = if matches!(fate, Fate::ComesBack | Fate::GoesOn | Fate::Dies) { beats + 2 } else { beats };
        let who = {
            let mut crew = lock(&self.crew);
            let who = crew.hire(place, n, fate, (lease, beats));
            crew.all[who].wraps = self.configs[place].1.wraps();
            who
        };
        let at = if self.quiet { sim.world.now() } else { sim.world.now() + sim.a_while(60) };
        sim.plan(at, Action::Deployer(who, Say::Claim));
    }

    /// Work is offered: some deployers come, at the same time or later.
    fn offered(&mut self, sim: &mut Sim<Self>, place: usize, n: u64) {
        if self.quiet || lock(&self.crew).all.len() > MOST_DEPLOYERS {
            return;
        }
        for _ in 0..*sim.rng.pick(&[0, 1, 1, 1, 2, 3]) {
            let fate = *sim.rng.pick(&Fate::ALL);
            let fate = if sim.rng.chance(40.0) { Fate::Succeeds } else { fate };
            self.hire(sim, place, n, fate);
        }
    }
}

async fn apply(engine: Arc<Both>, to: Address, definition: Definition) -> Outcome {
    let source = definition.template.to_string();
    let wanted = Wanted { definition: &definition, source: &source, by: "ann", request: None, over: None };
    engine.decides.apply(&to, &wanted).await.map(|_| None)
}

impl Scenario for Deploying {
    type Engine = Both;
    type Action = Action;

    fn engine(&self, ports: Worker) -> Arc<Both> {
        Arc::new(both(&ports, &self.starter, self.plant))
    }
    fn prepare(&mut self, world: &World) {
        let engine = both(&world.worker(0), &self.starter, None);
        let source = ArtifactSource {
            from: Origin::Webhook { secret: "hook".into() },
            tags: BTreeMap::new(),
            images: vec![],
            vouched: false,
        };
        drop(block_on(engine.decides.apply_source(&Address::new("shop", "images"), &source, "")));
    }
    fn schedule(&mut self, sim: &mut Sim<Self>) {
        self.watch.skew = sim.troubles.skew;
        self.watch.now = sim.world.now();
        lock(&self.crew).margin = Span(2 * sim.troubles.skew.0);
        for (when, action) in std::mem::take(&mut self.plan) {
            let (mut span, mut action) = (when.span(sim), action);
            if self.at_once {
                span = Span(span.0 - span.0 % QUIET.0);
                if let Action::Push(_, _, at) = &mut action {
                    *at = Timestamp(at.0 - at.0 % QUIET.0);
                }
            }
            sim.plan(sim.world.now() + span, action);
        }
    }
    fn act(&mut self, sim: &mut Sim<Self>, action: Action) {
        match action {
            Action::Push(..) => self.push(sim, action),
            Action::Apply(place, edit) => self.apply(sim, place, edit),
            Action::Delete(place) => {
                let to = self.configs[place].0.clone();
                sim.work(self, action, move |engine: Arc<Both>| {
                    Box::pin(async move { engine.decides.delete(&to).await.map(|_| None) })
                });
            }
            Action::Ask(place, command, id) => {
                // A client that got no answer asks again.
                if sim.rng.chance(10.0) {
                    let later = sim.world.now() + sim.a_while(100);
                    sim.plan(later, Action::Ask(place, command.clone(), id));
                }
                self.ask(sim, place, command, id);
            }
            Action::Alarm(place, on) => {
                let at = sim.world.now();
                let message = Message::Alarm { to: self.configs[place].0.clone(), alarm: "errors".into(), on, at };
                sim.world.enqueue(NAME, Parcel::Own(message.letter().body));
            }
            Action::Task(place, name, id) => self.task(sim, place, name, id),
            Action::Over(place, waiting, told) => self.over(sim, place, &waiting, told),
            Action::Again(event) => drop(sim.world.emit::<Both>(*event)),
            Action::Deployer(who, say) => self.say(sim, who, say),
        }
    }
    /// Whoever got no answer asks again, or is gone for good.
    fn crashed(&mut self, sim: &mut Sim<Self>, action: Action) {
        let now = sim.world.now();
        match action {
            // Where it stops between its write and what follows from it, nobody but the sweep would know.
            Action::Deployer(who, _) if !self.quiet && !sim.troubles.unswept && sim.rng.chance(20.0) => lock(&self.crew).dies(who),
            action => sim.plan(now, action),
        }
    }
    fn meanwhile(&mut self, sim: &mut Sim<Self>) {
        self.watch.now = sim.world.now();
        let heard = std::mem::take(&mut lock(&self.crew).heard);
        for heard in heard {
            self.react(sim, heard);
        }
    }
    fn begins(&self, engine: &Both, received: Option<&Received>) {
        Inbox::ports(engine).begin(received);
    }
    fn may_repeat(&self, _: u64, event: &str) -> bool {
        self.answers_to_tasks.contains(event)
    }
    fn published(&mut self, sim: &mut Sim<Self>, publication: &Publication) {
        let event: Value = serde_json::from_str(&publication.entry.detail).unwrap_or_default();
        let data = &event["data"];
        let ty = event["type"].as_str().unwrap_or_default().to_owned();
        if let Some(triggered) = event["triggeredid"].as_str() {
            let answers = self.tasks.entry(triggered.to_owned()).or_default();
            let kind = ty.rsplit('.').next().unwrap_or_default().to_owned();
            answers.entry(kind).or_default().insert(publication.id.clone());
        }
        let Some(what) = ty.strip_prefix("dev.keelway.deployment.").filter(|_| data["version"].is_u64()) else { return };
        let (name, n) = (data["config"].as_str().unwrap_or_default(), data["version"].as_u64().unwrap_or_default());
        let attempt = data["attempt"].as_u64().unwrap_or_default();
        self.told.entry((name.to_owned(), n, attempt)).or_default().insert(what.to_owned());
        if what == "requested"
            && let Some(place) = self.configs.iter().position(|(to, _)| to.name == name)
        {
            self.offered(sim, place, n);
        }
    }
    fn acknowledged(&mut self, sim: &mut Sim<Self>, _: u64, _: Received, handled: Handled) -> Result<(), String> {
        sim.stats.count(match handled {
            Handled::Committed => "committed",
            Handled::Settled => "settled",
            Handled::Stale => "stale",
            Handled::Invalid => "refused commands",
            Handled::Recorded => "recorded",
        });
        lock(&self.crew).wrong.take().map_or(Ok(()), Err)
    }
    fn changed(&mut self, changes: &[Change], table: &Table, _: u64) -> Result<(), String> {
        let mut crew = lock(&self.crew);
        if let Some(wrong) = crew.wrong.take() {
            return Err(wrong);
        }
        changes.iter().try_for_each(|change| self.watch.changed(change, table, &mut crew))
    }
    fn come_to_an_end(&mut self, sim: &mut Sim<Self>) -> Result<(), String> {
        self.end_everything(sim)
    }
    fn at_rest(&mut self, sim: &mut Sim<Self>) -> Result<(), String> {
        self.check_rest(sim)?;
        if sim.rng.chance(sim::PAST) { sim.outlive(self) } else { Ok(()) }
    }
    /// No deployer is started, either.
    fn standing(&self, world: &World) -> Standing {
        let mut standing = sim::standing(world);
        standing.insert("started".into(), self.starter.started().len() as i64);
        standing
    }
    /// Without what is news, and not of the past.
    fn past(&self, sim: &Sim<Self>, days: i64) -> (Vec<Told>, Vec<Told>) {
        if days > 1 {
            // No execution waits for a year, and no config remembers a task for that long.
            self.give_up_tasks(sim);
        }
        let (events, mut own): (Vec<Told>, Vec<Told>) =
            sim.told.iter().cloned().partition(|(_, parcel)| matches!(parcel, Parcel::Event(_)));
        own.retain(|(_, parcel)| !self.is_news(&sim.world, parcel));
        (events, own)
    }
}
