//! A story told to an engine: one worker handles every message in the order of sending, and the clock moves only when told to. In
//! between, what a contract wants to go wrong.

use crate::World;
use crate::case::Answer;
use crate::core::{Fault, Method};
use crate::exec::{Task, step};
use crate::played::Played;
use crate::queue::{Parcel, Received};
use crate::rng::Rng;
use crate::tested::Tested;
use crate::worker::Worker;
use keelway_domain::stored::Stored;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::item::Item;
use keelway_engine::ports::PortError;
use keelway_engine::protocol::{Handled, Inbox, Incoming, dead_letter};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;

/// Handles what a worker received, as the functions do: a dead letter on its way again is taken out when it is done.
///
/// # Errors
/// What must come back; a message only newer code understands.
pub async fn handle(engine: &impl Inbox, received: &Received) -> Result<Handled, PortError> {
    let handled = engine.handle(&read(received)?).await?;
    done_with(engine, received).await.map(|()| handled)
}

/// The same of an engine that is compiled once.
///
/// # Errors
/// Those of [`handle`].
pub async fn play(engine: &impl Played, received: &Received) -> Result<Handled, PortError> {
    let handled = engine.play(&read(received)?).await?;
    done_with(engine, received).await.map(|()| handled)
}

fn read<M: Stored>(received: &Received) -> Result<Incoming<M>, PortError> {
    received.incoming().ok_or_else(|| PortError::Retry { request: "decode", reason: "a message of a newer version".into() })
}

async fn done_with(engine: &impl Inbox, received: &Received) -> Result<(), PortError> {
    match &received.letter {
        Some(letter) => dead_letter::handled(engine.ports(), letter).await,
        None => Ok(()),
    }
}

/// What goes wrong while a story is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Nothing.
    Clean,
    /// Every message is handled twice in a row.
    Twice,
    /// The worker stops after its n-th request (from 1), and the message comes back at once, or after all others.
    Crash {
        /// Which request.
        after: u64,
        /// After all others.
        late: bool,
    },
    /// The n-th request is refused for now.
    Throttle(u64),
    /// The n-th request happens, but its answer is lost.
    AnswerLost(u64),
    /// The n-th request happens twice: the client's retry gets the second answer.
    Repeated(u64),
}

impl Mode {
    /// Every kind of fault at one request, by the request's number.
    pub const FAULTS: [fn(u64) -> Mode; 5] = [
        |after| Mode::Crash { after, late: false },
        |after| Mode::Crash { after, late: true },
        Mode::Throttle,
        Mode::AnswerLost,
        Mode::Repeated,
    ];
}

/// When stories begin: a Wednesday, 2026-11-18, at 11:06:40.
pub const BEGINNING: Timestamp = Timestamp(1_795_000_000_000);
/// A message is handled at most so often without success before the story gives up.
const TRIES: u32 = 30;
const HANDLER: usize = 1;

/// How an engine is made on a worker.
type Make<E> = Arc<dyn Fn(Worker) -> E + Send + Sync>;

/// A story being told.
pub struct Story<E> {
    /// The world it happens in.
    pub world: World,
    engine: Arc<E>,
    make: Make<E>,
    /// In which order messages are delivered; absent: as they were sent.
    pub order: Option<Rng>,
    /// The engine stands still: nothing is handled.
    pub outage: bool,
    /// How long a queue hides the message of a worker that stopped, by the engine whose queue it is. By default not at all.
    pub hidden: fn(&str) -> Span,
    mode: Mode,
    /// The method of every request made while handling messages.
    pub calls: Vec<Method>,
    /// How many requests had been made when a piece of work began: a message or a client's request.
    begun: BTreeSet<u64>,
    said: HashMap<u64, Handled>,
    late: BTreeSet<u64>,
    history: Vec<Arc<Received>>,
    /// What was published so far, read.
    read: Vec<Value>,
    /// What must never happen, and did.
    pub broken: Vec<String>,
    /// How often everything was delivered once more.
    pub replays: u32,
}

impl<E: Tested> Story<E> {
    /// In an empty world.
    pub fn of(mode: Mode, make: impl Fn(Worker) -> E + Send + Sync + 'static) -> Self {
        Self::at(BEGINNING, mode, make)
    }

    /// The same at another time.
    pub fn at(beginning: Timestamp, mode: Mode, make: impl Fn(Worker) -> E + Send + Sync + 'static) -> Self {
        let world = World::new(beginning);
        world.core().queue.max_receives = TRIES;
        let engine = Arc::new(make(world.worker(HANDLER)));
        let story = Self {
            world,
            engine,
            make: Arc::new(make),
            order: None,
            outage: false,
            hidden: |_| Span(0),
            mode,
            calls: vec![],
            begun: BTreeSet::new(),
            said: HashMap::new(),
            late: BTreeSet::new(),
            history: vec![],
            read: vec![],
            broken: vec![],
            replays: 0,
        };
        story.plan_fault();
        story
    }

