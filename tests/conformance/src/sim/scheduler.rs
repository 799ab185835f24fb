//! The scheduler: which worker makes its next request, who crashes, what is delivered when.

use super::bounds;
use super::past::Told;
use super::publications::{self, Makers, Published};
use super::scenario::{Hands, Scenario};
use super::stats::{Stats, Violation};
use super::troubles::Troubles;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::keys;
use keelway_engine::ports::PortError;
use keelway_engine::protocol::Handled;
use keelway_engine::register;
use keelway_world::World;
use keelway_world::exec::{Task, step};
use keelway_world::queue::Received;
use keelway_world::rng::Rng;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::task::Poll;

/// What a worker's task comes to; `None`: it was no message.
pub type Outcome = Result<Option<Handled>, PortError>;

/// What is to be done at some time.
#[derive(Debug, Clone)]
pub(super) enum Deed<A> {
    /// The scheduled sweep.
    Sweep,
    /// Something of the scenario's.
    Action(A),
}

/// What a worker is at.
pub(super) enum Job<A> {
    /// A message by its id in the queue.
    Message(u64),
    /// Something of our own, done again after a crash or not.
    Deed(Deed<A>),
}

pub(super) struct Running<A> {
    pub slot: usize,
    pub task: Task<Outcome>,
    pub job: Job<A>,
    /// The message at hand, as a cause; none, if it is something else.
    pub causes: Vec<u64>,
    /// What it has published so far.
    pub said: Published,
}

/// Steps after which a run may be stopped.
const MIDDLE: usize = 500;
/// Steps after which everything has come to rest.
const LONG: u64 = 30_000;
/// With so many crashes, in percent of the requests, most deliveries end in one.
const MOST_CRASH: f64 = 15.0;

/// A simulation on its way.
pub struct Sim<S: Scenario> {
    /// The world it happens in.
    pub world: World,
    /// The seed's.
    pub rng: Rng,
    /// What goes wrong.
    pub troubles: Troubles,
    /// What happened.
    pub stats: Stats,
    /// Whether anything may go wrong now.
    pub faults: bool,
    steps: u64,
    pub(super) agenda: Vec<(Timestamp, Deed<S::Action>)>,
    pub(super) slots: Vec<Option<Arc<S::Engine>>>,
    pub(super) running: Vec<Running<S::Action>>,
    published: usize,
    makers: Makers,
    /// Whoever would have to wait for longer is at rest.
    pub patience: Option<Span>,
    /// The messages by which each dead letter was sent again.
    pub(super) redriven: HashMap<String, HashSet<u64>>,
    /// Of each dead letter, the round that it was last due for.
    pub(super) rounds: HashMap<String, i64>,
    /// What was handled, by its queue.
    pub told: Vec<Told>,
    copied: HashSet<u64>,
    /// Copies and redriven letters, by the message they say again.
    same_as: HashMap<u64, u64>,
    /// What was delivered and is not done with.
    pub(super) received: HashMap<u64, Received>,
}

/// Runs one seed. `scenario` draws the seed's story: who does what, and what goes wrong.
///
/// # Errors
/// The first invariant that is violated.
pub fn simulate<S: Scenario>(seed: u64, scenario: impl FnOnce(&mut Rng) -> (S, Troubles), trace: bool) -> Result<Stats, Violation> {
    let mut rng = Rng::new(seed);
    let (mut scenario, troubles) = scenario(&mut rng);
    let mut sim = Sim::new(rng, troubles);
    scenario.prepare(&sim.world);
    sim.world.core().table.journal.clear();
    if trace {
        let plan = format!("{:?}", sim.troubles);
        sim.world.core().trace = Some(vec![plan]);
    }
    let result = sim.story(&mut scenario);
    let trace = sim.world.core().trace.take().unwrap_or_default();
    result.map(|()| sim.stats).map_err(|rule| Violation { seed, rule, trace })
}

