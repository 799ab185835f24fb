//! Evaluations in the simulation: who does what, and when it is over.

use super::check::{Watch, data, services};
use super::plan::{Action, INDICATORS, Manner, OBJECTIVES, PLACES, PROJECT, Plan, When};
use super::planted::{Plant, Planted};
use crate::sim::{self, OneKind, Scenario, Sim};
use keelway_domain::address::Address;
use keelway_domain::cause::Cause;
use keelway_domain::evaluation::Period;
use keelway_domain::evaluations::{Asker, INVALIDATED, SOURCE, Service};
use keelway_domain::event::CloudEvent;
use keelway_domain::ids::context_of;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::evaluations::{CONFIGURE, Message, NAME};
use keelway_engine::item::Item;
use keelway_engine::promotions;
use keelway_engine::protocol::record::SKEW;
use keelway_engine::protocol::{Handled, Inbox};
use keelway_world::World;
use keelway_world::bus::Publication;
use keelway_world::evaluations::{Engine, Shared, Task, declared, engine, project, takes};
use keelway_world::queue::{Parcel, Received};
use keelway_world::table::{Change, Table};
use keelway_world::worker::Worker;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::Arc;

/// Rounds in which everything must have ended.
const ROUNDS: usize = 60;
/// Without anything lost, an evaluation takes no longer: its window ends five minutes ahead, a source is asked twenty minutes
/// later, five times; a service has ten minutes. What is left is for workers that stop again and again.
const LONGEST: Span = Span::minutes(90);
/// Whoever writes a file tries so often.
const TRIES: usize = 50;

impl OneKind for Engine {
    type Subject = Service;
}

/// One seed's evaluations.
pub struct Evaluating {
    plan: Plan,
    plant: Option<Plant>,
    sources: Shared,
    watch: Watch,
    objectives: [Option<usize>; 3],
    /// The triggers that were sent, by the numbers of their tasks.
    sent: HashMap<usize, CloudEvent>,
    tasks: HashMap<usize, Task>,
    /// How often a pipeline has asked.
    times: HashMap<usize, u32>,
    /// So many answers to pipelines were looked at.
    told: usize,
    started: HashMap<String, usize>,
    finished: HashMap<String, usize>,
    lost: bool,
    /// What must never happen, and did.
    wrong: Option<String>,
}

/// Whether a message was lost, or what a copy of one had begun: the sweep brings that back.
fn is_lost(sim: &Sim<Evaluating>) -> bool {
    ["dead letters", sim::COPIES].iter().any(|what| sim.stats.0.contains_key(what))
}

