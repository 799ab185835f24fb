//! Promotions in the simulation: who does what, and what must hold.

use super::host::{Shared, State};
use super::{Both, app, definition, settings, target};
use crate::sim::{self, Scenario, Sim, Stats, Violation};
use keelway_domain::promotions::definition::{Definition, InFlight, Target};
use keelway_domain::promotions::observe::Observed;
use keelway_domain::promotions::{At, Command, Environment, Note, Phase, Pipeline};
use keelway_domain::time::Span;
use keelway_engine::promotions::observations::Fact;
use keelway_engine::promotions::{Address, Message, NAME, keys};
use keelway_engine::protocol::{Handled, Loaded};
use keelway_world::World;
use keelway_world::bus::Publication;
use keelway_world::exec::block_on;
use keelway_world::queue::{Parcel, Received};
use keelway_world::rng::Rng;
use keelway_world::table::{Change, Table};
use keelway_world::worker::Worker;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

const ENVIRONMENTS: [&str; 3] = ["dev", "staging", "prod"];
/// Rounds in which everything comes to rest once nothing goes wrong any more.
const ROUNDS: usize = 200;

/// What somebody does.
#[derive(Debug, Clone)]
pub enum Action {
    /// A target is seen to run a revision, healthy or not.
    Report(Target, String, bool),
    /// Somebody asks for something.
    Ask(usize, Command),
}

/// One seed's pipelines: they share their targets.
pub struct Promoting {
    pipelines: Vec<(Address, Definition)>,
    /// The targets of each environment.
    targets: usize,
    host: Shared,
    reports: Vec<Action>,
    asks: Vec<Action>,
    /// The newest version of the facts about each target.
    versions: BTreeMap<Target, i64>,
    /// What each target really runs.
    runs: BTreeMap<Target, (String, bool)>,
    /// What each target was healthy on, at some time: facts about different targets arrive in any order.
    healthy: BTreeSet<(Target, String)>,
    /// So many pull requests more are closed by people.
    closings: usize,
    /// Notifications and merges that were rolled out so far.
    rolled_out: usize,
    merged: BTreeSet<usize>,
    /// What each environment is to run: what was merged or told last.
    wanted: BTreeMap<String, String>,
    quiet: bool,
}

/// Runs one seed.
///
/// # Errors
/// The first invariant that is violated.
pub fn simulate(seed: u64, trace: bool) -> Result<Stats, Violation> {
    sim::simulate(seed, Promoting::draw, trace)
}

impl Promoting {
    fn draw(rng: &mut Rng) -> (Self, sim::Troubles) {
        let targets = 1 + rng.below(2);
        let count = 1 + rng.below(2);
        let pipelines = (0..count).map(|n| {
            let environments = &ENVIRONMENTS.map(|name| (name, targets))[..2 + rng.below(2)];
            let mut definition = definition(environments, settings(rng.chance(75.0), rng.chance(30.0)));
            definition.environments[1].soak = rng.chance(20.0).then_some(Span::minutes(5));
            if rng.chance(20.0) {
                definition.in_flight = InFlight::Finish;
            }
            (Address { namespace: "shop".into(), name: format!("app-{n}") }, definition)
        });
        let pipelines: Vec<_> = pipelines.collect();
        let mut reports = vec![];
        for n in 0..1 + rng.below(3) {
            let revision = format!("v{}", if rng.chance(15.0) { n } else { n + 2 });
            for place in 0..targets {
                if rng.chance(30.0) {
                    reports.push(Action::Report(target("dev", place), revision.clone(), false));
                }
                reports.push(Action::Report(target("dev", place), revision.clone(), true));
            }
        }
        let ask = |rng: &mut Rng| {
            let at = At { environment: (*rng.pick(&["staging", "prod"])).into(), revision: format!("v{}", 1 + rng.below(4)) };
            let name = at.environment.clone();
            let command = match rng.below(7) {
                0 => Command::Approve(at),
                1 => Command::Reject(at),
                2 => Command::Abandon(at.revision),
                3 => Command::Suspend,
                4 => Command::Resume,
                5 => Command::Retry(name),
                _ => Command::Abort(name),
            };
            Action::Ask(rng.below(count), command)
        };
        let asks = (0..rng.below(4)).map(|_| ask(rng)).collect();
        let scenario = Self {
            pipelines,
            targets,
            host: Shared::default(),
            reports,
            asks,
            versions: BTreeMap::new(),
            runs: BTreeMap::new(),
            healthy: BTreeSet::new(),
            closings: rng.below(3),
            rolled_out: 0,
            merged: BTreeSet::new(),
            wanted: BTreeMap::new(),
            quiet: false,
        };
        (scenario, sim::Troubles::of(rng))
    }