    /// A copy that goes its own way, with the engine as it is. From here on, something else goes wrong, at a request that is still
    /// to come.
    pub fn fork(&self, mode: Mode) -> Self {
        self.forked(mode, self.make.clone())
    }

    /// The same of an engine that needs more of the copied world than its ports.
    pub fn fork_of(&self, mode: Mode, make: impl Fn(Worker) -> E + Send + Sync + 'static) -> Self {
        self.forked(mode, Arc::new(make))
    }

    fn forked(&self, mode: Mode, make: Make<E>) -> Self {
        let world = self.world.fork();
        let engine = Arc::new(make(world.worker(HANDLER)).remembering(&self.engine));
        let story = Self {
            world,
            engine,
            make,
            order: self.order.clone(),
            outage: self.outage,
            hidden: self.hidden,
            mode,
            calls: self.calls.clone(),
            begun: self.begun.clone(),
            said: self.said.clone(),
            late: self.late.clone(),
            history: self.history.clone(),
            read: self.read.clone(),
            broken: self.broken.clone(),
            replays: self.replays,
        };
        story.plan_fault();
        story
    }

    /// Whether from here on everything is as in another story, if the same is done in both and what goes wrong is behind them. What
    /// was delivered is compared by whoever has it replayed.
    pub fn goes_on_like(&self, other: &Self) -> bool {
        // Who was asked to come later has come, and no order is drawn.
        let plain = |story: &Self| story.late.is_empty() && story.order.is_none();
        plain(self)
            && plain(other)
            && self.outage == other.outage
            && self.broken == other.broken
            && self.engine.remembers_what(&other.engine)
            && self.world.core().goes_on_like(&other.world.core())
    }

    /// Another engine like this story's, for somebody else in its world.
    pub fn another(&self, worker: usize) -> E {
        (self.make)(self.world.worker(worker))
    }

    fn plan_fault(&self) {
        let (at, fault) = match self.mode {
            Mode::Throttle(at) => (at, Fault::Throttled),
            Mode::AnswerLost(at) => (at, Fault::AnswerLost),
            Mode::Repeated(at) => (at, Fault::Repeated),
            Mode::Clean | Mode::Twice | Mode::Crash { .. } => return,
        };
        // Every step of the handler so far was a request.
        let count = AtomicU64::new(self.calls.len() as u64);
        self.world.core().faults = Some(Box::new(move |worker, _| {
            let hit = worker == HANDLER && count.fetch_add(1, Ordering::Relaxed) + 1 == at;
            if hit { fault } else { Fault::None }
        }));
    }

    /// Handles everything that is in the queue now, in the order of sending.
    pub fn deliver_all(&mut self) {
        while !self.outage {
            let now = self.world.now();
            let ids = self.world.core().queue.receivable(now);
            let next = match &mut self.order {
                Some(rng) if !ids.is_empty() => Some(rng.pick(&ids)),
                _ => ids.iter().find(|id| !self.late.contains(id)).or(ids.first()),
            };
            let Some(id) = next.copied() else { return };
            self.deliver(id);
        }
    }

    fn deliver(&mut self, id: u64) {
        let delivery = self.world.core().queue.receive(id);
        let Some(delivery) = delivery else {
            self.broken.push(format!("a message is never done with: {:?}", self.world.core().queue.dead.last()));
            return;
        };
        let delivery = Arc::new(delivery);
        self.history.push(delivery.clone());
        let now = self.world.now();
        match self.handle(&delivery) {
            Some(Ok(handled)) => {
                self.said.entry(id).or_insert(handled);
                if self.mode == Mode::Twice
                    && let Some(Err(e)) = self.handle(&delivery)
                {
                    self.broken.push(format!("the second time: {e}"));
                }
                self.late.remove(&id);
                self.world.core().queue.acknowledge(id);
            }
            Some(Err(e)) if e.passes() => self.world.core().queue.give_back(id, now),
            Some(Err(e)) => {
                self.broken.push(e.to_string());
                self.world.core().queue.acknowledge(id);
            }
            None => {
                if matches!(self.mode, Mode::Crash { late: true, .. }) {
                    self.late.insert(id);
                }
                self.restart();
                self.world.core().queue.give_back(id, now + (self.hidden)(&delivery.engine));
            }
        }
    }

    /// A new process: nothing is remembered.
    fn restart(&mut self) {
        self.engine = Arc::new((self.make)(self.world.worker(HANDLER)));
    }

    /// A client's request, made again until it is answered, and twice if every message is delivered twice. The first answer.
    ///
    /// # Errors
    /// It can never be answered.
    pub fn request<R>(&mut self, make: impl Fn(Arc<E>) -> Task<Result<R, PortError>>) -> Result<R, PortError> {
        let mut failed = PortError::Retry { request: "request", reason: "it is never answered".into() };
        for _ in 0..TRIES {
            match self.drive(make(self.engine.clone())) {
                Some(Ok(answer)) => {
                    if self.mode == Mode::Twice
                        && let Some(Err(e)) = self.drive(make(self.engine.clone()))
                    {
                        self.broken.push(format!("the second time: {e}"));
                    }
                    return Ok(answer);
                }
                Some(Err(e)) if e.passes() => failed = e,
                Some(Err(e)) => return Err(e),
                None => self.restart(),
            }
        }
        Err(failed)
    }

