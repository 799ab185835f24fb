//! Everybody outside the engine: clients, executors on the bus and polling ones, people, forgers.

use super::Shipyards;
use super::check::{decode, project};
use super::people::tell;
use super::plan::{Order, PROJECT, SERVICE, executors};
use crate::sim::Sim;
use keelway_domain::event::{CloudEvent, EventType, Kind, Object, PREFIX};
use keelway_domain::ids::{RecordId, context_of, sha256_hex};
use keelway_domain::names::Context;
use keelway_domain::sequences::{Execution, content};
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::protocol::Handled;
use keelway_engine::sequences::{Address, Message, NAME, Sequences, cause_of, codec};
use keelway_world::bus::Publication;
use keelway_world::queue::{Parcel, Received};
use keelway_world::sequences::answered;
use keelway_world::worker::Worker;
use serde_json::{Value, json};
use std::sync::Arc;

/// What somebody does at some time.
#[derive(Debug, Clone)]
pub enum Action {
    /// Puts an event on the bus.
    Emit(Box<CloudEvent>, Tag),
    /// Answers a task over HTTP.
    Post(Box<CloudEvent>),
    /// Decides an approval, through the API.
    Decide(Address, RecordId, Box<CloudEvent>),
    /// Tells a context something, through the API.
    Order(usize, Order, Option<&'static str>),
    /// Applies a revision of the shipyard.
    Apply(usize),
    /// Overrides the windows of a stage, or of the one that holds the context back.
    Override(Context, Option<String>),
    /// Applies a schedule.
    Schedule(usize),
    /// Deletes one.
    Unschedule(&'static str),
    /// Has what failed in a context repeated, from a task on if it is named.
    Retry(usize, Option<&'static str>),
}

/// How an input is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tag {
    /// A client's trigger.
    Trigger,
    /// An executor's answer to a task that was committed.
    Honest,
    /// A person's decision.
    Person,
    /// Anything else: may be refused.
    Forged,
}

/// A task that somebody is asked to do.
pub(super) struct Asked<'a> {
    pub task: &'a str,
    pub stage: &'a str,
    pub service: &'a str,
    pub context: &'a Context,
    pub trigger: &'a str,
}

impl Asked<'_> {
    pub fn event(&self, at: Timestamp, by: &str, kind: Kind) -> CloudEvent {
        let data = json!({"project": PROJECT, "stage": self.stage, "service": self.service, self.task: {"by": by}});
        CloudEvent {
            id: format!("{}-{by}-{}", self.trigger, kind.as_str()),
            source: by.to_owned(),
            ty: EventType::task(self.task, kind),
            time: at,
            context: self.context.clone(),
            authors: vec![],
            triggered_id: Some(self.trigger.to_owned()),
            git_commit_id: None,
            data: object(data),
        }
    }
}

pub(super) fn context(n: usize) -> Context {
    #[expect(clippy::unwrap_used, reason = "a UUID")]
    Context::new(context_of("sim", &n.to_string()).to_string()).unwrap()
}

fn object(value: Value) -> Object {
    value.as_object().cloned().unwrap_or_default()
}

impl Shipyards {
    pub(super) fn schedule_plan(&self, sim: &mut Sim<Self>) {
        let now = sim.world.now();
        for (i, (n, stage, name)) in self.plan.triggers.clone().into_iter().enumerate() {
            let (ty, stage) = if stage.is_empty() {
                (format!("{PREFIX}{name}"), "dev")
            } else {
                (format!("{PREFIX}{stage}.{name}.triggered"), stage)
            };
            let at = now + sim.a_while(if self.plan.busy { 300 } else { 30 });
            let event = CloudEvent {
                id: format!("trigger-{i}"),
                source: "client".into(),
                ty,
                time: at,
                context: context(n),
                authors: vec![],
                triggered_id: None,
                git_commit_id: None,
                data: object(json!({"project": PROJECT, "stage": stage, "service": SERVICE, "n": i})),
            };
            let event = if self.rollout.is_some() { super::versions::large(event) } else { event };
            sim.plan(at, Action::Emit(Box::new(event), Tag::Trigger));
        }
        for (n, order, stage) in self.plan.orders.clone() {
            let at = now + sim.a_while(if self.plan.early { 40 } else { 200 });
            sim.plan(at, Action::Order(n, order, stage));
        }
    }