    fn states(&self, world: &World) -> Vec<Pipeline> {
        let core = world.core();
        let items = self.pipelines.iter().filter_map(|(to, _)| core.table.peek(&keys::pipeline(to)));
        items.filter_map(|item| Loaded::<Pipeline>::read(item).ok()).map(|loaded| loaded.x).collect()
    }

    /// A target is seen to run something. Facts arrive in any order; versions say which is the newest.
    fn report(&mut self, sim: &mut Sim<Self>, target: Target, revision: String, ready: bool) {
        let version = self.versions.entry(target.clone()).or_default();
        *version += 1;
        self.runs.insert(target.clone(), (revision.clone(), ready));
        let observed = Observed { revision: Some(revision.clone()), ready, error: None, at: sim.world.now() };
        let fact = Fact { app: app(), target: target.clone(), version: *version, observed };
        if ready {
            self.healthy.insert((target.clone(), revision.clone()));
        }
        sim.work(self, Action::Report(target, revision, ready), move |engine: Arc<Both>| {
            Box::pin(async move { engine.pipelines.observe(&fact).await.map(|_| None) })
        });
    }

    fn ask(&self, sim: &mut Sim<Self>, place: usize, command: Command) {
        let note = Note { by: "ann".into(), at: sim.world.now(), ..Note::default() };
        let message = Message::Command { to: self.pipelines[place].0.clone(), command, note };
        sim.world.enqueue(NAME, Parcel::Own(message.letter().body));
    }

    /// What was merged, or told, is rolled out.
    fn roll_out(&mut self, sim: &mut Sim<Self>) {
        let mut fresh = vec![];
        {
            let host = self.host.lock();
            for (place, request) in host.requests.iter().enumerate() {
                if request.state == State::Merged && self.merged.insert(place) {
                    fresh.push((request.environment.clone(), request.revision.clone()));
                }
            }
            fresh.extend(host.told[self.rolled_out..].iter().map(|told| (told.environment.clone(), told.revision.clone())));
            self.rolled_out = host.told.len();
        }
        let now = sim.world.now();
        for (environment, revision) in fresh {
            self.wanted.insert(environment.clone(), revision.clone());
            for place in 0..self.targets {
                let later = now + sim.a_while(40);
                if sim.rng.chance(30.0) {
                    sim.plan(now, Action::Report(target(&environment, place), revision.clone(), false));
                }
                sim.plan(later, Action::Report(target(&environment, place), revision.clone(), true));
            }
        }
    }

    /// People merge what is open, close some of it, reopen and merge some of that, and approve what waits.
    fn people(&mut self, sim: &mut Sim<Self>, eager: bool) {
        let chance = if eager { 100.0 } else { 4.0 };
        let open: Vec<usize> = {
            let host = self.host.lock();
            (0..host.requests.len()).filter(|place| host.requests[*place].state == State::Open).collect()
        };
        for place in open {
            if sim.rng.chance(chance) {
                let close = self.closings > 0 && !eager && sim.rng.chance(30.0);
                self.closings -= usize::from(close);
                self.host.lock().requests[place].state = if close { State::Closed } else { State::Merged };
                sim.note(&format!("a person {} pull request {}", if close { "closes" } else { "merges" }, place + 1));
            }
        }
        for (place, x) in self.states(&sim.world).iter().enumerate() {
            for (name, state) in &x.environments {
                let waits =
                    state.promotion.as_ref().filter(|promotion| promotion.why.reason == "ApprovalNeeded" && !promotion.approved);
                if let Some(promotion) = waits.filter(|promotion| promotion.phase == Phase::Waiting)
                    && sim.rng.chance(chance)
                {
                    let at = At { environment: name.clone(), revision: promotion.revision.clone() };
                    self.ask(sim, place, Command::Approve(at));
                }
            }
        }
    }

