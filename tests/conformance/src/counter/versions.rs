//! Two versions of the counter engine side by side on one table and one queue, as while a release is rolled out.

use super::core::{ADD, Counter, ENDED, Rules};
use super::newer::{New, NewerCounters, Raised};
use super::{Counters, NAME, subject};
use crate::sim::{self, Hands, OneKind, Outcome, Scenario, Sim, Stats, Violation};
use keelway_domain::event::CloudEvent;
use keelway_domain::ids::{context_of, hash64};
use keelway_domain::names::Context;
use keelway_domain::stored::Stored;
use keelway_domain::time::Span;
use keelway_engine::ports::PortError;
use keelway_engine::protocol::{Handled, Loaded};
use keelway_world::World;
use keelway_world::bus::Publication;
use keelway_world::exec::Task;
use keelway_world::queue::{Parcel, Received};
use keelway_world::rng::Rng;
use keelway_world::table::{Change, Table};
use keelway_world::worker::Worker;
use serde_json::json;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

const NAMES: [&str; 2] = ["a", "b"];
const LIMIT: i64 = 8;

/// A worker of which nobody knows which version it runs: each message may meet either.
pub struct Either<const FORMAT: i64> {
    older: Arc<Counters<Worker>>,
    newer: Arc<NewerCounters<Worker, FORMAT>>,
    rollout: Arc<Rollout>,
}

/// How far the later version is rolled out, and what the earlier one left to it.
struct Rollout {
    draw: Mutex<Rng>,
    complete: AtomicBool,
    waited: AtomicU64,
}

impl Rollout {
    fn newer(&self) -> bool {
        let mut rng = self.draw.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        rng.chance(50.0) || self.complete.load(Ordering::Relaxed)
    }
}

impl<const FORMAT: i64> OneKind for NewerCounters<Worker, FORMAT> {
    type Subject = Raised<FORMAT>;
}

impl<const FORMAT: i64> Hands for Either<FORMAT> {
    fn handle(self: Arc<Self>, received: Received) -> Task<Outcome> {
        if self.rollout.newer() {
            return self.newer.clone().handle(received);
        }
        Box::pin(async move {
            let outcome = self.older.clone().handle(received).await;
            if matches!(outcome, Err(PortError::Retry { request: "decode", .. })) {
                self.rollout.waited.fetch_add(1, Ordering::Relaxed);
            }
            outcome
        })
    }
    fn sweep(self: Arc<Self>) -> Task<Outcome> {
        if self.rollout.newer() { self.newer.clone().sweep() } else { self.older.clone().sweep() }
    }
}