    /// `None`: the worker stopped on the way.
    fn handle(&mut self, received: &Arc<Received>) -> Option<Result<Handled, PortError>> {
        let (engine, received) = (self.engine.clone(), received.clone());
        self.drive(Box::pin(async move { play(&*engine, &received).await }))
    }

    fn drive<R>(&mut self, mut task: Task<R>) -> Option<R> {
        self.begun.insert(self.calls.len() as u64);
        loop {
            let before = self.world.core().request_count();
            let polled = step(&mut task);
            let (after, last) = {
                let core = self.world.core();
                (core.request_count(), core.last)
            };
            if after > before {
                self.calls.extend(last);
                if matches!(self.mode, Mode::Crash { after, .. } if after == self.calls.len() as u64) {
                    return None;
                }
            }
            if let Poll::Ready(result) = polled {
                return Some(result);
            }
        }
    }

    /// Delivers everything that was ever delivered once more.
    pub fn replay(&mut self) {
        self.replays += 1;
        for delivery in std::mem::take(&mut self.history) {
            let done = match self.handle(&delivery) {
                Some(Err(e)) if e.passes() => self.handle(&delivery),
                done => done,
            };
            if let Some(Err(e)) = done {
                self.broken.push(format!("replayed: {e}"));
            }
        }
        self.deliver_all();
    }

    /// Moves the clock to the next time anything is due and handles it; `false` if nothing is due until `end`.
    pub fn next_timer(&mut self, end: Timestamp) -> bool {
        let next = self.world.core().queue.next_time();
        let Some(at) = next.filter(|at| *at <= end) else { return false };
        let now = self.world.now();
        self.world.pass(Span((at - now).0.max(0)));
        self.deliver_all();
        true
    }

    /// Everything published, by id and content.
    pub fn published(&self) -> Vec<String> {
        self.world.outgoing().iter().map(|entry| entry.detail.clone()).collect()
    }

    /// The state at the end, without versions, which count the writes.
    pub fn state(&self) -> Vec<String> {
        let core = self.world.core();
        let line = |item: &Arc<Item>| {
            let mut attrs = item.attrs.clone();
            attrs.remove("v");
            format!("{} {attrs:?}", item.key)
        };
        core.table.items().filter(|item| E::is_state(&item.key)).map(line).collect()
    }

    /// All that has happened: every request, every item, every publication, what is still in the queue, and the time.
    pub fn everything(&self) -> String {
        format!("{:?} {}", self.calls, self.all_but_requests())
    }

    /// The same without the requests.
    pub fn all_but_requests(&self) -> String {
        let core = self.world.core();
        let items: Vec<_> = core.table.items().collect();
        format!("{items:?} {:?} {:?} {:?} {:?}", core.bus.log, core.queue, core.now, self.history)
    }

    /// Whether the n-th request (from 1) only read, and its work had made another one before. A worker that stops after it leaves
    /// what it leaves if it stops after the one before.
    pub fn is_later_read(&self, n: u64) -> bool {
        let before = n.saturating_sub(1);
        let method = usize::try_from(before).ok().and_then(|place| self.calls.get(place));
        method.is_some_and(|method| method.is_read()) && !self.begun.contains(&before)
    }

    /// Puts a message into the engine's queue and handles it, and all that comes of it. What the engine said, if it may be
    /// compared.
    pub fn put_in(&mut self, parcel: Parcel) -> Answer {
        let id = self.world.enqueue(E::NAME, parcel);
        self.deliver_all();
        match (self.mode, self.said.get(&id)) {
            (Mode::Clean, Some(handled)) => Answer::handled(*handled),
            _ => Answer::unknown(),
        }
    }

    /// Whether nothing goes wrong, and what is answered may be compared.
    pub fn is_clean(&self) -> bool {
        self.mode == Mode::Clean
    }

    /// Whether events have one order.
    pub fn ordered(&self) -> bool {
        !matches!(self.mode, Mode::Crash { late: true, .. })
    }

    /// A step begins.
    pub fn step(&mut self) {
        self.world.pass(Span(10));
        self.deliver_all();
    }

    /// Time goes by, and with it what comes due.
    pub fn wait(&mut self, span: Span) {
        let end = self.world.now() + span;
        // While nobody works, what comes due stays.
        while !self.outage && self.next_timer(end) {}
        let now = self.world.now();
        self.world.pass(end - now);
    }

    /// First publications, read.
    pub fn outgoing(&mut self) -> Vec<Value> {
        let fresh: Vec<_> = self.world.core().bus.firsts().skip(self.read.len()).map(|p| p.entry.clone()).collect();
        self.read.extend(fresh.iter().map(|entry| serde_json::from_str(&entry.detail).unwrap_or_default()));
        self.read.clone()
    }
}
