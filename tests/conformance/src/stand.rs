//! A stand for direct tests: one worker on the twins, one project `p`, a clock moved by hand, and executors that answer as rules
//! have them answer.

use keelway_domain::event::{CloudEvent, EventType, Kind, Object};
use keelway_domain::names::{Context, ProjectName};
use keelway_domain::shipyard::Shipyard;
use keelway_domain::stored::Stored;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::item::{Item, Key};
use keelway_engine::ports::PortError;
use keelway_engine::ports::Store;
use keelway_engine::projects;
use keelway_engine::protocol::dead_letter::{self, DeadLetter, Redriven};
use keelway_engine::protocol::sweep::{self, Swept, Tick};
use keelway_engine::protocol::{Handled, Inbox};
use keelway_engine::sequences::commands::Control;
use keelway_engine::sequences::{self, Body, Incoming, Limits, Message, Sequences, keys};
use keelway_world::World;
use keelway_world::bus::Publication;
use keelway_world::exec::{self, block_on};
use keelway_world::played::Played;
use keelway_world::queue::{QueueTwin, Received};
use keelway_world::worker::Worker;
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub use crate::definitions::{delivery, gate, hourly, shipyard, stage, task};

/// When every stand begins.
pub const BEGIN: Timestamp = Timestamp(1_795_000_000_000);

/// So many messages until rest are taken for a storm.
const STORM: usize = 5_000;

/// A world with one project, and an engine on it.
pub struct Stand {
    /// The world.
    pub world: World,
    /// The engine.
    pub engine: Sequences<Worker>,
}

/// The project of a stand.
pub fn project() -> ProjectName {
    ProjectName::new("p").expect("a name")
}

/// A context.
pub fn context(name: &str) -> Context {
    Context::new(name).expect("a name")
}

/// A JSON object.
pub fn object(value: Value) -> Object {
    value.as_object().cloned().unwrap_or_default()
}

/// A trigger as an executor's rule delivers it.
pub struct Triggered {
    /// The task.
    pub task: String,
    /// The event.
    pub event: Value,
    at: Timestamp,
}

impl Triggered {
    /// What an executor says of it; the id is derived from the trigger's, so an executor that is told twice says the same twice.
    pub fn answer(&self, kind: Kind, by: &str) -> CloudEvent {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let data = &self.event["data"];
        CloudEvent {
            id: format!("{}-{by}-{}", text(&self.event["id"]), kind.as_str()),
            source: by.to_owned(),
            ty: EventType::task(&self.task, kind),
            time: self.at,
            context: context(&text(&self.event["shkeptncontext"])),
            authors: vec![],
            triggered_id: Some(text(&self.event["id"])),
            git_commit_id: None,
            data: object(json!({
                "project": data["project"], "stage": data["stage"], "service": data["service"],
                "result": "pass", "status": "succeeded",
            })),
        }
    }
    /// `.started` and `.finished` of one executor.
    pub fn both(&self) -> Vec<CloudEvent> {
        vec![self.answer(Kind::Started, "executor"), self.answer(Kind::Finished, "executor")]
    }
}

impl Stand {
    /// With this shipyard.
    pub fn new(shipyard: &Shipyard) -> Self {
        Self::with(shipyard, Limits::default())
    }

    /// With this shipyard and these limits.
    pub fn with(shipyard: &Shipyard, limits: Limits) -> Self {
        let world = World::new(BEGIN);
        let stand = Self { engine: Sequences::new(world.worker(0), limits), world };
        stand.put(Item::new(projects::keys::listed("p")));
        stand.apply("r1", shipyard);
        stand
    }

    /// Writes an item as it is.
    pub fn put(&self, item: Item) {
        block_on(self.world.worker(0).put_batch(&[item], &[])).expect("the twin takes it");
    }

    /// Takes an item away, as if it were not visible; put it back with [`Stand::put`].
    pub fn hide(&self, key: &Key) -> Item {
        let item = self.item(key).expect("it is there");
        block_on(self.world.worker(0).put_batch(&[], std::slice::from_ref(key))).expect("the twin takes it");
        item
    }

    /// An item.
    pub fn item(&self, key: &Key) -> Option<Item> {
        self.world.core().table.peek(key).map(|item| (**item).clone())
    }

    /// Applies a revision.
    pub fn apply(&self, revision: &str, shipyard: &Shipyard) {
        let text = shipyard.to_json();
        self.put(Item::new(projects::keys::revision(&project(), revision)).with("j", text));
        self.put(Item::new(projects::keys::project(&project())).with("v", 1i64).with("rev", revision));
    }

