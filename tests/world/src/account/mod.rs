//! An account of AWS in one region, with one engine deployed in it: the bus with its rules, the queue with its mapping, a function
//! with so many environments. Everything takes time by the world's clock, and quotas bind.
//!
//! What others do (clients, executors) goes over the same bus. One deed follows the other, so a run is the same every time.

mod fleet;
mod told;

pub use told::{Bound, Totals};

use crate::World;
use crate::core::Method;
use crate::queue::Parcel;
use crate::quota::{Bucket, Quotas};
use crate::tested::Tested;
use crate::worker::Worker;
use fleet::Fleet;
use keelway_domain::event::CloudEvent;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::ports::BusEntry;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// How the function is deployed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// The most batches at once.
    pub concurrency: usize,
    /// The most messages of a batch.
    pub batch: usize,
    /// How long a request takes.
    pub request: Span,
    /// How long a message takes besides its requests.
    pub message: Span,
}

/// A function of 256 MB has a seventh of a processor. A task's two messages take five requests: 15 ms a message, as
/// `infra/prices.json` has it.
pub const REQUEST: Span = Span(4);
/// See [`REQUEST`].
pub const MESSAGE: Span = Span(5);

/// What somebody does with an event: what it puts on the bus, after a time each.
pub type Told = Box<dyn FnMut(&BusEntry, Timestamp) -> Vec<(Span, CloudEvent)> + Send>;

/// Somebody whom a rule invokes.
pub struct Actor {
    /// Whether its rule matches.
    pub takes: fn(&BusEntry) -> bool,
    /// What it does.
    pub told: Told,
}

/// Where a rule sends an event.
enum Target {
    Queue(Box<CloudEvent>),
    Actor(Arc<BusEntry>),
}

/// What happens at a time.
enum Deed {
    /// Somebody puts an event on the bus, the n-th time.
    Put(Box<CloudEvent>, u32),
    /// An environment goes on.
    Step(usize),
    /// A message becomes visible.
    Visible(u64),
    /// A rule may invoke its target again.
    Rules,
    /// Schedules may fire.
    Timers,
    /// There may be one more environment.
    Grow,
}

/// The first pause of somebody else whose event was refused, and the longest.
const PAUSE: (i64, i64) = (200, 20_000);

/// The account.
pub struct Account<E> {
    /// The world it is in.
    pub world: World,
    actor: Actor,
    agenda: BTreeMap<(Timestamp, u64), Deed>,
    planned: u64,
    fleet: Fleet<E>,
    /// Events that wait for a rule's invocation.
    matched: VecDeque<Target>,
    invocations: Bucket,
    fired: Bucket,
    /// The next time at which schedules or rules are looked at, if it is planned; and whether schedules wait for the quota.
    timers: Option<Timestamp>,
    held: bool,
    rules: bool,
    seen: (usize, u64),
    totals: Totals,
    /// What the world had used before.
    before: Totals,
    /// The bus's archive: what others have put on it, if it is kept.
    pub archive: Option<Vec<CloudEvent>>,
}

impl<E: Tested> Account<E> {
    /// In a world, whose requests are throttled from now on.
    pub fn new(
        world: &World,
        (settings, quotas): (Settings, Quotas),
        make: impl Fn(Worker) -> E + Send + Sync + 'static,
        actor: Actor,
    ) -> Self {
        let now = world.now();
        let seen = {
            let mut core = world.core();
            core.limit(&quotas);
            (core.bus.log.len(), core.queue.sent())
        };
        let account = Self {
            world: world.clone(),
            actor,
            agenda: BTreeMap::new(),
            planned: 0,
            fleet: Fleet::new(settings, quotas, Arc::new(make)),
            matched: VecDeque::new(),
            invocations: Bucket::new(quotas.invocations, now),
            fired: Bucket::new(quotas.fired, now),
            timers: None,
            held: false,
            rules: false,
            seen,
            totals: Totals::default(),
            before: Totals::default(),
            archive: None,
        };
        Self { before: account.totals(), ..account }
    }

    fn plan(&mut self, at: Timestamp, deed: Deed) {
        self.planned += 1;
        self.agenda.insert((at, self.planned), deed);
    }

    /// Somebody will put an event on the bus.
    pub fn put(&mut self, at: Timestamp, event: CloudEvent) {
        self.plan(at, Deed::Put(Box::new(event), 0));
    }

    /// An event that the archive has is sent to the rules again: it is charged like another one, but is no `PutEvents`.
    pub fn replay(&mut self, event: CloudEvent) {
        self.totals.events_in += 1;
        self.matched.push_back(Target::Queue(Box::new(event)));
        if !self.rules {
            self.rules = true;
            self.plan(self.world.now(), Deed::Rules);
        }
    }

    /// Goes on until nothing is left to do, or until a time. Whether nothing is left.
    pub fn run(&mut self, until: Timestamp) -> bool {
        loop {
            let Some(entry) = self.agenda.first_entry() else { return true };
            let at = entry.key().0;
            if at > until {
                let mut core = self.world.core();
                core.now = core.now.max(until);
                return false;
            }
            let deed = entry.remove();
            {
                let mut core = self.world.core();
                core.now = core.now.max(at);
            }
            self.act(deed);
            self.notice();
        }
    }

    fn act(&mut self, deed: Deed) {
        match deed {
            Deed::Put(event, tries) => self.accept(event, tries),
            Deed::Step(environment) => {
                let step = self.fleet.step(&self.world, environment, &mut self.totals);
                for (at, id) in step.returns {
                    self.plan(at, Deed::Visible(id));
                }
                if let Some(at) = step.next {
                    self.plan(at, Deed::Step(environment));
                }
            }
            Deed::Visible(id) => self.fleet.offer(id),
            Deed::Rules => {
                self.rules = false;
                self.invoke();
            }
            Deed::Timers => {
                (self.timers, self.held) = (None, false);
                self.fire();
            }
            Deed::Grow => self.fleet.grows = false,
        }
    }