    pub(super) fn carry_out(&mut self, sim: &mut Sim<Self>, action: Action) {
        match &action {
            Action::Emit(event, tag) => {
                sim.world.core().note(|| format!("          {tag:?} {} {} answers {:?}", event.ty, event.id, event.triggered_id));
                if let Some(id) = sim.world.emit::<Sequences<Worker>>((**event).clone()) {
                    self.tags.insert(id, *tag);
                }
            }
            Action::Post(event) => {
                let (event, cause) = (event.clone(), cause_of(event, sim.world.now()).id);
                sim.request(self, (action, cause), move |hand| {
                    Box::pin(async move { answered(&hand.engine, &event).await.map(Result::ok) })
                });
            }
            Action::Decide(to, trigger, event) => {
                let message = Message::Decide { to: to.clone(), trigger: *trigger, event: event.to_json() };
                let id = sim.world.enqueue(NAME, Parcel::Own(message.to_body()));
                self.tags.insert(id, Tag::Person);
            }
            Action::Order(n, order, stage) => {
                let (n, order, stage) = (*n, *order, *stage);
                sim.work(self, action, move |engine| Box::pin(async move { tell(&engine, &context(n), order, stage).await }));
            }
            _ => self.do_besides(sim, action),
        }
    }

    pub(super) fn on_publication(&mut self, sim: &mut Sim<Self>, publication: &Publication) {
        for (what, words) in
            [("declined by the clock", "declined by the clock"), ("one execution too many", "are allowed (parameter")]
        {
            if publication.entry.detail.contains(words) {
                sim.stats.count(what);
            }
        }
        let EventType::Task(task, Kind::Triggered) = EventType::parse(&publication.entry.detail_type) else { return };
        let Ok(json) = serde_json::from_str::<Value>(&publication.entry.detail) else { return };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (stage, service) = (text(&json["data"]["stage"]), text(&json["data"]["service"]));
        let Ok(context) = Context::new(text(&json["shkeptncontext"])) else { return };
        let trigger = &publication.id;
        let asked = Asked { task: task.as_str(), stage: &stage, service: &service, context: &context, trigger };
        // Executors on a rule answer each delivery, under the same ids.
        if task.as_str() != "approval" {
            self.reacted.retain(|(trigger, _)| *trigger != publication.id);
        }
        self.answer(sim, &asked);
    }

    /// Polling executors: what is open in the state, published or not.
    pub(super) fn poll_for_work(&mut self, sim: &mut Sim<Self>) {
        let open: Vec<(String, Arc<Execution>)> = {
            let core = sim.world.core();
            let items = self.watch.executions.iter().filter_map(|key| core.table.peek(key));
            let open = items.filter_map(|item| {
                let task = codec::open_task(item)?.to_owned();
                Some((task, decode(item).ok()?))
            });
            open.collect()
        };
        for (task, x) in open {
            let Some(trigger) = x.record.map(|id| id.uuid().to_string()) else { continue };
            let (stage, service) = (&x.stage, x.service.as_str());
            self.answer(sim, &Asked { task: &task, stage, service, context: &x.context, trigger: &trigger });
        }
    }

    fn answer(&mut self, sim: &mut Sim<Self>, asked: &Asked<'_>) {
        if asked.task == "approval" {
            if self.reacted.insert((asked.trigger.to_owned(), 0)) {
                self.ask_a_person(sim, asked);
            }
            return;
        }
        for n in 0..executors(asked.task) {
            if self.reacted.insert((asked.trigger.to_owned(), n)) && !sim.rng.chance(self.plan.silent) {
                self.execute(sim, asked, n);
            }
        }
    }

    fn execute(&self, sim: &mut Sim<Self>, asked: &Asked<'_>, n: usize) {
        let by = format!("executor-{n}");
        let now = sim.world.now();
        let mut begin = now + sim.a_while(10);
        let mut end = begin + sim.a_while(40);
        if sim.rng.chance(5.0) {
            end = end + Span::minutes(sim.rng.below(40) as i64);
        }
        if sim.rng.chance(10.0) {
            std::mem::swap(&mut begin, &mut end);
        }
        let started = asked.event(now, &by, Kind::Started);
        let mut finished = asked.event(now, &by, Kind::Finished);
        // What an executor does is decided by the task, so that an answer that is sent twice says the same.
        let dice = u64::from_str_radix(&sha256_hex(finished.id.as_bytes())[..8], 16).unwrap_or(0) % 1000;
        let (fail, warn) = ((self.plan.fail * 10.0) as u64, 1000 - 100);
        let result = if dice < fail {
            "fail"
        } else if dice >= warn {
            "warning"
        } else {
            "pass"
        };
        finished.data.insert("result".into(), result.into());
        finished.data.insert("status".into(), if dice.is_multiple_of(7) && dice < fail { "errored" } else { "succeeded" }.into());
        let half = sim.rng.chance(self.plan.half).then(|| sim.rng.chance(50.0));
        if half != Some(true) {
            sim.plan(begin, self.said(started));
        }
        if half != Some(false) {
            if sim.rng.chance(self.plan.forged) {
                self.forge(sim, &finished, end);
            }
            sim.plan(end, self.said(finished));
        }
        if sim.rng.chance(3.0) {
            let changed = asked.event(now, &by, Kind::StatusChanged);
            sim.plan(begin, Action::Emit(Box::new(changed), Tag::Forged));
        }
    }