    /// An event of a client about a stage.
    pub fn event(&self, stage: &str, on: &str, ty: String, answers: Option<&str>, id: &str) -> CloudEvent {
        CloudEvent {
            id: id.into(),
            source: "client".into(),
            ty,
            time: self.world.now(),
            context: context(on),
            authors: vec![],
            triggered_id: answers.map(str::to_owned),
            git_commit_id: None,
            data: object(json!({"project": "p", "stage": stage, "service": "svc", "result": "pass", "status": "succeeded"})),
        }
    }

    /// The trigger of `dev.delivery` in a context.
    pub fn trigger_event(&self, on: &str) -> CloudEvent {
        self.event("dev", on, "sh.keptn.event.dev.delivery.triggered".into(), None, &format!("trigger-{on}"))
    }

    /// Puts an event on the bus, a moment after everything before it: two messages have two times.
    pub fn emit(&self, event: CloudEvent) {
        self.world.pass(Span(1));
        self.world.emit::<Sequences<Worker>>(event);
    }

    /// Triggers `dev.delivery` in a context.
    pub fn trigger(&self, on: &str) {
        self.emit(self.trigger_event(on));
        self.rest();
    }

    /// Starts and finishes the open task of that name.
    pub fn answer(&self, on: &str, task: &str) {
        let open = self.published(on, &EventType::task(task, Kind::Triggered)).expect("triggered");
        for event in self.triggered(task, open).both() {
            self.emit(event);
        }
        self.rest();
    }

    fn triggered(&self, task: &str, event: Value) -> Triggered {
        Triggered { task: task.to_owned(), event, at: self.world.now() }
    }

    /// What a publication asks of an executor.
    pub fn asked(&self, publication: &Publication) -> Option<Triggered> {
        let EventType::Task(task, Kind::Triggered) = EventType::parse(&publication.entry.detail_type) else { return None };
        Some(self.triggered(task.as_str(), serde_json::from_str(&publication.entry.detail).expect("JSON")))
    }

    /// The newest event of that type and context.
    pub fn published(&self, on: &str, ty: &str) -> Option<Value> {
        let events = self.world.outgoing();
        let events = events.iter().rev().map(|entry| serde_json::from_str::<Value>(&entry.detail).expect("JSON"));
        events.into_iter().find(|event| event["type"] == ty && event["shkeptncontext"] == on)
    }

    /// Everything ever published, repetitions included.
    pub fn publications(&self) -> usize {
        self.world.core().bus.log.len()
    }

