//! Webhooks in the simulation: who does what, and what must hold.

use super::check::{Emitted, Watch, delivery};
use super::plan::{Action, NAMESPACE, Plan, When};
use super::planted::{Plant, Planted};
use super::yard::{Receivers, SECRET, Shared, lock};
use crate::sim::{self, OneKind, Scenario, Sim, Stats, Violation};
use keelway_domain::event::CloudEvent;
use keelway_domain::ids::SubjectId;
use keelway_domain::names::Context;
use keelway_domain::stored::Stored;
use keelway_domain::time::Span;
use keelway_domain::webhooks::{Delivery, id};
use keelway_engine::keys::MAIN;
use keelway_engine::protocol::record::SKEW;
use keelway_engine::protocol::{Handled, Inbox};
use keelway_engine::webhooks::{Address, Limits, Message, NAME, Redelivery, Webhooks, keys};
use keelway_wire::cloudevent::from_bus_envelope;
use keelway_world::World;
use keelway_world::bus::Publication;
use keelway_world::exec::block_on;
use keelway_world::queue::{Parcel, Received};
use keelway_world::rng::Rng;
use keelway_world::table::{Change, Table};
use keelway_world::worker::Worker;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};

/// Rounds in which everything must have ended.
const ROUNDS: usize = 40;

type Hooks = Webhooks<Worker, Receivers>;

impl OneKind for Hooks {
    type Subject = Delivery;
}

/// One seed's subscriptions.
pub struct Hooking {
    plan: Plan,
    plant: Option<Plant>,
    yard: Shared,
    watch: Watch,
    /// What people were promised since the last step.
    promised: Arc<Mutex<Vec<(Address, SubjectId)>>>,
    lost: bool,
}

/// Runs one seed.
///
/// # Errors
/// The first invariant that is violated.
pub fn simulate(seed: u64, plant: Option<Plant>, trace: bool) -> Result<Stats, Violation> {
    let scenario = |rng: &mut Rng| {
        let (plan, troubles) = Plan::of(rng);
        (Hooking::new(plan, plant), troubles)
    };
    sim::simulate(seed, scenario, trace)
}

/// Runs one seed without a sweep: everything comes to rest all the same, because no message is lost.
///
/// # Errors
/// The first invariant that is violated.
pub fn simulate_without_sweeps(seed: u64, plant: Option<Plant>, trace: bool) -> Result<Stats, Violation> {
    let scenario = |rng: &mut Rng| {
        let (plan, troubles) = Plan::of(rng);
        (Hooking::new(plan, plant), troubles.without_sweeps())
    };
    sim::simulate(seed, scenario, trace)
}

fn address(name: &str) -> Address {
    Address { namespace: NAMESPACE.into(), name: name.into() }
}

fn identity(event: &CloudEvent) -> (String, String) {
    (event.source.clone(), event.id.clone())
}

impl Hooking {
    fn new(plan: Plan, plant: Option<Plant>) -> Self {
        let yard = Shared::default();
        let watch = Watch::of(&yard);
        Self { plan, plant, yard, watch, promised: Arc::default(), lost: false }
    }

    fn deliveries(&self, world: &World) -> Result<Vec<Delivery>, String> {
        let core = world.core();
        let items = core.table.items().filter(|item| item.key.pk.starts_with("WD#") && item.key.sk == MAIN);
        items.map(|item| delivery(item)).collect()
    }

    /// An event that the rule of the bus takes.
    fn emit(&mut self, world: &World, event: CloudEvent) {
        let now = world.core().request_count();
        self.watch.emitted.entry(identity(&event)).or_insert_with(|| Emitted {
            event: event.clone(),
            from: now,
            first: None,
            last: now,
        });
        world.enqueue(NAME, Parcel::Event(event));
    }

    fn event(&self, world: &World, n: usize, ty: &str, stage: &str) -> CloudEvent {
        let data = json!({"project": NAMESPACE, "stage": stage, "service": "svc"});
        CloudEvent {
            id: format!("event-{n}"),
            source: "somebody".into(),
            ty: ty.into(),
            time: world.now(),
            context: Context::of(&format!("context-{n}")),
            authors: vec![],
            triggered_id: None,
            git_commit_id: None,
            data: data.as_object().cloned().unwrap_or_default(),
        }
    }