    /// Whether nobody is at anything.
    fn is_still(&self, world: &World) -> bool {
        let waits = |x: &Pipeline| {
            let created = |state: &Environment| state.promotion.as_ref().is_some_and(|promotion| promotion.phase == Phase::Created);
            x.wake.is_some()
                || x.condition.reason == "ApprovalNeeded"
                || x.environments.values().any(|state| created(state) || !state.closing.is_empty())
        };
        !self.host.lock().requests.iter().any(|request| request.state == State::Open) && !self.states(world).iter().any(waits)
    }

    /// Whether a revision may have been healthy in all targets of the first environment at once.
    fn was_healthy(&self, revision: &str) -> bool {
        (0..self.targets).all(|place| self.healthy.contains(&(target("dev", place), revision.to_owned())))
    }

    /// What the world's log says about pull requests and notifications, whatever the engine believes.
    fn check_host(&self) -> Result<(), String> {
        let host = self.host.lock();
        let mut identities: HashMap<u64, &str> = HashMap::new();
        for request in &host.requests {
            if identities.insert(request.identity, &request.revision).is_some() {
                return Err(format!("two pull requests for one promotion: {request:?}"));
            }
            if !self.was_healthy(&request.revision) {
                return Err(format!("a pull request for {}, which was never healthy in dev", request.revision));
            }
        }
        if let Some(told) = host.told.iter().find(|told| !self.was_healthy(&told.revision)) {
            return Err(format!("a notification for {}, which was never healthy in dev", told.revision));
        }
        Ok(())
    }

