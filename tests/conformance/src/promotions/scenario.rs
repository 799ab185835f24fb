//! Promotions in the simulation: who does what, and what must hold.

use super::check::{Watch, decode, follows_from_facts};
use super::host::{Shared, State};
use super::judge::Verdicts;
use super::{Both, Plant, app, both, target};
use crate::sim::{self, Scenario, Sim, Standing, Stats, Violation};
use keelway_domain::note::Note;
use keelway_domain::promotions::definition::{Definition, Target};
use keelway_domain::promotions::observe::Observed;
use keelway_domain::promotions::{At, Command, EVALUATION_FAILED, Phase, Pipeline, Promotion};
use keelway_domain::stored::Stored;
use keelway_domain::time::Span;
use keelway_engine::promotions::observations::Fact;
use keelway_engine::promotions::{Address, Message, NAME, keys};
use keelway_engine::protocol::{Handled, Inbox};
use keelway_world::World;
use keelway_world::bus::Publication;
use keelway_world::exec::block_on;
use keelway_world::promotions::host::{Deed, GitHost};
use keelway_world::queue::{Parcel, Received};
use keelway_world::rng::Rng;
use keelway_world::table::{Change, Table};
use keelway_world::worker::Worker;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The environments of all pipelines; some have only the first two.
pub(super) const ENVIRONMENTS: [&str; 3] = ["dev", "staging", "prod"];
/// Rounds in which everything comes to rest once nothing goes wrong any more.
const ROUNDS: usize = 200;
/// Rounds in which what is superseded is closed.
const SETTLING: usize = 2;

/// What somebody does.
#[derive(Debug, Clone)]
pub enum Action {
    /// A target is seen to run a revision, healthy or not.
    Report(Target, String, bool),
    /// Whoever reported something got no answer, and reports the same fact again.
    Again(Fact),
    /// Somebody asks for something.
    Ask(usize, Command),
}

/// One seed's pipelines: they share their targets.
pub struct Promoting {
    pub(super) pipelines: Vec<(Address, Definition)>,
    /// The targets of each environment.
    pub(super) targets: usize,
    pub(super) host: Shared,
    pub(super) reports: Vec<Action>,
    pub(super) asks: Vec<Action>,
    /// The newest version of the facts about each target.
    pub(super) versions: BTreeMap<Target, i64>,
    /// What each target really runs.
    pub(super) runs: BTreeMap<Target, (String, bool)>,
    /// What each target was healthy on, at some time: facts about different targets arrive in any order.
    pub(super) healthy: BTreeSet<(Target, String)>,
    /// So many commands were given so far.
    pub(super) commands: u64,
    /// So many pull requests more are closed by people.
    pub(super) closings: usize,
    /// Notifications and merges that were rolled out so far.
    pub(super) rolled_out: usize,
    pub(super) merged: BTreeSet<usize>,
    /// What each environment is to run: what was merged or told last.
    pub(super) wanted: BTreeMap<String, String>,
    pub(super) quiet: bool,
    pub(super) plant: Option<Plant>,
    /// A person has reopened what was closed: what is merged there may be older than what is promoted.
    pub(super) reopened: bool,
    /// What evaluations come to.
    pub(super) verdicts: Verdicts,
    pub(super) watch: Watch,
    /// What an event told that is not so.
    pub(super) wrong: Option<String>,
    /// Somebody sweeps. Otherwise no message is lost, and nothing may wait for the sweep.
    pub(super) sweeps: bool,
}

/// Runs one seed.
///
/// # Errors
/// The first invariant that is violated.
pub fn simulate(seed: u64, plant: Option<Plant>, trace: bool) -> Result<Stats, Violation> {
    sim::simulate(seed, |rng| Promoting::draw(rng, plant), trace)
}

/// Runs one seed in which workers crash, but no message is lost and nobody sweeps: everything comes to rest, and the sweep that
/// comes then finds nothing to do. In half of the seeds, everything happens at one time.
///
/// # Errors
/// The first invariant that is violated.
pub fn simulate_without_sweeps(seed: u64, plant: Option<Plant>, trace: bool) -> Result<Stats, Violation> {
    let draw = |rng: &mut Rng| {
        let (scenario, troubles) = Promoting::draw(rng, plant);
        let tick = if rng.chance(50.0) { Span(0) } else { troubles.tick };
        let kept = sim::Troubles { dead: 0.0, trouble: 0.0, sweep: 0.0, letters: false, cut: false, tick, ..troubles };
        (Promoting { sweeps: false, ..scenario }, kept)
    };
    sim::simulate(seed, draw, trace)
}