impl<S: Scenario> Sim<S> {
    fn new(rng: Rng, troubles: Troubles) -> Self {
        let world = World::new(Timestamp(1_795_000_000_000));
        world.core().queue.max_receives = u32::MAX;
        world.core().table.metered = false;
        world.core().table.stale_indexes = troubles.stale_indexes;
        world.core().table.stale_reads = troubles.stale_indexes.then(|| Rng::new(rng.clone().bits() ^ 1));
        world.core().table.staged = troubles.staged.then(|| Rng::new(rng.clone().bits()));
        let slots = (0..=troubles.workers).map(|_| None).collect();
        Self {
            world,
            rng,
            troubles,
            stats: Stats::default(),
            faults: true,
            steps: 0,
            agenda: vec![],
            slots,
            running: vec![],
            published: 0,
            makers: Makers::default(),
            patience: None,
            redriven: HashMap::new(),
            rounds: HashMap::new(),
            told: vec![],
            copied: HashSet::new(),
            same_as: HashMap::new(),
            received: HashMap::new(),
        }
    }

    fn story(&mut self, scenario: &mut S) -> Result<(), String> {
        self.world.core().faults = self.troubles.faults(&mut self.rng);
        scenario.schedule(self);
        if self.troubles.cut {
            for _ in 0..self.rng.below(MIDDLE) {
                if !self.step(scenario)? {
                    break;
                }
            }
            self.stop(scenario);
        } else {
            let rested = self.rest(scenario, LONG);
            // If most deliveries crash, a message may leave more copies than it ends. Then it comes to rest when the crashes stop.
            if self.steps <= LONG || self.troubles.crash < MOST_CRASH {
                rested?;
            }
        }
        self.faults = false;
        {
            let mut core = self.world.core();
            core.faults = None;
            core.table.stale_indexes = false;
            core.table.stale_reads = None;
            core.table.catch_up(usize::MAX);
        }
        scenario.come_to_an_end(self)?;
        scenario.at_rest(self)
    }

    /// Notes a line in the trace.
    pub fn note(&self, line: &str) {
        self.world.core().note(|| format!("---- {line}"));
    }

    /// Puts something on the agenda.
    pub fn plan(&mut self, at: Timestamp, action: S::Action) {
        self.agenda.push((at, Deed::Action(action)));
    }

    /// Puts a tick of the sweep on the agenda, for now, if there is a sweep.
    pub fn plan_sweep(&mut self) {
        if self.troubles.unswept {
            return;
        }
        let now = self.world.now();
        self.agenda.push((now, Deed::Sweep));
    }

    /// Forgets what is still on the agenda.
    pub fn clear_agenda(&mut self) {
        self.agenda.clear();
    }

    /// A time in which others make about `requests` requests at most.
    pub fn a_while(&mut self, requests: usize) -> Span {
        let longest = self.troubles.tick.0 as usize * requests / 2 + 1;
        Span(self.rng.below(longest) as i64)
    }

    /// Goes on until nothing is left to do.
    ///
    /// # Errors
    /// An invariant that is violated, or that there is no end to it.
    pub fn rest(&mut self, scenario: &mut S, limit: u64) -> Result<(), String> {
        let end = self.steps + limit;
        while self.step(scenario)? {
            if self.steps > end {
                return Err(format!("does not come to rest within {limit} steps"));
            }
        }
        Ok(())
    }

    /// One decision of the scheduler; `false`: there is nothing to decide about.
    fn step(&mut self, scenario: &mut S) -> Result<bool, String> {
        self.steps += 1;
        if self.world.core().pending_transactions() > 0 && self.rng.chance(20.0) {
            return self.advance_transaction(scenario).map(|()| true);
        }
        let now = self.world.now();
        if self.faults && self.troubles.letters && self.rng.chance(2.0) {
            self.store_letters();
        }
        let due = self.agenda.iter().filter(|(at, _)| *at <= now).count();
        let free = self.slots.len() - self.running.len();
        let visible = if free > 0 { self.world.core().queue.receivable(now) } else { vec![] };
        if due > 0 && free > 0 && (self.rng.chance(20.0) || (self.running.is_empty() && visible.is_empty())) {
            let nth = self.rng.below(due);
            let place = self.agenda.iter().enumerate().filter(|(_, (at, _))| *at <= now).nth(nth).map_or(0, |(i, _)| i);
            match self.agenda.swap_remove(place).1 {
                Deed::Sweep => self.sweep(scenario),
                Deed::Action(action) => scenario.act(self, action),
            }
            return Ok(true);
        }
        scenario.meanwhile(self);
        if self.faults && free > 0 && self.rng.chance(self.troubles.sweep) {
            self.sweep(scenario);
            return Ok(true);
        }
        if !visible.is_empty() && (self.running.is_empty() || (self.running.len() < self.troubles.workers && self.rng.chance(40.0)))
        {
            let id = *self.rng.pick(&visible);
            self.deliver(scenario, id);
            return Ok(true);
        }
        if !self.running.is_empty() {
            let place = self.rng.below(self.running.len());
            self.go_on(scenario, place)?;
            return Ok(true);
        }
        if self.world.core().pending_transactions() > 0 {
            return self.advance_transaction(scenario).map(|()| true);
        }
        if self.is_still() {
            scenario.still(self)?;
        }
        Ok(self.wait_for_something())
    }

