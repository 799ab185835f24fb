//! The scheduler: which worker makes its next request, who crashes, what is delivered when.

use super::actors::{Action, Tag};
use super::check::Watch;
use super::plan::{PROJECT, Plan, REVISION, shipyard};
use crate::planted::{Plant, Planted};
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::item::{Item, Key};
use keelway_engine::ports::{Condition, PortError, Store, Write};
use keelway_engine::protocol::{Engine, Handled};
use keelway_engine::sequences::{Limits, NAME, Sequences, keys};
use keelway_world::World;
use keelway_world::core::Fault;
use keelway_world::exec::{Task, block_on, step};
use keelway_world::queue::Received;
use keelway_world::rng::Rng;
use keelway_world::story::handle;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::task::Poll;

/// How a seed violated an invariant.
#[derive(Debug, Clone)]
pub struct Violation {
    /// The seed.
    pub seed: u64,
    /// Which invariant, with what.
    pub rule: String,
    /// Every request up to then, when asked for.
    pub trace: Vec<String>,
}

/// What happened over a run, to show that the simulation meets what it is for.
#[derive(Debug, Clone, Default)]
pub struct Stats(pub BTreeMap<&'static str, u64>);

impl Stats {
    /// Counts.
    pub fn count(&mut self, what: &'static str) {
        self.add(what, 1);
    }
    /// Adds.
    pub fn add(&mut self, what: &'static str, n: u64) {
        *self.0.entry(what).or_default() += n;
    }
    /// Adds another run's.
    pub fn merge(&mut self, other: &Stats) {
        for (what, n) in &other.0 {
            self.add(what, *n);
        }
    }
}

pub(super) type Outcome = Result<Option<Handled>, PortError>;

/// What a worker is at.
pub(super) enum Job {
    /// A message by its id in the queue.
    Message(u64),
    /// Something of our own, done again after a crash or not.
    Action(Action),
}

struct Running {
    slot: usize,
    task: Task<Outcome>,
    job: Job,
}

/// A simulation on its way.
pub(super) struct Sim {
    pub world: World,
    pub rng: Rng,
    pub plan: Plan,
    pub watch: Watch,
    pub agenda: Vec<(Timestamp, Action)>,
    pub tags: HashMap<u64, Tag>,
    pub reacted: HashSet<(String, usize)>,
    /// Triggers that were answered twice.
    pub twice: HashSet<String>,
    /// Inputs that were acknowledged, and what the engine said.
    pub acknowledged: Vec<(Tag, Received, Handled)>,
    pub stats: Stats,
    pub faults: bool,
    /// Somebody's order was lost on the way in; only the sweep can repair that.
    pub order_lost: bool,
    pub steps: u64,
    plant: Option<Plant>,
    slots: Vec<Option<Arc<Sequences<Planted>>>>,
    running: Vec<Running>,
    published: usize,
    copies: HashSet<u64>,
    /// What was delivered and is not done with.
    received: HashMap<u64, Received>,
}

/// Runs one seed.
///
/// # Errors
/// The first invariant that is violated.
pub fn simulate(seed: u64, plant: Option<Plant>, trace: bool) -> Result<Stats, Violation> {
    let mut rng = Rng::new(seed);
    let plan = Plan::of(&mut rng);
    let mut sim = Sim::new(rng, plan, plant);
    if trace {
        let plan = format!("{:?}", sim.plan);
        sim.world.core().trace = Some(vec![plan]);
    }
    let result = sim.story();
    let trace = sim.world.core().trace.take().unwrap_or_default();
    result.map(|()| sim.stats).map_err(|rule| Violation { seed, rule, trace })
}

impl Sim {
    fn new(rng: Rng, plan: Plan, plant: Option<Plant>) -> Self {
        let world = World::new(Timestamp(1_795_000_000_000));
        define(&world);
        world.core().queue.max_receives = u32::MAX;
        world.core().table.metered = false;
        world.core().table.stale_indexes = plan.stale_indexes;
        let slots = vec![None; plan.workers + 1];
        Self {
            world,
            rng,
            plan,
            watch: Watch::default(),
            agenda: vec![],
            tags: HashMap::new(),
            reacted: HashSet::new(),
            twice: HashSet::new(),
            acknowledged: vec![],
            stats: Stats::default(),
            faults: true,
            order_lost: false,
            steps: 0,
            plant,
            slots,
            running: vec![],
            published: 0,
            copies: HashSet::new(),
            received: HashMap::new(),
        }
    }

    fn story(&mut self) -> Result<(), String> {
        self.trouble();
        self.schedule_plan();
        self.rest(30_000)?;
        self.faults = false;
        self.world.core().faults = None;
        self.come_to_an_end()?;
        self.check_rest()?;
        self.replay()
    }

    /// Requests fail, or their answers are lost, as the plan says.
    fn trouble(&mut self) {
        let (trouble, leftovers) = (self.plan.trouble, self.plan.leftovers);
        if trouble == 0.0 && leftovers == 0.0 {
            return;
        }
        let mut rng = Rng::new(self.rng.bits());
        self.world.core().faults = Some(Box::new(move |_, _| {
            if rng.chance(trouble) {
                *rng.pick(&[Fault::Throttled, Fault::AnswerLost, Fault::Repeated])
            } else if rng.chance(leftovers) {
                Fault::Partial
            } else {
                Fault::None
            }
        }));
    }

    /// Goes on until nothing is left to do.
    pub(super) fn rest(&mut self, limit: u64) -> Result<(), String> {
        let end = self.steps + limit;
        while self.step()? {
            if self.steps > end {
                return Err(format!("does not come to rest within {limit} steps"));
            }
        }
        Ok(())
    }

    /// One decision of the scheduler; `false`: there is nothing to decide about.
    fn step(&mut self) -> Result<bool, String> {
        self.steps += 1;
        let now = self.world.now();
        let due = self.agenda.iter().filter(|(at, _)| *at <= now).count();
        let free = self.slots.len() - self.running.len();
        let visible = if free > 0 { self.world.core().queue.receivable(now) } else { vec![] };
        if due > 0 && free > 0 && (self.rng.chance(20.0) || (self.running.is_empty() && visible.is_empty())) {
            let nth = self.rng.below(due);
            let place = self.agenda.iter().enumerate().filter(|(_, (at, _))| *at <= now).nth(nth).map_or(0, |(i, _)| i);
            let (_, action) = self.agenda.swap_remove(place);
            self.act(action);
            return Ok(true);
        }
        if self.plan.pull && self.rng.chance(5.0) {
            self.poll_for_work();
        }
        if self.faults && free > 0 && self.rng.chance(self.plan.sweep) {
            self.act(Action::Sweep);
            return Ok(true);
        }
        if !visible.is_empty() && (self.running.is_empty() || (self.running.len() < self.plan.workers && self.rng.chance(40.0))) {
            let id = *self.rng.pick(&visible);
            self.deliver(id);
            return Ok(true);
        }
        if !self.running.is_empty() {
            let place = self.rng.below(self.running.len());
            self.go_on(place)?;
            return Ok(true);
        }
        Ok(self.wait_for_something())
    }

    fn wait_for_something(&mut self) -> bool {
        let next = self.world.core().queue.next_time();
        let Some(at) = self.agenda.iter().map(|(at, _)| *at).chain(next).min() else { return false };
        let span = at - self.world.now();
        self.world.pass(Span(span.0.max(1)));
        true
    }

    fn engine(&mut self, slot: usize, received: Option<&Received>) -> Arc<Sequences<Planted>> {
        if self.slots[slot].is_none() {
            let skew = self.plan.skew.0;
            let skew = if skew == 0 { 0 } else { self.rng.below(2 * skew as usize + 1) as i64 - skew };
            let ports = Planted::new(self.world.skewed(slot, Span(skew)), self.plant);
            self.slots[slot] = Some(Arc::new(Sequences::new(ports, Limits::default())));
        }
        #[expect(clippy::unwrap_used, reason = "set above")]
        let engine = self.slots[slot].clone().unwrap();
        engine.ports().begin(received.and_then(Received::delivery).map(|delivery| delivery.body).as_ref());
        engine
    }

    fn free_slot(&self) -> usize {
        (0..self.slots.len()).find(|slot| self.running.iter().all(|running| running.slot != *slot)).unwrap_or(0)
    }

    fn deliver(&mut self, id: u64) {
        let slot = self.free_slot();
        let received = self.world.core().queue.receive(id);
        let Some(received) = received else { return };
        if let Some(letter) = &received.letter {
            // The same input as the message that died.
            let dead = letter.letter.rsplit_once("message-").and_then(|(_, id)| id.parse().ok());
            if let Some(tag) = dead.and_then(|dead: u64| self.tags.get(&dead).copied()) {
                self.tags.insert(id, tag);
            }
            self.stats.count("redriven");
        }
        if self.faults && !self.copies.contains(&id) && self.rng.chance(self.plan.duplicate) {
            let copy = self.world.core().queue.push(received.sent, NAME, received.parcel.clone(), Span(0));
            // Once: copies of copies would never come to rest.
            self.copies.extend([id, copy]);
            if let Some(tag) = self.tags.get(&id).copied() {
                self.tags.insert(copy, tag);
            }
        }
        let engine = self.engine(slot, Some(&received));
        self.received.insert(id, received.clone());
        self.world.core().note(|| format!("          w{slot} begins #{id} {:?}", received.parcel));
        let task: Task<Outcome> = Box::pin(async move { handle(&*engine, &received).await.map(Some) });
        self.running.push(Running { slot, task, job: Job::Message(id) });
        self.stats.count("deliveries");
    }

    /// Starts something a worker does on its own account.
    pub(super) fn work(&mut self, action: Action, task: impl FnOnce(Arc<Sequences<Planted>>) -> Task<Outcome>) {
        let slot = self.free_slot();
        let engine = self.engine(slot, None);
        self.world.core().note(|| format!("          w{slot} begins {action:?}"));
        let task = task(engine);
        self.running.push(Running { slot, task, job: Job::Action(action) });
    }

    /// Lets a worker make one request; then looks at everything it changed.
    fn go_on(&mut self, place: usize) -> Result<(), String> {
        let polled = step(&mut self.running[place].task);
        self.stats.count("requests");
        let tick = self.rng.below(self.plan.tick.0 as usize + 1) as i64;
        let (changes, contradictions) = {
            let mut core = self.world.core();
            core.now = core.now + Span(tick);
            let now = core.now;
            core.queue.fire(now);
            (std::mem::take(&mut core.table.journal), std::mem::take(&mut core.bus.contradictions))
        };
        if self.plan.stale_indexes && self.rng.chance(10.0) {
            let changes = self.rng.below(4);
            self.world.core().table.catch_up(changes);
        }
        if !changes.is_empty() {
            self.watch.look(&changes, &self.world.core().table, self.steps)?;
        }
        if let Some(contradiction) = contradictions.first() {
            return Err(format!("one id, two contents: {contradiction}"));
        }
        self.see_publications();
        let crashed = self.faults && self.rng.chance(self.plan.crash);
        match polled {
            _ if crashed => self.crash(place),
            Poll::Ready(outcome) => return self.done(place, outcome),
            Poll::Pending => {
                if let Job::Message(id) = self.running[place].job
                    && self.faults
                    && self.rng.chance(self.plan.zombie)
                {
                    let now = self.world.now();
                    self.world.core().queue.give_back(id, now);
                    self.stats.count("zombies");
                }
            }
        }
        Ok(())
    }

    fn see_publications(&mut self) {
        loop {
            let next = self.world.core().bus.log.get(self.published).cloned();
            let Some(publication) = next else { return };
            self.published += 1;
            if publication.again {
                self.stats.count("published again");
            }
            self.on_publication(&publication);
        }
    }

    fn crash(&mut self, place: usize) {
        let running = self.running.swap_remove(place);
        self.stats.count("crashes");
        self.world.core().note(|| format!("          w{} CRASHES", running.slot));
        if self.rng.chance(20.0) {
            self.slots[running.slot] = None;
        }
        let now = self.world.now();
        match running.job {
            Job::Message(id) if self.slots_ports_committed(running.slot) && self.plant == Some(Plant::AcknowledgeAfterCommit) => {
                self.world.core().queue.acknowledge(id);
            }
            Job::Message(id) if self.rng.chance(self.plan.dead) => {
                self.world.core().queue.bury(id);
                self.stats.count("dead letters");
            }
            Job::Message(id) => {
                let later = *self.rng.pick(&[Span(0), Span(0), Span::seconds(1), Span::seconds(60)]);
                self.world.core().queue.give_back(id, now + later);
            }
            Job::Action(action @ Action::Order(..)) => {
                if self.rng.chance(50.0) {
                    self.agenda.push((now, action));
                } else {
                    self.order_lost = true;
                }
            }
            Job::Action(_) => {}
        }
    }

    fn slots_ports_committed(&self, slot: usize) -> bool {
        self.slots[slot].as_ref().is_some_and(|engine| engine.ports().committed())
    }

    fn done(&mut self, place: usize, outcome: Outcome) -> Result<(), String> {
        let running = self.running.swap_remove(place);
        let id = match (running.job, &outcome) {
            (Job::Message(id), _) => id,
            (Job::Action(action), Err(PortError::Retry { .. })) => {
                let later = self.world.now() + Span::seconds(5);
                self.agenda.push((later, action));
                return Ok(());
            }
            (Job::Action(_), Ok(_)) => return Ok(()),
            (Job::Action(action), Err(e)) => return Err(format!("{action:?} failed: {e}")),
        };
        match outcome {
            Ok(handled) => {
                let received = self.received.remove(&id);
                self.world.core().queue.acknowledge(id);
                self.world.core().note(|| format!("          w{} acknowledges #{id} as {handled:?}", running.slot));
                if let (Some(received), Some(handled)) = (received, handled) {
                    self.on_acknowledged(id, received, handled)?;
                }
                Ok(())
            }
            Err(PortError::Retry { .. }) => {
                let later = self.world.now() + Span(1000 + self.rng.below(19_000) as i64);
                self.world.core().queue.give_back(id, later);
                self.stats.count("given back");
                if self.faults { Ok(()) } else { self.contention() }
            }
            Err(e @ PortError::Refused { .. }) => Err(format!("a request can never succeed: {e}")),
        }
    }

    /// Without faults, only contention sends a message back, and that cannot go on for ever.
    fn contention(&mut self) -> Result<(), String> {
        self.stats.count("contention at rest");
        let times = self.stats.0.get("contention at rest").copied().unwrap_or(0);
        if times > 50 { Err("messages keep coming back without any fault".into()) } else { Ok(()) }
    }
}

/// The project, as applying it would have left it.
fn define(world: &World) {
    let worker = world.worker(0);
    let project = super::check::project();
    let text = serde_json::to_string(shipyard()).unwrap_or_default();
    let items = [
        Item::new(Key::new(keys::PROJECTS, PROJECT)),
        Item::new(keys::project(&project)).with("v", 1i64).with("rev", REVISION),
        Item::new(keys::revision(&project, REVISION)).with("j", text),
    ];
    for item in items {
        #[expect(clippy::unwrap_used, reason = "the twin takes these items")]
        block_on(worker.write(&Write::Put(item, Condition::Always))).unwrap();
    }
    world.core().table.journal.clear();
}