    /// `PutEvents` by somebody else.
    fn accept(&mut self, event: Box<CloudEvent>, tries: u32) {
        let now = self.world.now();
        let taken = self.world.core().throttle.as_mut().is_none_or(|throttle| throttle.put_events.take(now, 1) == 1);
        if taken {
            self.totals.events_in += 1;
            if let Some(archive) = &mut self.archive {
                archive.push((*event).clone());
            }
            if E::takes(&event.source, &event.ty) {
                self.matched.push_back(Target::Queue(event));
                self.invoke();
            }
            return;
        }
        self.totals.put_again += 1;
        // Scattered, so that those that were refused together do not come together.
        let scatter = i64::try_from(self.planned % 97).unwrap_or(0);
        let pause = (PAUSE.0 << tries.min(7)).min(PAUSE.1) * (50 + scatter) / 100;
        self.plan(now + Span(pause), Deed::Put(event, tries + 1));
    }

    /// Invokes targets in the order of the events, as long as the quota allows: later, but never not at all.
    fn invoke(&mut self) {
        let now = self.world.now();
        while !self.matched.is_empty() && self.invocations.take(now, 1) == 1 {
            match self.matched.pop_front() {
                Some(Target::Queue(event)) => drop(self.world.enqueue(E::NAME, Parcel::Event(*event))),
                Some(Target::Actor(entry)) => {
                    for (after, event) in (self.actor.told)(&entry, now) {
                        self.put(now + after, event);
                    }
                }
                None => {}
            }
        }
        if !self.matched.is_empty() && !self.rules {
            self.rules = true;
            self.plan(self.invocations.next(), Deed::Rules);
        }
    }

    fn fire(&mut self) {
        let now = self.world.now();
        while self.world.core().queue.next_schedule().is_some_and(|at| at <= now) {
            if self.fired.take(now, 1) == 0 {
                (self.timers, self.held) = (Some(self.fired.next()), true);
                return self.plan(self.fired.next(), Deed::Timers);
            }
            self.totals.fired += 1;
            self.world.core().queue.fire_next(now);
        }
    }

    /// Looks at what the last deed has published, sent and scheduled, and hands out messages.
    fn notice(&mut self) {
        let (published, sent, schedule) = {
            let mut core = self.world.core();
            core.table.journal.clear();
            (core.bus.log.len(), core.queue.sent(), core.queue.next_schedule())
        };
        if published > self.seen.0 {
            let fresh: Vec<Arc<BusEntry>> =
                self.world.core().bus.log[self.seen.0..].iter().map(|publication| publication.entry.clone()).collect();
            self.seen.0 = published;
            self.matched.extend(fresh.into_iter().filter(|entry| (self.actor.takes)(entry)).map(Target::Actor));
            self.invoke();
        }
        let now = self.world.now();
        if sent > self.seen.1 {
            let fresh: Vec<(u64, Timestamp)> = {
                let core = self.world.core();
                let ours = core.queue.messages.range(self.seen.1 + 1..).filter(|(_, message)| message.engine == E::NAME);
                ours.map(|(id, message)| (*id, message.visible)).collect()
            };
            self.seen.1 = sent;
            for (id, visible) in fresh {
                if visible <= now { self.fleet.offer(id) } else { self.plan(visible, Deed::Visible(id)) }
            }
        }
        if let Some(at) = schedule.filter(|at| !self.held && self.timers.is_none_or(|planned| *at < planned)) {
            self.timers = Some(at);
            self.plan(at.max(now), Deed::Timers);
        }
        for environment in self.fleet.fill(&self.world, &mut self.totals) {
            self.plan(now, Deed::Step(environment));
        }
        if let Some(at) = self.fleet.grows_at(now) {
            self.plan(at, Deed::Grow);
        }
    }

    /// Counts what is used of the quotas from here on.
    pub fn count_anew(&mut self) {
        let mut core = self.world.core();
        if let Some(throttle) = &mut core.throttle {
            throttle.put_events.count_anew();
            throttle.created.count_anew();
        }
        if let Some(throughput) = &mut core.table.throughput {
            throughput.count_anew();
        }
        drop(core);
        self.invocations.count_anew();
        self.fired.count_anew();
        self.fleet.count_anew();
    }

    /// What has happened since the account was made.
    pub fn totals(&self) -> Totals {
        let core = self.world.core();
        let of = |methods: &[Method]| methods.iter().map(|method| core.requests[*method as usize]).sum::<u64>();
        let table = core.table.throughput.as_ref().map_or(0, |throughput| throughput.refused());
        let others = core.throttle.as_ref().map_or(0, |throttle| throttle.created.refused + throttle.put_events.refused);
        let before = &self.before;
        Totals {
            requests: core.request_count() - before.requests,
            sends: of(&[Method::Send, Method::SendAt]) - before.sends,
            writes: core.table.units.write - before.writes,
            reads: core.table.units.read - before.reads,
            published: core.bus.log.len() as u64 - before.published,
            dead: core.queue.dead.len() as u64 - before.dead,
            throttled: table + others - self.totals.put_again,
            ..self.totals
        }
    }

    /// The quotas that were used, with the seconds that this takes at least, the longest first.
    pub fn bounds(&self) -> Vec<Bound> {
        told::bounds(&self.world.core(), &[("rule invocations", &self.invocations), ("schedules fired", &self.fired)], &self.fleet)
    }
}