    /// One of a subscription's deliveries is asked for again.
    fn redeliver(&mut self, sim: &mut Sim<Self>, name: &'static str, ask: usize) {
        let all = self.deliveries(&sim.world).unwrap_or_default();
        let of: Vec<SubjectId> = all.iter().filter(|x| x.of.1 == name).map(|x| x.id).collect();
        if of.is_empty() {
            return;
        }
        let (id, promised) = (*sim.rng.pick(&of), self.promised.clone());
        sim.work(self, Action::Redeliver(name, ask), move |engine: Arc<Hooks>| {
            Box::pin(async move {
                if let Redelivery::Again(new) = engine.redeliver(NAMESPACE, id, &ask.to_string()).await? {
                    promised.lock().unwrap_or_else(PoisonError::into_inner).push((address(name), new));
                }
                Ok(None)
            })
        });
    }

    fn look_at_promises(&mut self, world: &World) {
        let promised = std::mem::take(&mut *self.promised.lock().unwrap_or_else(PoisonError::into_inner));
        if !promised.is_empty() {
            let now = world.core().request_count();
            self.watch.promised.extend(promised.into_iter().map(|(of, id)| (of, id, now)));
        }
    }

    /// What a sweep makes good for.
    fn made_good(&self, world: &World, swept: keelway_domain::time::Timestamp) -> Result<(), String> {
        let overslept = |x: &&Delivery| x.due.is_some_and(|due| due + Span::minutes(3) < swept);
        match self.deliveries(world)?.iter().find(overslept) {
            Some(x) => Err(format!("after a sweep a delivery has overslept: {x:?}")),
            None => Ok(()),
        }
    }
}

/// Whether a message was lost, or what a copy of one had begun: the sweep brings that back.
fn is_lost(sim: &Sim<Hooking>) -> bool {
    ["dead letters", sim::COPIES].iter().any(|what| sim.stats.0.contains_key(what))
}

impl Scenario for Hooking {
    type Engine = Hooks;
    type Action = Action;