impl Promoting {
    pub(super) fn states(&self, world: &World) -> Vec<Arc<Pipeline>> {
        let core = world.core();
        let items = self.pipelines.iter().filter_map(|(to, _)| core.table.peek(&keys::pipeline(to)));
        items.filter_map(|item| decode(item).ok()).collect()
    }

    /// A target is seen to run something. Facts arrive in any order; versions say which is the newest.
    fn report(&mut self, sim: &mut Sim<Self>, target: Target, revision: String, ready: bool) {
        let version = self.versions.entry(target.clone()).or_default();
        *version += 1;
        self.runs.insert(target.clone(), (revision.clone(), ready));
        let observed = Observed { revision: Some(revision.clone()), ready, error: None, at: sim.world.now(), by: vec![] };
        let fact = Fact { app: app(), target: target.clone(), version: *version, observed };
        if ready {
            self.healthy.insert((target.clone(), revision.clone()));
        }
        let begun = if self.sweeps { Action::Report(target, revision, ready) } else { Action::Again(fact.clone()) };
        self.hand_in(sim, begun, fact);
    }

    fn hand_in(&self, sim: &mut Sim<Self>, action: Action, fact: Fact) {
        sim.work(self, action, move |engine: Arc<Both>| Box::pin(async move { engine.decides.observe(&fact).await.map(|_| None) }));
    }

    fn sweep(&self, sim: &mut Sim<Self>) {
        if self.sweeps {
            sim.plan_sweep();
        }
    }

    fn ask(&mut self, sim: &mut Sim<Self>, place: usize, command: Command) {
        self.watch.asked(&self.pipelines[place].0, &command);
        self.commands += 1;
        let note = Note { by: "ann".into(), at: sim.world.now(), id: self.commands, ..Note::default() };
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
                    fresh.push((request.of.environment.clone(), request.of.revision.clone()));
                }
            }
            fresh.extend(host.told[self.rolled_out..].iter().map(|told| (told.of.environment.clone(), told.of.revision.clone())));
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
        let of = |state: State| {
            let host = self.host.lock();
            let all = host.requests.iter().enumerate().filter(|(_, request)| request.state == state);
            all.filter(|(_, request)| state == State::Open || request.closed_by_person).map(|(place, _)| place as u64 + 1).collect()
        };
        let (open, closed): (Vec<u64>, Vec<u64>) = (of(State::Open), of(State::Closed));
        for number in open {
            if sim.rng.chance(chance) {
                let deed = match () {
                    () if self.closings > 0 && !eager && sim.rng.chance(30.0) => Deed::Close,
                    () if !eager && sim.rng.chance(5.0) => Deed::Push,
                    () => Deed::Merge,
                };
                self.closings -= usize::from(deed == Deed::Close);
                drop(self.host.person(deed, number));
                sim.note(&format!("a person does {deed:?} to pull request {number}"));
            }
        }
        for number in closed {
            if !eager && sim.rng.chance(0.2) {
                self.reopened = true;
                drop(self.host.person(Deed::Reopen, number));
                sim.note(&format!("a person reopens pull request {number}"));
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
                let failed = |promotion: &Promotion| promotion.why.reason == EVALUATION_FAILED;
                if state.promotion.as_ref().is_some_and(failed) && sim.rng.chance(if eager { chance } else { 0.0 }) {
                    self.ask(sim, place, Command::Retry(name.clone()));
                }
            }
        }
    }
}

impl Scenario for Promoting {
    type Engine = Both;
    type Action = Action;