    /// How often each type was published, repetitions included.
    pub fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for publication in &self.world.core().bus.log {
            let ty = publication.entry.detail_type.replace("sh.keptn.event.", "");
            *counts.entry(ty).or_default() += 1;
        }
        counts
    }

    /// What was published more than once, and how often.
    pub fn repeated(&self) -> Vec<(String, usize)> {
        let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
        for publication in &self.world.core().bus.log {
            *counts.entry((publication.id.clone(), publication.entry.detail_type.clone())).or_default() += 1;
        }
        counts.into_iter().filter(|(_, n)| *n > 1).map(|((_, ty), n)| (ty.replace("sh.keptn.event.", ""), n)).collect()
    }

    /// The next message that is due, received.
    pub fn receive(&self) -> Option<(u64, Incoming)> {
        let mut core = self.world.core();
        let now = core.now;
        let id = *core.queue.receivable(now).first()?;
        let received: Received = core.queue.receive(id)?;
        Some((id, received.incoming().expect("a message of this version")))
    }

    /// Puts a message back that was received: it comes again at once.
    pub fn give_back(&self, id: u64) {
        let mut core = self.world.core();
        let now = core.now;
        core.queue.give_back(id, now);
    }

    /// Handles a delivery.
    ///
    /// # Errors
    /// As the engine says.
    pub fn handle(&self, delivery: &Incoming) -> Result<Handled, PortError> {
        block_on(self.engine.play(delivery))
    }

    /// Handles what is due until nothing is.
    pub fn rest(&self) {
        self.rest_with(|_| vec![]);
    }

    /// The same, while executors answer every publication of a task's trigger, also repeated ones. Returns what was handled.
    pub fn rest_with(&self, mut executor: impl FnMut(&Triggered) -> Vec<CloudEvent>) -> Vec<Incoming> {
        let mut handled = vec![];
        let mut seen = self.publications();
        loop {
            let Some((id, delivery)) = self.receive() else { return handled };
            self.handle(&delivery).unwrap_or_else(|e| panic!("{e}: {delivery:?}"));
            self.world.core().queue.acknowledge(id);
            handled.push(delivery);
            assert!(handled.len() < STORM, "after {STORM} messages there is no rest: {:?}", self.counts());
            let fresh: Vec<Publication> = self.world.core().bus.log[seen..].to_vec();
            seen += fresh.len();
            for publication in fresh {
                let Some(asked) = self.asked(&publication) else { continue };
                for answer in executor(&asked) {
                    self.emit(answer);
                }
            }
        }
    }

    /// Handles what is due until such a message is next.
    pub fn rest_until(&self, next: impl Fn(&Body) -> bool) {
        while let Some((id, delivery)) = self.receive() {
            if next(&delivery.body) {
                return self.give_back(id);
            }
            self.handle(&delivery).unwrap_or_else(|e| panic!("{e}: {delivery:?}"));
            self.world.core().queue.acknowledge(id);
        }
        panic!("no such message comes");
    }

    /// Handles one of the engine's own messages, sent now.
    pub fn own(&self, message: Message) -> Handled {
        let delivery = Incoming { sent: self.world.now(), again: false, body: Body::Own(message) };
        self.handle(&delivery).unwrap_or_else(|e| panic!("{e}"))
    }

    /// Begins a delivery on a worker of its own, which goes on when it is stepped.
    pub fn begin(&self, worker: usize, delivery: &Incoming) -> exec::Task<Result<Handled, PortError>> {
        let engine = Sequences::new(self.world.worker(worker), Limits::default());
        let delivery = delivery.clone();
        Box::pin(async move { engine.play(&delivery).await })
    }

    /// Tells a context something through the API's own command; what it sends is in the queue afterwards.
    pub fn tell(&self, on: &str, what: Control) {
        block_on(self.engine.control(&project(), &context(on), None, what)).unwrap_or_else(|e| panic!("{e}"));
    }

    /// A context as the API shows it.
    pub fn state(&self, on: &str) -> Option<Value> {
        block_on(self.engine.views().sequence_state(&project(), &context(on))).expect("nothing is in the way")
    }

    /// Stores a dead letter.
    pub fn store_letter(&self, letter: &DeadLetter) {
        block_on(dead_letter::store(self.engine.ports(), letter)).expect("nothing is in the way");
    }

    /// Sends dead letters again that are due, once.
    pub fn redrive(&self) -> usize {
        block_on(dead_letter::redrive(self.engine.ports())).expect("nothing is in the way")
    }

    /// Takes a letter out.
    pub fn letter_handled(&self, again: &Redriven) {
        block_on(dead_letter::handled(self.engine.ports(), again)).expect("nothing is in the way");
    }

    /// One page of a tick.
    pub fn page(&self, tick: &mut Tick) -> Swept {
        block_on(sweep::page::<keelway_domain::sequences::Execution>(&self.engine, tick)).expect("nothing is in the way")
    }

    /// One tick.
    pub fn sweep(&self) -> Swept {
        let (mut tick, mut all) = (Tick::default(), Swept::default());
        while !all.finished {
            let page = self.page(&mut tick);
            all = all.and(page);
        }
        all
    }

    /// Lets time pass in steps of five minutes with a sweep after each; no message of a timer arrives.
    pub fn sweep_for(&self, minutes: i64) {
        for _ in 0..minutes / 5 {
            self.world.pass(Span::minutes(5));
            self.sweep();
            self.rest();
        }
    }

    /// Loses every message that is in the engine's queue or will be: timers too.
    pub fn lose_messages(&self) {
        self.world.core().queue = QueueTwin::default();
    }

    /// How many items a partition has, by the beginning of their sort keys.
    pub fn count(&self, partition: &str, prefix: &str) -> usize {
        self.world.core().table.partition(partition).filter(|item| item.key.sk.starts_with(prefix)).count()
    }

    /// How many stand in the queue of the lane of `dev`.
    pub fn queue(&self) -> usize {
        self.count("K#p#dev#svc", "Q#")
    }

    /// The context that holds the lane of `dev`.
    pub fn holder(&self) -> Option<String> {
        self.item(&Key::new("K#p#dev#svc", keys::MAIN)).and_then(|item| item.text("hc").map(str::to_owned))
    }

    /// The executions of a context, by stage.
    pub fn executions(&self, on: &str) -> Vec<keelway_domain::sequences::Execution> {
        let partition = keys::context_partition(&project(), &context(on));
        let core = self.world.core();
        let items = core.table.partition(&partition).filter(|item| item.key.sk.starts_with("X#"));
        let mut all: Vec<_> = items.map(|item| sequences::Loaded::read(item).expect("readable").x).collect();
        all.sort_by_key(|x| (x.stage.clone(), x.id));
        all
    }

    /// Removes what has expired by now.
    pub fn expire(&self) {
        expire(&self.world);
    }
}

/// Removes what has expired by now.
pub fn expire(world: &World) {
    let mut core = world.core();
    let now = core.now.0 / 1000;
    let gone: Vec<Key> =
        core.table.items().filter(|item| item.number("ttl").is_some_and(|ttl| ttl <= now)).map(|item| item.key.clone()).collect();
    for key in gone {
        core.table.put_batch(&[], &[key], false).expect("the twin deletes");
    }
}