fn object(value: &Value) -> Map<String, Value> {
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
fn put(world: &World, item: Item) {
    drop(world.core().table.put_batch(&[item], &[], false));
}

/// The pipeline that asks for an evaluation by the number of a task.
fn asker(n: usize, task: &Task, time: u32) -> Asker {
    let pipeline = Address::new(PROJECT, format!("flow-{n}"));
    Asker { pipeline, environment: task.place[1].clone(), revision: format!("v{n}"), time }
}

impl Evaluating {
    /// Of this plan, with a mistake or without.
    pub fn new(plan: Plan, plant: Option<Plant>) -> Self {
        Self {
            plan,
            plant,
            sources: Shared::default(),
            watch: Watch::default(),
            objectives: [None; 3],
            sent: HashMap::new(),
            tasks: HashMap::new(),
            times: HashMap::new(),
            told: 0,
            started: HashMap::new(),
            finished: HashMap::new(),
            lost: false,
            wrong: None,
        }
    }

    fn write(&mut self, world: &World, at: usize, objectives: usize) {
        let (stage, service) = PLACES[at];
        let scope = format!("{stage}/{service}");
        let write = || project::write(world, PROJECT, (&scope, "slo.yaml"), Some(OBJECTIVES[objectives]));
        let commit = insist(world, write);
        self.objectives[at] = Some(objectives);
        self.watch.commits.insert(commit, self.objectives);
    }

    fn declare(&self, world: &World, source: &str, delay: Option<Span>) {
        let source_of = delay.map(|delay| declared(source, Some(delay)));
        insist(world, || project::declare(world, PROJECT, source, source_of.as_ref()));
    }

    fn emit(&self, world: &World, event: CloudEvent) {
        if takes(&event.source, &event.ty) {
            world.enqueue(NAME, Parcel::Event(CloudEvent { time: world.now(), ..event }));
        }
    }

    fn choose(&self, world: &World, n: usize, source: &str) {
        let task = Task::new([PROJECT, "", ""].map(str::to_owned), "configure", "configure");
        let event = task.event(("client", CONFIGURE), format!("choice-{n}"), None, object(&json!({"type": source})));
        self.emit(world, event);
    }

    /// A sequence triggers its task, and waits.
    fn trigger(&mut self, world: &World, n: usize, at: usize) {
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
    fn hear(&mut self, world: &World) {
        let sent: Vec<String> = world.core().queue.sent_away[self.told..].to_vec();
        self.told += sent.len();
        for text in sent {
            let Ok(promotions::Message::Evaluated { id, time, .. }) = serde_json::from_str(&text) else { continue };
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
    fn asked(&self, sim: &mut Sim<Self>, n: usize) {
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

    fn mood(&self, source: &str, change: impl FnOnce(&mut keelway_world::evaluations::Mood)) {
        change(self.sources.state().moods.entry(source.to_owned()).or_default());
    }

    /// What is done about a task that was triggered.
    fn about(&mut self, sim: &mut Sim<Self>, action: &Action) {
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

    /// Looks at what was asked since the last step: before whoever asked reads anything again.
    fn look(&mut self) {
        let looked = self.watch.look(&self.sources.state().asked);
        if let (Err(wrong), None) = (looked, &self.wrong) {
            self.wrong = Some(wrong);
        }
    }
}

impl Scenario for Evaluating {
    type Engine = Engine;
    type Action = Action;

    fn engine(&self, ports: Worker) -> Arc<Engine> {
        let planted = Planted::new(&ports, self.plant, self.watch.reads.clone());
        Arc::new(engine(planted.ports().clone(), &self.sources))
    }
    fn prepare(&mut self, world: &World) {
        let prepared = project::create(world, PROJECT, &["dev", "prod"], &["svc", "other"]);
        prepared.unwrap_or_else(|error| panic!("{error}"));
        world.core().queue.absent = Some(promotions::NAME);
        if !self.plan.configured {
            return;
        }
        let indicators = format!("indicators: {{{0}: {0}, {1}: {1}}}\n", INDICATORS[0], INDICATORS[1]);
        project::write(world, PROJECT, ("", "sli.yaml"), Some(&indicators)).unwrap_or_else(|error| panic!("{error}"));
        for at in 0..PLACES.len() {
            self.write(world, at, self.plan.objectives[at]);
        }
        for (source, delay) in self.plan.sources.clone() {
            self.declare(world, source, Some(delay));
        }
    }
    fn schedule(&mut self, sim: &mut Sim<Self>) {
        sim.note(&format!("{:?}", self.plan));
        if let Some(source) = self.plan.chosen {
            self.choose(&sim.world, usize::MAX, source);
        }
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
        let (world, now) = (sim.world.clone(), sim.world.now());
        match action {
            Action::Trigger(n, at) => self.trigger(&world, n, at),
            Action::Value(source, indicator, value) => {
                let (key, mut state) = ((source.to_owned(), indicator.to_owned()), self.sources.state());
                match value {
                    Some(value) => drop(state.values.insert(key, value as f64)),
                    None => drop(state.values.remove(&key)),
                }
            }
            Action::Late(source, long) => self.mood(source, |mood| mood.late = now + long),
            Action::Busy(source, long) => self.mood(source, |mood| mood.busy = now + long),
            Action::Refuse(source, does) => self.mood(source, |mood| mood.refuses = does.then(|| "403 no".to_owned())),
            Action::Choose(n, source) => self.choose(&world, n, source),
            Action::Declare(source, delay) => self.declare(&world, source, delay),
            Action::Write(at, objectives) => self.write(&world, at, objectives),
            action => self.about(sim, &action),
        }
    }
    /// The engine for sequences takes the answer; the service on the bus answers what it is asked.
    fn published(&mut self, sim: &mut Sim<Self>, publication: &Publication) {
        let event: Value = serde_json::from_str(&publication.entry.detail).unwrap_or_default();
        let (ty, answers) = (event["type"].as_str().unwrap_or_default(), event["triggeredid"].as_str().unwrap_or_default());
        if ty == "sh.keptn.event.get-sli.triggered" {
            let n = self.tasks.iter().find(|(_, task)| event["id"] == task.get_sli()).map(|(n, _)| *n);
            n.into_iter().for_each(|n| self.asked(sim, n));
        } else if ty.ends_with("evaluation.started") {
            *self.started.entry(answers.to_owned()).or_default() += 1;
        } else if ty.ends_with("evaluation.finished") {
            *self.finished.entry(answers.to_owned()).or_default() += 1;
            if let Some(task) = self.watch.tasks.get(answers).cloned() {
                put(&sim.world, task.waiting.over());
            }
        }
    }
    fn acknowledged(&mut self, sim: &mut Sim<Self>, _: u64, received: Received, handled: Handled) -> Result<(), String> {
        sim.stats.count(match handled {
            Handled::Committed => "committed",
            Handled::Settled => "settled",
            Handled::Stale => "stale",
            Handled::Recorded => "recorded",
            Handled::Invalid => return Err(format!("a good input was refused: {:?}", received.parcel)),
        });
        self.wrong.take().map_or(Ok(()), Err)
    }
    fn changed(&mut self, changes: &[Change], table: &Table, time: u64) -> Result<(), String> {
        self.look();
        if let Some(wrong) = self.wrong.take() {
            return Err(wrong);
        }
        changes.iter().try_for_each(|change| self.watch.changed(change, table, time))
    }
    fn meanwhile(&mut self, sim: &mut Sim<Self>) {
        self.look();
        self.hear(&sim.world);
    }
    fn still(&mut self, sim: &mut Sim<Self>) -> Result<(), String> {
        let cut = sim.troubles.cut && !sim.faults;
        if cut || is_lost(sim) {
            return Ok(());
        }
        let all = services(&sim.world.core().table)?;
        let now = sim.world.now();
        let margin = Span(SKEW.0.max(2 * sim.troubles.skew.0));
        if let Some(x) = all.iter().find(|x| x.wake.is_some_and(|wake| wake + margin < now)) {
            return Err(format!("without anything lost, a service has overslept: {x:?}"));
        }
        self.watch.check_open(&all, now, LONGEST)
    }
    /// Whoever got no answer asks again.
    fn crashed(&mut self, sim: &mut Sim<Self>, action: Action) {
        let now = sim.world.now();
        sim.plan(now, action);
    }
    fn begins(&self, engine: &Engine, received: Option<&Received>) {
        engine.ports().begin(received);
    }
    fn come_to_an_end(&mut self, sim: &mut Sim<Self>) -> Result<(), String> {
        self.lost = is_lost(sim);
        if sim.troubles.cut {
            let swept = sim.sweep_only(self)?;
            let all = services(&sim.world.core().table)?;
            if let Some(x) = all.iter().find(|x| x.wake.is_some_and(|wake| wake + Span::minutes(3) < swept)) {
                return Err(format!("after a sweep a service has overslept: {x:?}"));
            }
            self.lost = true;
        }
        if self.lost {
            sim.troubles.unswept = false;
            sim.redrive(self)?;
        }
        for _ in 0..ROUNDS {
            sim.rest(self, 60_000)?;
            let all: Vec<Service> = services(&sim.world.core().table)?.into_iter().filter(|x| !x.open.is_empty()).collect();
            if all.is_empty() {
                return Ok(());
            }
            if !self.lost {
                return Err(format!("without anything lost, evaluations never end: {all:?}"));
            }
            sim.sweep_after(all.iter().filter_map(|x| x.wake));
        }
        Err("evaluations never end".into())
    }
    fn at_rest(&mut self, sim: &mut Sim<Self>) -> Result<(), String> {
        self.look();
        // Every pipeline has its answer by now.
        for (n, task) in self.tasks.iter().filter(|(n, _)| self.plan.asks[**n]) {
            put(&sim.world, project::pipeline(task, &asker(*n, task, 0), None));
        }
        if let Some(wrong) = self.wrong.take() {
            return Err(wrong);
        }
        let disorder = ["crashes", "given back", "dead letters", sim::COPIES];
        let orderly = sim.troubles.tick < Span::seconds(1) && !disorder.iter().any(|what| sim.stats.0.contains_key(what));
        self.watch.check_answers(&sim.world.core().bus, self.plan.configured, orderly)?;
        self.watch.check_told(&sim.world.core().queue.sent_away)?;
        self.watch.ends_by_word().into_iter().for_each(|word| sim.stats.count(word));
        sim.stats.add("asked", self.sources.state().asked.len() as u64);
        sim.stats.add("given up", self.watch.given_up.len() as u64);
        let foreign = sim.world.core().bus.firsts().any(|publication| publication.entry.source != SOURCE);
        if foreign || (!self.plan.configured && !services(&sim.world.core().table)?.is_empty()) {
            return Err("something came of what is nobody's".into());
        }
        if sim.rng.chance(sim::PAST) { sim.outlive(self) } else { Ok(()) }
    }
}