    fn engine(&self, ports: Worker) -> Arc<Both> {
        Arc::new(both(&ports, (&self.host, &self.verdicts), self.plant))
    }
    fn prepare(&mut self, world: &World) {
        let engine = both(&world.worker(0), (&self.host, &self.verdicts), None);
        for (to, definition) in &self.pipelines {
            drop(block_on(engine.decides.apply(to, definition, "as applied")));
        }
        for name in ENVIRONMENTS {
            for place in 0..self.targets {
                let target = target(name, place);
                let observed = Observed { revision: Some("v1".into()), ready: true, error: None, at: world.now(), by: vec![] };
                drop(block_on(engine.decides.observe(&Fact { app: app(), target: target.clone(), version: 0, observed })));
                self.versions.insert(target.clone(), 0);
                self.healthy.insert((target.clone(), "v1".into()));
                self.watch.begins_healthy(&target, "v1");
                self.runs.insert(target, ("v1".into(), true));
            }
        }
    }
    fn schedule(&mut self, sim: &mut Sim<Self>) {
        self.watch.skew = sim.troubles.skew;
        self.watch.now = sim.world.now();
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
            Action::Again(fact) => self.hand_in(sim, Action::Again(fact.clone()), fact),
        }
    }
    /// Whoever reports does it again, with what is true by then.
    fn crashed(&mut self, sim: &mut Sim<Self>, action: Action) {
        let now = sim.world.now();
        let target = match action {
            Action::Report(target, ..) => target,
            Action::Again(fact) => return sim.plan(now, Action::Again(fact)),
            Action::Ask(..) => return,
        };
        if let Some((revision, ready)) = self.runs.get(&target).cloned() {
            sim.plan(now, Action::Report(target, revision, ready));
        }
    }
    fn meanwhile(&mut self, sim: &mut Sim<Self>) {
        self.watch.now = sim.world.now();
        if !self.quiet {
            self.people(sim, false);
        }
        self.roll_out(sim);
    }
    fn begins(&self, engine: &Both, received: Option<&Received>) {
        Inbox::ports(engine).begin(received);
    }
    fn published(&mut self, _: &mut Sim<Self>, publication: &Publication) {
        if publication.again {
            return;
        }
        let event = serde_json::from_str(&publication.entry.detail).unwrap_or_default();
        let wrong = self.watch.published(&event, &self.pipelines, (&self.host.lock(), &self.verdicts.lock())).err();
        self.wrong = self.wrong.take().or(wrong);
    }
    fn acknowledged(&mut self, sim: &mut Sim<Self>, _: u64, received: Received, handled: Handled) -> Result<(), String> {
        if let Some(wrong) = self.wrong.take() {
            return Err(wrong);
        }
        if let (Parcel::Own(text), Handled::Committed) = (&received.parcel, handled)
            && let Ok(Message::Command { to, command, .. }) = Message::from_json(text)
        {
            self.watch.now = sim.world.now();
            self.watch.obeyed(&to, &command);
        }
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
        changes.iter().try_for_each(|change| self.watch.changed(change))
    }
    fn come_to_an_end(&mut self, sim: &mut Sim<Self>) -> Result<(), String> {
        for place in 0..self.pipelines.len() {
            self.ask(sim, place, Command::Resume);
        }
        self.quiet = true;
        self.verdicts.lock().verdicts.clear();
        sim.patience = Some(Span::minutes(2));
        // First nobody does anything at the host.
        for _ in 0..SETTLING {
            sim.rest(self, 60_000)?;
            sim.world.pass(Span::minutes(30));
            self.sweep(sim);
        }
        sim.rest(self, 60_000)?;
        self.check_one_open()?;
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
            self.sweep(sim);
            sim.stats.count("rounds at the end");
        }
        sim.patience = None;
        Ok(())
    }
    fn at_rest(&mut self, sim: &mut Sim<Self>) -> Result<(), String> {
        self.check_host()?;
        self.check_open()?;
        self.check_arrived(sim)?;
        let now = sim.world.now();
        follows_from_facts(&sim.world.core().table, &self.pipelines, &self.runs, self.targets, now)?;
        if !self.sweeps {
            sim.patience = Some(Span::minutes(2));
            let before = self.states(&sim.world);
            sim.plan_sweep();
            sim.rest(self, 60_000)?;
            let after = self.states(&sim.world);
            if let Some((before, after)) = before.iter().zip(&after).find(|(before, after)| before != after) {
                return Err(format!("only the sweep went on: {before:?} became {after:?}"));
            }
        }
        let writes = self.host.lock().writes;
        sim.patience = Some(Span::minutes(2));
        for _ in 0..6 {
            sim.world.pass(Span::minutes(240));
            sim.plan_sweep();
            sim.rest(self, 60_000)?;
        }
        if self.host.lock().writes != writes {
            return Err("a quiet day has written to the host".into());
        }
        sim.stats.add("pull requests", self.host.lock().requests.len() as u64);
        sim.stats.add("notifications", self.host.lock().told.len() as u64);
        if sim.rng.chance(sim::PAST) { sim.outlive(self) } else { Ok(()) }
    }
    /// Nothing is written to the host, either.
    fn standing(&self, world: &World) -> Standing {
        let mut standing = sim::standing(world);
        standing.insert("writes".into(), self.host.lock().writes as i64);
        standing
    }
}