    /// What is open when everything is at rest.
    fn check_open(&self) -> Result<(), String> {
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
    fn check_arrived(&self, sim: &Sim<Self>) -> Result<(), String> {
        let dev = |place| self.runs.get(&target("dev", place)).map(|(revision, _)| revision);
        let mixed = (1..self.targets).any(|place| dev(place) != dev(0));
        for x in self.states(&sim.world) {
            // Whatever the targets of the first environment disagree about is not promoted.
            let Some(run) = x.run.as_ref().filter(|_| !mixed) else { continue };
            let said_otherwise = x.suspended.is_some()
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

impl Scenario for Promoting {
    type Engine = Both;
    type Action = Action;

    fn engine(&self, ports: Worker) -> Arc<Both> {
        Arc::new(Both::new(&ports, &self.host))
    }
    fn prepare(&mut self, world: &World) {
        let engine = Both::new(&world.worker(0), &self.host);
        for (to, definition) in &self.pipelines {
            drop(block_on(engine.pipelines.apply(to, definition, "as applied")));
        }
        for name in ENVIRONMENTS {
            for place in 0..self.targets {
                let target = target(name, place);
                let observed = Observed { revision: Some("v1".into()), ready: true, error: None, at: world.now() };
                drop(block_on(engine.pipelines.observe(&Fact { app: app(), target: target.clone(), version: 0, observed })));
                self.versions.insert(target.clone(), 0);
                self.healthy.insert((target.clone(), "v1".into()));
                self.runs.insert(target, ("v1".into(), true));
            }
        }
    }
    fn schedule(&mut self, sim: &mut Sim<Self>) {
        let mut at = sim.world.now();
        for action in self.reports.clone() {
            at = at + sim.a_while(60);
            sim.plan(at, action);
        }
        for action in self.asks.clone() {
            let at = sim.world.now() + sim.a_while(200);
            sim.plan(at, action);
        }
    }
    fn act(&mut self, sim: &mut Sim<Self>, action: Action) {
        match action {
            Action::Report(target, revision, ready) => self.report(sim, target, revision, ready),
            Action::Ask(place, command) => self.ask(sim, place, command),
        }
    }
    fn crashed(&mut self, sim: &mut Sim<Self>, action: Action) {
        // Whoever reports does it again, with what is true by then.
        if let Action::Report(target, ..) = action {
            let now = sim.world.now();
            if let Some((revision, ready)) = self.runs.get(&target).cloned() {
                sim.plan(now, Action::Report(target, revision, ready));
            }
        }
    }
    fn meanwhile(&mut self, sim: &mut Sim<Self>) {
        if !self.quiet {
            self.people(sim, false);
        }
        self.roll_out(sim);
    }
    fn published(&mut self, _: &mut Sim<Self>, _: &Publication) {}
    fn acknowledged(&mut self, sim: &mut Sim<Self>, _: u64, _: Received, handled: Handled) -> Result<(), String> {
        sim.stats.count(match handled {
            Handled::Committed => "committed",
            Handled::Settled => "settled",
            Handled::Stale => "stale",
            Handled::Invalid => "refused commands",
            Handled::Recorded => "recorded",
        });
        self.check_host()
    }
    fn changed(&mut self, changes: &[Change], _: &Table, _: u64) -> Result<(), String> {
        for change in changes {
            let (Some(old), Some(new)) = (&change.old, &change.new) else { continue };
            if (change.key.sk.starts_with("T#") || change.key.sk.starts_with(keys::HISTORY)) && old.text("j") != new.text("j") {
                return Err(format!("{} was overwritten with other content", change.key));
            }
            if !change.key.pk.starts_with("P#") || change.key.sk != keelway_engine::keys::MAIN {
                continue;
            }
            let read = |item| Loaded::<Pipeline>::read(item).map_err(|error| error.to_string());
            let (before, after) = (read(old)?, read(new)?);
            if after.version != before.version + 1 {
                return Err(format!("version {} became {}", before.version, after.version));
            }
            for (name, state) in &before.x.environments {
                let pair = state.promotion.as_ref().zip(after.x.environments.get(name).and_then(|state| state.promotion.as_ref()));
                let same = pair.filter(|(old, new)| (old.run, old.again) == (new.run, new.again));
                if let Some((old, new)) = same.filter(|(old, new)| old.phase.is_final() && !new.phase.is_final()) {
                    return Err(format!("a promotion that was over goes on: {old:?} became {new:?}"));
                }
            }
        }
        Ok(())
    }
    fn come_to_an_end(&mut self, sim: &mut Sim<Self>) -> Result<(), String> {
        for place in 0..self.pipelines.len() {
            self.ask(sim, place, Command::Resume);
        }
        self.quiet = true;
        sim.patience = Some(Span::minutes(2));
        let mut still = 0;
        for _ in 0..ROUNDS {
            sim.rest(self, 60_000)?;
            self.people(sim, true);
            self.roll_out(sim);
            // Everything becomes healthy sooner or later.
            let now = sim.world.now();
            for (target, (revision, ready)) in &self.runs {
                let environment = target.namespace.split('-').next().unwrap_or_default();
                let wanted = self.wanted.get(environment).unwrap_or(revision);
                if wanted != revision || !ready {
                    sim.plan(now, Action::Report(target.clone(), wanted.clone(), true));
                }
            }
            still = if self.is_still(&sim.world) { still + 1 } else { 0 };
            if still > 3 {
                break;
            }
            sim.world.pass(Span::minutes(5));
            sim.plan_sweep();
            sim.stats.count("rounds at the end");
        }
        sim.patience = None;
        Ok(())
    }
    fn at_rest(&mut self, sim: &mut Sim<Self>) -> Result<(), String> {
        self.check_host()?;
        self.check_open()?;
        self.check_arrived(sim)?;
        let writes = self.host.lock().writes;
        sim.patience = Some(Span::minutes(2));
        for _ in 0..12 {
            sim.world.pass(Span::minutes(120));
            sim.plan_sweep();
            sim.rest(self, 60_000)?;
        }
        if self.host.lock().writes != writes {
            return Err("a quiet day has written to the host".into());
        }
        sim.stats.add("pull requests", self.host.lock().requests.len() as u64);
        sim.stats.add("notifications", self.host.lock().told.len() as u64);
        Ok(())
    }
}