    /// Whether no message is being handled or on its way back: those that are left were never received.
    fn is_still(&self) -> bool {
        self.world.core().queue.messages.values().all(|message| message.receives == 0)
    }

    /// A transaction goes on, whoever began it.
    fn advance_transaction(&mut self, scenario: &mut S) -> Result<(), String> {
        self.world.core().advance_transaction(&mut self.rng);
        self.look(scenario)
    }

    fn wait_for_something(&mut self) -> bool {
        let next = self.world.core().queue.next_time();
        let Some(at) = self.agenda.iter().map(|(at, _)| *at).chain(next).min() else { return false };
        let span = at - self.world.now();
        if self.patience.is_some_and(|patience| span > patience) {
            return false;
        }
        self.world.pass(Span(span.0.max(1)));
        true
    }

    fn engine(&mut self, scenario: &S, slot: usize, received: Option<&Received>) -> Arc<S::Engine> {
        let engine = match self.slots[slot].take() {
            Some(engine) => engine,
            None => {
                let skew = self.troubles.skew.0;
                let skew = if skew == 0 { 0 } else { self.rng.below(2 * skew as usize + 1) as i64 - skew };
                scenario.engine(self.world.skewed(slot, Span(skew)))
            }
        };
        self.slots[slot] = Some(engine.clone());
        scenario.begins(&engine, received);
        engine
    }

    fn free_slot(&self) -> usize {
        (0..self.slots.len()).find(|slot| self.running.iter().all(|running| running.slot != *slot)).unwrap_or(0)
    }

    pub(super) fn original(&self, id: u64) -> u64 {
        self.same_as.get(&id).copied().unwrap_or(id)
    }

    fn deliver(&mut self, scenario: &S, id: u64) {
        let slot = self.free_slot();
        let received = self.world.core().queue.receive(id);
        let Some(received) = received else { return };
        if let Some(letter) = &received.letter {
            // The same input as the message that died.
            let dead = letter.letter.rsplit_once("message-").and_then(|(_, id)| id.parse().ok());
            self.same_as.extend(dead.map(|dead| (id, self.original(dead))));
            self.redriven.entry(letter.letter.clone()).or_default().insert(id);
            self.stats.count("redriven");
        }
        if self.faults && !self.copied.contains(&id) && self.rng.chance(self.troubles.duplicate) {
            // A queue delivers a message again, as it was sent; whoever sends it once more makes another one.
            let sent = if self.rng.chance(50.0) { received.sent } else { self.world.now() };
            let again = Received { sent, ..received.clone() };
            let copy = self.world.core().queue.copy(id, &again);
            // Once: copies of copies would never come to rest.
            self.copied.extend([id, copy]);
            self.same_as.insert(copy, self.original(id));
        }
        let engine = self.engine(scenario, slot, Some(&received));
        self.received.insert(id, received.clone());
        self.world.core().note(|| format!("          w{slot} begins #{id} {:?}", received.parcel));
        let causes = publications::causes_of(&received);
        self.running.push(Running {
            slot,
            task: engine.handle(received),
            job: Job::Message(id),
            causes,
            said: Published::by_delivery(),
        });
        self.stats.count("deliveries");
    }

    fn sweep(&mut self, scenario: &S) {
        self.start(scenario, Deed::Sweep, Hands::sweep);
    }

