//! What sequences, pipelines, sources and people do.

use super::check::data;
use super::plan::{Action, INDICATORS, Manner, OBJECTIVES, PLACES, PROJECT};
use super::scenario::Evaluating;
use crate::sim::Sim;
use keelway_domain::address::Address;
use keelway_domain::cause::Cause;
use keelway_domain::evaluation::Period;
use keelway_domain::evaluations::{Asker, INVALIDATED};
use keelway_domain::event::CloudEvent;
use keelway_domain::ids::context_of;
use keelway_domain::stored::Stored;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::evaluations::{CONFIGURE, Message, NAME};
use keelway_engine::item::Item;
use keelway_engine::promotions;
use keelway_world::World;
use keelway_world::evaluations::{Engine, Task, declared, project, takes};
use keelway_world::queue::Parcel;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Whoever writes a file tries so often.
const TRIES: usize = 50;

pub(super) fn object(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

/// Somebody's request, repeated until it is answered. A transaction whose answer was lost goes on without whoever asked for it, and
/// would get in the way of the next try until it has ended.
fn insist<T>(world: &World, mut ask: impl FnMut() -> Result<T, String>) -> T {
    let mut last = Err("it is never answered".into());
    for _ in 0..TRIES {
        last = ask();
        if last.is_ok() {
            break;
        }
        world.core().finish_transactions();
    }
    last.unwrap_or_else(|error| panic!("{error}"))
}

/// What the engine for sequences writes.
pub(super) fn put(world: &World, item: Item) {
    drop(world.core().table.put_batch(&[item], &[], false));
}

/// The pipeline that asks for an evaluation by the number of a task.
pub(super) fn asker(n: usize, task: &Task, time: u32) -> Asker {
    let pipeline = Address::new(PROJECT, format!("flow-{n}"));
    Asker { pipeline, environment: task.place[1].clone(), revision: format!("v{n}"), time }
}

impl Evaluating {
    pub(super) fn write(&mut self, world: &World, at: usize, objectives: usize) {
        let (stage, service) = PLACES[at];
        let scope = format!("{stage}/{service}");
        let write = || project::write(world, PROJECT, (&scope, "slo.yaml"), Some(OBJECTIVES[objectives]));
        let commit = insist(world, write);
        self.objectives[at] = Some(objectives);
        self.watch.commits.insert(commit, self.objectives);
    }

    pub(super) fn declare(&self, world: &World, source: &str, delay: Option<Span>) {
        let source_of = delay.map(|delay| declared(source, Some(delay)));
        insist(world, || project::declare(world, PROJECT, source, source_of.as_ref()));
    }

    fn emit(&self, world: &World, event: CloudEvent) {
        if takes(&event.source, &event.ty) {
            world.enqueue(NAME, Parcel::Event(CloudEvent { time: world.now(), ..event }));
        }
    }

    pub(super) fn choose(&self, world: &World, n: usize, source: &str) {
        let task = Task::new([PROJECT, "", ""].map(str::to_owned), "configure", "configure");
        let event = task.event(("client", CONFIGURE), format!("choice-{n}"), None, object(&json!({"type": source})));
        self.emit(world, event);
    }

    /// A sequence triggers its task, and waits.
    pub(super) fn trigger(&mut self, world: &World, n: usize, at: usize) {
        let (stage, service) = PLACES[at];
        let context = context_of("evaluations", &n.to_string()).to_string();
        let task = Task::new([PROJECT, stage, service].map(str::to_owned), &context, &format!("task {n}"));
        let (length, ago) = self.plan.windows[n];
        let end = Timestamp(world.now().0 - ago.0);
        let window = (Timestamp(end.0 - length.0 - n as i64), end);
        let event = CloudEvent { time: world.now(), ..task.triggered(window) };
        self.watch.windows.insert(window, task.id());
        self.watch.tasks.insert(task.id(), task.clone());
        self.sent.insert(n, event.clone());
        self.tasks.insert(n, task.clone());
        if self.plan.asks[n] {
            self.watch.asked.insert(task.id());
            return self.ask(world, n, Period { start: window.0, end: window.1 });
        }
        put(world, task.waiting.item());
        world.enqueue(NAME, Parcel::Event(event));
    }

    /// A pipeline that was told waits no more.
    pub(super) fn hear(&mut self, world: &World) {
        let sent: Vec<String> = world.core().queue.sent_away[self.told..].to_vec();
        self.told += sent.len();
        for text in sent {
            let Ok(promotions::Message::Evaluated { id, time, .. }) = promotions::Message::from_json(&text) else { continue };
            if let Some((n, task)) = self.tasks.iter().find(|(_, task)| task.id() == id) {
                put(world, project::pipeline(task, &asker(*n, task, time), None));
            }
        }
    }

    /// A pipeline asks for an evaluation, perhaps not for the first time.
    fn ask(&mut self, world: &World, n: usize, period: Period) {
        let Some(task) = self.tasks.get(&n) else { return };
        let time = self.times.entry(n).or_default();
        *time += 1;
        let asker = asker(n, task, *time);
        put(world, project::pipeline(task, &asker, Some(period)));
        let message = Message::Evaluate { to: task.place.clone(), id: task.id(), period, asker };
        world.enqueue(NAME, Parcel::Own(message.letter().body));
    }

    /// A sequence waits no more, and perhaps somebody says so.
    fn give_up(&mut self, world: &World, task: &Task, told: bool) {
        put(world, task.waiting.over());
        if !self.finished.contains_key(&task.id()) {
            self.watch.given_up.insert(task.id());
        }
        if told {
            self.emit(world, task.cancelled(world.now()));
        }
    }

    /// What the service on the bus says.
    fn say(&self, world: &World, task: &Task, (kind, to, id): (&str, String, String), data: &Value) {
        let ty = format!("sh.keptn.event.get-sli.{kind}");
        self.emit(world, task.event(("a-service", &ty), id, Some(to), object(data)));
    }

    /// The service on the bus is asked.
    pub(super) fn asked(&self, sim: &mut Sim<Self>, n: usize) {
        let draw = |sim: &mut Sim<Self>| INDICATORS.map(|_| sim.rng.chance(85.0).then(|| 1 + sim.rng.below(4) as i64));
        let (first, second) = (draw(sim), draw(sim));
        let soon = sim.world.now() + sim.a_while(30);
        let later = soon + sim.a_while(60);
        let late = sim.world.now() + Span::minutes(15);
        let actions = match self.plan.manner {
            Manner::Silent => vec![],
            Manner::Begins => vec![(soon, Action::Began(n))],
            Manner::Answers => vec![(soon, Action::Began(n)), (later, Action::Provide(n, first, true))],
            Manner::Twice => vec![(soon, Action::Provide(n, first, true)), (later, Action::Provide(n, second, true))],
            Manner::Late => vec![(soon, Action::Began(n)), (late, Action::Provide(n, first, true))],
            Manner::Astray => vec![(soon, Action::Provide(n, second, false)), (later, Action::Provide(n, first, true))],
            Manner::Fails => {
                let status = *sim.rng.pick(&["aborted", "errored"]);
                vec![(soon, Action::Began(n)), (later, Action::Fail(n, status))]
            }
        };
        actions.into_iter().for_each(|(at, action)| sim.plan(at, action));
    }

    pub(super) fn mood(&self, source: &str, change: impl FnOnce(&mut keelway_world::evaluations::Mood)) {
        change(self.sources.state().moods.entry(source.to_owned()).or_default());
    }

    /// What is done about a task that was triggered.
    pub(super) fn about(&mut self, sim: &mut Sim<Self>, action: &Action) {
        let (Action::Again(n)
        | Action::GiveUp(n, _)
        | Action::Began(n)
        | Action::Provide(n, ..)
        | Action::Fail(n, _)
        | Action::Void(n)
        | Action::Invalidate(n)) = action
        else {
            return;
        };
        let Some(task) = self.tasks.get(n).cloned() else { return };
        let (world, id) = (sim.world.clone(), task.id());
        match action {
            Action::Again(n) if self.plan.asks[*n] => {
                let window = self.watch.windows.iter().find(|(_, of)| **of == id).map(|(window, _)| *window);
                window.into_iter().for_each(|(start, end)| self.ask(&world, *n, Period { start, end }));
            }
            // A pipeline gives nothing up.
            Action::GiveUp(n, _) if self.plan.asks[*n] => {}
            Action::Again(n) => drop(world.enqueue(NAME, Parcel::Event(self.sent[n].clone()))),
            Action::GiveUp(_, told) => self.give_up(&world, &task, *told),
            Action::Began(_) => {
                self.say(&world, &task, ("started", task.get_sli(), format!("begun {n}")), &json!({"status": "succeeded"}))
            }
            Action::Provide(_, values, right) => {
                let values = data(&[(INDICATORS[0], values[0]), (INDICATORS[1], values[1])]);
                let to = if *right { task.get_sli() } else { id.clone() };
                self.say(&world, &task, ("finished", to, format!("provided {n} {values}")), &values);
            }
            Action::Fail(_, status) => {
                let data = json!({"status": status, "result": "fail", "message": "no"});
                self.say(&world, &task, ("finished", task.get_sli(), format!("failed {n} {status}")), &data);
            }
            // Whoever takes an evaluation out has heard of it.
            Action::Void(_) if self.started.contains_key(&id) => {
                self.emit(&world, task.event(("bridge", INVALIDATED), format!("void {n}"), Some(id), Map::new()));
            }
            Action::Invalidate(_) if self.started.contains_key(&id) => {
                let cause = Cause::of_request(format!("invalidate {} {id}", task.place.join("/")).as_bytes(), world.now());
                sim.request(self, (action.clone(), cause.id), move |engine: Arc<Engine>| {
                    Box::pin(async move { engine.invalidate(&task.place, &id).await.map(|_| None) })
                });
            }
            _ => {}
        }
    }
}