    fn engine(&self, ports: Worker) -> Arc<Hooks> {
        let ports = Planted::new(&ports, self.plant, self.yard.clone());
        let receivers = Receivers { ports: ports.clone(), yard: self.yard.clone() };
        Arc::new(Webhooks::with(ports.ports().clone(), Limits::default(), receivers))
    }
    fn prepare(&mut self, world: &World) {
        let engine = Webhooks::new(world.worker(0), Limits::default());
        for (name, subscription) in &self.plan.first {
            drop(block_on(engine.apply(&address(name), subscription, "")));
        }
        let changes = std::mem::take(&mut world.core().table.journal);
        changes.iter().for_each(|change| drop(self.watch.changed(change, 0)));
        lock(&self.yard).moods.extend(self.plan.moods.iter().map(|(name, mood)| ((*name).to_owned(), *mood)));
    }
    fn schedule(&mut self, sim: &mut Sim<Self>) {
        sim.note(&format!("{:?}", self.plan));
        self.watch.skew = sim.troubles.skew;
        for (when, action) in self.plan.actions.clone() {
            let span = match when {
                When::Soon(requests) => sim.a_while(requests),
                When::Later(span) => span,
            };
            let at = sim.world.now() + span;
            sim.plan(at, action);
        }
    }
    fn act(&mut self, sim: &mut Sim<Self>, action: Action) {
        match action.clone() {
            Action::Emit(n, ty, stage) => {
                let event = self.event(&sim.world, n, ty, stage);
                self.emit(&sim.world, event);
            }
            Action::Apply(name, subscription) => sim.work(self, action, move |engine: Arc<Hooks>| {
                Box::pin(async move { engine.apply(&address(name), &subscription, "").await.map(|_| None) })
            }),
            Action::Delete(name) => sim.work(self, action, move |engine: Arc<Hooks>| {
                Box::pin(async move { engine.remove(&address(name)).await.map(|_| None) })
            }),
            Action::Resume(name) => sim.work(self, action, move |engine: Arc<Hooks>| {
                Box::pin(async move { engine.resume(&address(name)).await.map(|_| None) })
            }),
            Action::Redeliver(name, ask) => self.redeliver(sim, name, ask),
            Action::Mood(name, mood) => drop(lock(&self.yard).moods.insert(name.to_owned(), mood)),
        }
    }
    /// What the engine publishes comes back from the bus.
    fn published(&mut self, sim: &mut Sim<Self>, publication: &Publication) {
        let entry = &publication.entry;
        let detail: Value = serde_json::from_str(&entry.detail).unwrap_or_default();
        let envelope = json!({"source": entry.source, "detail-type": entry.detail_type, "detail": detail});
        if let Ok(event) = from_bus_envelope(&envelope, sim.world.now()) {
            self.emit(&sim.world, event);
        }
    }
    fn acknowledged(&mut self, sim: &mut Sim<Self>, _: u64, received: Received, handled: Handled) -> Result<(), String> {
        sim.stats.count(match handled {
            Handled::Committed => "committed",
            Handled::Settled => "settled",
            Handled::Stale => "stale",
            Handled::Invalid | Handled::Recorded => "recorded",
        });
        let now = sim.world.core().request_count();
        match &received.parcel {
            Parcel::Event(event) => {
                if let Some(emitted) = self.watch.emitted.get_mut(&identity(event)) {
                    emitted.first.get_or_insert(now);
                    emitted.last = now;
                }
            }
            Parcel::Own(text) => {
                if let Ok(Message::Deliver { to, event, again: None, .. }) = Message::from_json(text) {
                    let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
                    let id = id((&to.namespace, &to.name), &text("source"), &text("id"), None);
                    self.watch.handled.entry(id).or_insert(now);
                }
            }
            Parcel::Invalid { .. } => {}
        }
        lock(&self.yard).wrong.take().map_or(Ok(()), Err)
    }
    fn changed(&mut self, changes: &[Change], _: &Table, time: u64) -> Result<(), String> {
        if let Some(wrong) = lock(&self.yard).wrong.take() {
            return Err(wrong);
        }
        changes.iter().try_for_each(|change| self.watch.changed(change, time))
    }
    fn meanwhile(&mut self, sim: &mut Sim<Self>) {
        self.watch.now = sim.world.now();
        self.look_at_promises(&sim.world);
    }
    fn may_repeat(&self, _: u64, event: &str) -> bool {
        self.watch.disabled.contains(event)
    }
    fn still(&mut self, sim: &mut Sim<Self>) -> Result<(), String> {
        let cut = sim.troubles.cut && !sim.faults;
        if cut || is_lost(sim) {
            return Ok(());
        }
        let overslept = |x: &&Delivery| x.due.is_some_and(|due| due + SKEW < sim.world.now());
        match self.deliveries(&sim.world)?.iter().find(overslept) {
            Some(x) => Err(format!("without anything lost, a delivery has overslept: {x:?}")),
            None => Ok(()),
        }
    }
    /// Whoever got no answer asks again.
    fn crashed(&mut self, sim: &mut Sim<Self>, action: Action) {
        let now = sim.world.now();
        sim.plan(now, action);
    }
    fn begins(&self, engine: &Hooks, received: Option<&Received>) {
        engine.ports().begin(received);
    }
    fn come_to_an_end(&mut self, sim: &mut Sim<Self>) -> Result<(), String> {
        self.lost = is_lost(sim);
        if sim.troubles.cut {
            let swept = sim.sweep_only(self)?;
            self.made_good(&sim.world, swept)?;
            self.lost = true;
        }
        // Without anything lost, nothing waits for the sweep; what was lost does.
        if self.lost {
            sim.troubles.unswept = false;
            sim.redrive(self)?;
        }
        for _ in 0..ROUNDS {
            sim.rest(self, 60_000)?;
            let open: Vec<Delivery> = self.deliveries(&sim.world)?.into_iter().filter(|x| x.end.is_none()).collect();
            if open.is_empty() {
                return Ok(());
            }
            if !self.lost {
                return Err(format!("without anything lost, deliveries never end: {open:?}"));
            }
            sim.sweep_after(open.iter().filter_map(|x| x.due));
        }
        Err("deliveries never end".into())
    }
    fn at_rest(&mut self, sim: &mut Sim<Self>) -> Result<(), String> {
        self.look_at_promises(&sim.world);
        let all = self.deliveries(&sim.world)?;
        let core = sim.world.core();
        self.watch.check_deliveries(&core.table)?;
        all.iter().try_for_each(|x| self.watch.check_end(x, &core.bus))?;
        self.watch.check_receivers(&core.bus)?;
        for x in &all {
            sim.stats.count(x.end.map_or("open", keelway_domain::webhooks::End::as_str));
        }
        let told = core.bus.log.iter().find(|publication| publication.entry.detail.contains(SECRET));
        let kept = core.table.items().find(|item| format!("{item:?}").contains(SECRET));
        if told.is_some() || kept.is_some() {
            return Err(format!("a secret is told: {told:?} {kept:?}"));
        }
        drop(core);
        if sim.rng.chance(sim::PAST) { sim.outlive(self) } else { Ok(()) }
    }
    /// A day later, an event is delivered to a subscription that takes it now and did not then. A year later, it is not.
    fn may_begin(&self, world: &World, name: &str, days: i64) -> bool {
        let all = self.deliveries(world).unwrap_or_default();
        let begun = all.iter().find(|x| keys::delivery(x.id).to_string() == name);
        days <= 1 && begun.is_some_and(|x| self.watch.takes(x))
    }
}