    /// An honest answer, on the bus or over HTTP. The same answer goes the same way.
    fn said(&self, event: CloudEvent) -> Action {
        let http = self.plan.http && content(&event).is_multiple_of(2);
        let event = Box::new(event);
        if http { Action::Post(event) } else { Action::Emit(event, Tag::Honest) }
    }

    /// Something like an executor's answer that must change nothing it should not.
    fn forge(&self, sim: &mut Sim<Self>, honest: &CloudEvent, at: Timestamp) {
        let mut event = honest.clone();
        event.data.insert("result".into(), "fail".into());
        event.data.insert("forged".into(), true.into());
        event.id = format!("{}-forged", honest.id);
        match sim.rng.below(6) {
            0 => event.context = context(77),
            1 => {
                let other = honest.triggered_id.as_deref().and_then(RecordId::from_uuid);
                event.triggered_id = other.map(|id| RecordId { number: id.number + 1, ..id }.uuid().to_string());
            }
            2 => event.triggered_id = Some("unknown".into()),
            3 => event.source = keelway_domain::event::SOURCE.into(),
            4 => drop(event.data.remove("stage")),
            _ => event.ty = EventType::task("a", Kind::Triggered),
        }
        sim.plan(at, Action::Emit(Box::new(event), Tag::Forged));
    }

    fn ask_a_person(&self, sim: &mut Sim<Self>, asked: &Asked<'_>) {
        let Some(record) = RecordId::from_uuid(asked.trigger) else { return };
        let people = if sim.rng.chance(20.0) { 2 } else { 1 };
        for n in 0..people {
            let by = format!("person-{n}");
            let mut event = asked.event(sim.world.now(), &by, Kind::Finished);
            let approves = sim.rng.chance(75.0);
            event.data.insert("result".into(), if approves { "pass" } else { "fail" }.into());
            event.data.insert("status".into(), "succeeded".into());
            let at = sim.world.now() + sim.a_while(150);
            let to = Address { project: project(), context: asked.context.clone(), execution: record.subject };
            sim.plan(at, Action::Decide(to, record, Box::new(event.clone())));
            if sim.rng.chance(self.plan.forged) {
                // An approval from the bus counts for nothing.
                event.id.push_str("-forged");
                sim.plan(at, Action::Emit(Box::new(event), Tag::Forged));
            }
        }
    }

    pub(super) fn on_acknowledged(
        &mut self,
        sim: &mut Sim<Self>,
        id: u64,
        received: Received,
        handled: Handled,
    ) -> Result<(), String> {
        let Some(tag) = self.tags.get(&id).copied() else { return Ok(()) };
        sim.stats.count(match handled {
            Handled::Committed => "inputs committed",
            Handled::Settled => "inputs settled",
            Handled::Stale => "inputs stale",
            Handled::Invalid => "inputs invalid",
            Handled::Recorded => "inputs recorded",
        });
        if let (Tag::Honest | Tag::Trigger | Tag::Person, Handled::Invalid) = (tag, handled) {
            return Err(format!("#{id}, a good input, was recorded as invalid: {received:?}"));
        }
        if let (Parcel::Event(event), Handled::Committed, true) =
            (&received.parcel, handled, sim.faults && sim.rng.chance(self.plan.forged))
        {
            // The same identity with another content: the first one stands.
            let mut other = event.clone();
            other.data.insert("other".into(), json!({"x": 1}));
            let now = sim.world.now();
            sim.plan(now, Action::Emit(Box::new(other), Tag::Forged));
        }
        self.acknowledged.push((tag, received, handled));
        Ok(())
    }
}