/// What somebody does: adds to a counter, or raises its limit.
#[derive(Debug, Clone)]
pub enum Order {
    /// Adds.
    Add(&'static str, i64, usize),
    /// Raises, by a message only the later version knows.
    Raise(&'static str, i64, u64),
}

/// One seed's counters under two versions.
pub struct SideBySide<const FORMAT: i64> {
    rules: Rules,
    orders: Vec<Order>,
    rollout: Arc<Rollout>,
}

/// Runs one seed. `FORMAT` 1: the later version adds an attribute and a message; 2: it also writes items the earlier one cannot
/// read.
///
/// # Errors
/// The first invariant that is violated.
pub fn with_an_added_member(seed: u64, trace: bool) -> Result<Stats, Violation> {
    sim::simulate(seed, SideBySide::<1>::of, trace)
}

/// The same, and the later version writes a newer format.
///
/// # Errors
/// The first invariant that is violated.
pub fn with_a_newer_format(seed: u64, trace: bool) -> Result<Stats, Violation> {
    sim::simulate(seed, SideBySide::<2>::of, trace)
}

impl<const FORMAT: i64> SideBySide<FORMAT> {
    fn of(rng: &mut Rng) -> (Self, sim::Troubles) {
        let orders = (0..1 + rng.below(10)).map(|i| {
            let name = *rng.pick(&NAMES);
            let n = 1 + rng.below(3) as i64;
            if rng.chance(30.0) { Order::Raise(name, n, i as u64) } else { Order::Add(name, n, i) }
        });
        let orders = orders.collect();
        let rollout =
            Rollout { draw: Mutex::new(Rng::new(rng.bits())), complete: AtomicBool::new(false), waited: AtomicU64::new(0) };
        let rules = Rules { limit: LIMIT, lifetime: *rng.pick(&[Span::seconds(20), Span::minutes(30)]) };
        let troubles = sim::Troubles { dead: 0.0, ..sim::Troubles::of(rng) };
        (Self { rules, orders, rollout: Arc::new(rollout) }, troubles)
    }

    fn counters(world: &World) -> Result<Vec<Raised<FORMAT>>, String> {
        let core = world.core();
        let items = NAMES.iter().filter_map(|name| core.table.peek(&subject::key(name)));
        items.map(|item| Loaded::read(item).map(|loaded| loaded.x).map_err(|e| e.to_string())).collect()
    }

    /// What was added and raised is what was seen, each once; what was seen besides is the peer's nudge.
    fn check(&self, Raised { counter: x, by }: &Raised<FORMAT>) -> Result<(), String> {
        let (mut count, mut raised, mut orders) = (0, 0, 0);
        for order in &self.orders {
            match order {
                Order::Add(name, n, i) if *name == x.name && x.seen.contains(&id_of(*i)) => count += n,
                Order::Raise(name, n, i) if *name == x.name && x.seen.contains(&hash64(&[&i.to_be_bytes()])) => raised += n,
                Order::Add(..) | Order::Raise(..) => continue,
            }
            orders += 1;
        }
        let nudges = x.seen.len() - orders;
        let right = nudges <= 1 && x.count == count + nudges as i64 && *by == raised && x.limit == LIMIT + raised;
        if right { Ok(()) } else { Err(format!("added {count}, raised by {raised}, but {x:?} by {by}")) }
    }
}

fn id_of(i: usize) -> u64 {
    hash64(&[b"somebody", format!("add-{i}").as_bytes()])
}

impl<const FORMAT: i64> Scenario for SideBySide<FORMAT> {
    type Engine = Either<FORMAT>;
    type Action = Order;
    const REGISTERED: bool = false;

    fn engine(&self, ports: Worker) -> Arc<Self::Engine> {
        let older = Arc::new(Counters::new(ports.clone(), self.rules));
        let newer = Arc::new(NewerCounters::new(ports, self.rules));
        Arc::new(Either { older, newer, rollout: self.rollout.clone() })
    }
    fn prepare(&mut self, _: &World) {}
    fn schedule(&mut self, sim: &mut Sim<Self>) {
        for order in self.orders.clone() {
            let at = sim.world.now() + sim.a_while(60);
            sim.plan(at, order);
        }
    }
    fn act(&mut self, sim: &mut Sim<Self>, order: Order) {
        match order {
            Order::Raise(to, by, id) => {
                let message = New::Raise { to: to.to_owned(), by, id };
                sim.world.enqueue(NAME, Parcel::Own(message.to_json()));
            }
            Order::Add(name, n, i) => {
                #[expect(clippy::unwrap_used, reason = "a UUID")]
                let context = Context::new(context_of("sim", "1").to_string()).unwrap();
                let data = json!({"counter": name, "n": n, "peer": NAMES.iter().find(|peer| **peer != name)});
                sim.world.emit::<Counters<Worker>>(CloudEvent {
                    id: format!("add-{i}"),
                    source: "somebody".into(),
                    ty: ADD.into(),
                    time: sim.world.now(),
                    context,
                    authors: vec![],
                    triggered_id: None,
                    git_commit_id: None,
                    data: data.as_object().cloned().unwrap_or_default(),
                });
            }
        }
    }
    fn published(&mut self, _: &mut Sim<Self>, _: &Publication) {}
    fn acknowledged(&mut self, _: &mut Sim<Self>, _: u64, _: Received, _: Handled) -> Result<(), String> {
        Ok(())
    }
    fn changed(&mut self, changes: &[Change], _: &Table, _: u64) -> Result<(), String> {
        for change in changes.iter().filter(|change| change.key.sk == keelway_engine::keys::MAIN) {
            let (Some(old), Some(new)) = (&change.old, &change.new) else { continue };
            if old.number("ra") > new.number("ra") || old.number("f") > new.number("f") {
                return Err(format!("what the later version wrote is gone: {old:?} became {new:?}"));
            }
        }
        Ok(())
    }
    /// The rollout is complete; everything that waited for it is handled.
    fn come_to_an_end(&mut self, sim: &mut Sim<Self>) -> Result<(), String> {
        self.rollout.complete.store(true, Ordering::Relaxed);
        sim.rest(self, 60_000)?;
        sim.redrive(self)
    }
    fn at_rest(&mut self, sim: &mut Sim<Self>) -> Result<(), String> {
        let left = sim.world.core().queue.messages.len();
        if left > 0 {
            return Err(format!("{left} messages are left"));
        }
        for x in Self::counters(&sim.world)? {
            self.check(&x)?;
            let told = |p: &&Publication| p.entry.detail_type == ENDED && p.entry.detail.contains(&told_of(&x.counter));
            if x.counter.end.is_none() || sim.world.core().bus.firsts().filter(told).count() != 1 {
                return Err(format!("{x:?} has not ended, or not told it as it is"));
            }
        }
        sim.stats.add("waited for the later version", self.rollout.waited.load(Ordering::Relaxed));
        Ok(())
    }
}

fn told_of(x: &Counter) -> String {
    format!("\"count\":{},\"counter\":\"{}\"", x.count, x.name)
}