    /// Starts something a worker does that is no message.
    pub fn work(&mut self, scenario: &S, action: S::Action, task: impl FnOnce(Arc<S::Engine>) -> Task<Outcome>) {
        self.start(scenario, Deed::Action(action), task);
    }

    /// Starts the handling of a client's request, which is a cause of its own.
    pub fn request(&mut self, scenario: &S, (action, cause): (S::Action, u64), task: impl FnOnce(Arc<S::Engine>) -> Task<Outcome>) {
        self.work(scenario, action, task);
        if let Some(running) = self.running.last_mut() {
            running.causes.push(cause);
            running.said = Published::by_request();
        }
    }

    fn start(&mut self, scenario: &S, deed: Deed<S::Action>, task: impl FnOnce(Arc<S::Engine>) -> Task<Outcome>) {
        let slot = self.free_slot();
        let engine = self.engine(scenario, slot, None);
        self.world.core().note(|| format!("          w{slot} begins {deed:?}"));
        let task = task(engine);
        self.running.push(Running { slot, task, job: Job::Deed(deed), causes: vec![], said: Published::by_delivery() });
    }

    /// Lets a worker make one request; then looks at everything it changed.
    fn go_on(&mut self, scenario: &mut S, place: usize) -> Result<(), String> {
        let polled = step(&mut self.running[place].task);
        self.stats.count("requests");
        let tick = self.rng.below(self.troubles.tick.0 as usize + 1) as i64;
        {
            let mut core = self.world.core();
            core.now = core.now + Span(tick);
            let now = core.now;
            core.queue.fire(now);
        }
        if self.troubles.stale_indexes && self.rng.chance(10.0) {
            let changes = self.rng.below(4);
            self.world.core().table.catch_up(changes);
        }
        self.look(scenario)?;
        self.see_publications(scenario, place)?;
        let crashed = self.faults && self.rng.chance(self.troubles.crash);
        match polled {
            _ if crashed => self.crash(scenario, place),
            Poll::Ready(outcome) => return self.done(scenario, place, outcome),
            Poll::Pending => {
                if let Job::Message(id) = self.running[place].job
                    && self.faults
                    && self.rng.chance(self.troubles.zombie)
                {
                    let now = self.world.now();
                    self.world.core().queue.give_back(id, now);
                    self.stats.count("zombies");
                }
            }
        }
        Ok(())
    }

    /// Looks at what has changed.
    fn look(&mut self, scenario: &mut S) -> Result<(), String> {
        let mut core = self.world.core();
        let changes = std::mem::take(&mut core.table.journal);
        if let Some(contradiction) = std::mem::take(&mut core.bus.contradictions).first() {
            return Err(format!("one id, two contents: {contradiction}"));
        }
        if changes.is_empty() {
            return Ok(());
        }
        if let Some(change) = changes.iter().find(|change| S::REGISTERED && register::kind(&change.key).is_none()) {
            return Err(format!("{} is not in the register of the table", change.key));
        }
        if S::REGISTERED {
            changes.iter().filter_map(|change| change.new.as_ref()).try_for_each(|item| bounds::check(item))?;
        }
        for item in changes.iter().filter(|change| change.key.pk == keys::DUE_LETTERS).filter_map(|change| change.new.as_ref()) {
            let round = self.rounds.entry(keys::letter_of(&item.key.sk).to_owned()).or_default();
            *round = (*round).max(1 + item.number("n").unwrap_or(0));
        }
        self.makers.learn(&changes);
        scenario.changed(&changes, &core.table, core.request_count())
    }

    fn see_publications(&mut self, scenario: &mut S, place: usize) -> Result<(), String> {
        let fresh = self.world.core().bus.log[self.published..].to_vec();
        if fresh.is_empty() {
            return Ok(());
        }
        self.published += fresh.len();
        let Running { causes, said, .. } = &mut self.running[place];
        let may_repeat = |cause: u64, event: &str| scenario.may_repeat(cause, event);
        publications::check(&self.makers, causes, said, (&fresh, self.faults), may_repeat)?;
        for publication in fresh {
            if publication.again {
                self.stats.count("published again");
            }
            scenario.published(self, &publication);
        }
        Ok(())
    }
}
