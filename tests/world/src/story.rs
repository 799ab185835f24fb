//! The world as a stand for cases: one worker that handles every message in the order of sending, an API, and a clock that moves
//! only when told to. Between the two, what a contract wants to go wrong.

use crate::World;
use crate::bus::rule_takes;
use crate::case::{Answer, Control, Entrance, LaneView, Stand};
use crate::core::{Fault, Method};
use crate::exec::{Task, block_on, step};
use crate::queue::{Parcel, Received};
use crate::worker::Worker;
use keelway_domain::event::{EventType, TaskResult};
use keelway_domain::ids::sha256_hex;
use keelway_domain::names::{Context, ProjectName};
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::ports::PortError;
use keelway_engine::protocol::{Engine, Handled, dead_letter};
use keelway_engine::sequences::commands::{self, Approval, Preflight, Verdict};
use keelway_engine::sequences::definitions::{ProjectSettings, Refusal, blob_id};
use keelway_engine::sequences::views::WorkFilter;
use keelway_engine::sequences::{self, Limits, Sequences};
use keelway_wire::cloudevent::{Origin, check_client_event, fill_id, from_bus_envelope, parse};
use keelway_wire::manifest::{self, Document};
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;

/// Handles what a worker received, as the functions do: a dead letter on its way again is taken out when it is done.
///
/// # Errors
/// What must come back; a message only newer code understands.
pub async fn handle<E: Engine>(engine: &E, received: &Received) -> Result<Handled, PortError> {
    let Some(delivery) = received.delivery() else {
        return Err(PortError::Retry { request: "decode", reason: "a message of a newer version".into() });
    };
    let handled = engine.handle(&delivery).await?;
    if let Some(letter) = &received.letter {
        dead_letter::handled(engine.ports(), letter).await?;
    }
    Ok(handled)
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

/// A message is handled at most so often without success before the story gives up.
const TRIES: u32 = 30;
const HANDLER: usize = 1;
const API: usize = 0;

/// A story being told.
pub struct Story {
    /// The world it happens in.
    pub world: World,
    engine: Arc<Sequences<Worker>>,
    api: Sequences<Worker>,
    mode: Mode,
    /// The method of every request made while handling messages.
    pub calls: Vec<Method>,
    said: HashMap<u64, Handled>,
    late: BTreeSet<u64>,
    history: Vec<Received>,
    /// What was published so far, read.
    read: Vec<Value>,
    /// What must never happen, and did.
    pub broken: Vec<String>,
}

impl Story {
    /// In an empty world.
    pub fn new(mode: Mode) -> Self {
        let world = World::new(Timestamp(1_795_000_000_000));
        world.core().queue.max_receives = TRIES;
        let engine = Arc::new(Sequences::new(world.worker(HANDLER), Limits::default()));
        let api = Sequences::new(world.worker(API), Limits::default());
        let story = Self {
            world,
            engine,
            api,
            mode,
            calls: vec![],
            said: HashMap::new(),
            late: BTreeSet::new(),
            history: vec![],
            read: vec![],
            broken: vec![],
        };
        story.plan_fault();
        story
    }

    fn plan_fault(&self) {
        let (at, fault) = match self.mode {
            Mode::Throttle(at) => (at, Fault::Throttled),
            Mode::AnswerLost(at) => (at, Fault::AnswerLost),
            Mode::Repeated(at) => (at, Fault::Repeated),
            Mode::Clean | Mode::Twice | Mode::Crash { .. } => return,
        };
        let count = AtomicU64::new(0);
        self.world.core().faults = Some(Box::new(move |worker, _| {
            let hit = worker == HANDLER && count.fetch_add(1, Ordering::Relaxed) + 1 == at;
            if hit { fault } else { Fault::None }
        }));
    }

    /// Handles everything that is in the queue now, in the order of sending.
    pub fn deliver_all(&mut self) {
        loop {
            let now = self.world.now();
            let ids = self.world.core().queue.receivable(now);
            let next = ids.iter().find(|id| !self.late.contains(id)).or(ids.first());
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
            Some(Err(PortError::Retry { .. })) => self.world.core().queue.give_back(id, now),
            Some(Err(e)) => {
                self.broken.push(e.to_string());
                self.world.core().queue.acknowledge(id);
            }
            None => {
                if matches!(self.mode, Mode::Crash { late: true, .. }) {
                    self.late.insert(id);
                }
                // A new process: nothing is remembered.
                self.engine = Arc::new(Sequences::new(self.world.worker(HANDLER), Limits::default()));
                self.world.core().queue.give_back(id, now);
            }
        }
    }

    /// `None`: the worker stopped on the way.
    fn handle(&mut self, received: &Received) -> Option<Result<Handled, PortError>> {
        let (engine, received) = (self.engine.clone(), received.clone());
        let mut task: Task<_> = Box::pin(async move { handle(&*engine, &received).await });
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
        for delivery in std::mem::take(&mut self.history) {
            if let Some(Err(e)) = self.handle(&delivery) {
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

    /// The state at the end: executions, contexts and lanes, without versions, which count the writes.
    pub fn state(&self) -> Vec<String> {
        let core = self.world.core();
        let kept = |key: &keelway_engine::item::Key| {
            key.sk.starts_with("X#") || key.pk.starts_with("K#") || (key.pk.starts_with("C#") && key.sk == "!")
        };
        let line = |item: &Arc<keelway_engine::item::Item>| {
            let mut attrs = item.attrs.clone();
            attrs.remove("v");
            format!("{} {attrs:?}", item.key)
        };
        core.table.items().filter(|item| kept(&item.key)).map(line).collect()
    }

    fn ask<T>(&self, asked: Result<T, Refusal>) -> Result<T, Answer> {
        asked.map_err(|refusal| {
            let status = match &refusal {
                Refusal::Port(_) => 503,
                Refusal::Unknown { .. } => 404,
                Refusal::Invalid { .. } => 400,
                Refusal::Conflict(_) => 409,
                Refusal::TooLarge(_) => 413,
            };
            Answer::status(status, refusal.to_string())
        })
    }

    fn put_on_the_bus(&mut self, event: &Value) -> Answer {
        let text = |field: &str, default: &'static str| {
            event[field].as_str().filter(|text| !text.is_empty()).unwrap_or(default).to_owned()
        };
        let (source, ty) = (text("source", "client"), text("type", "unknown"));
        if !rule_takes(&source, &ty) {
            return Answer::unknown();
        }
        let envelope = json!({"source": source, "detail-type": ty, "detail": event});
        let body = match from_bus_envelope(&envelope, self.world.now()) {
            Ok(event) => Parcel::Event(event),
            Err(e) => Parcel::Invalid { reason: e.to_string(), text: envelope.to_string() },
        };
        let id = self.world.enqueue(sequences::NAME, body);
        self.deliver_all();
        match (self.mode, self.said.get(&id)) {
            (Mode::Clean, Some(handled)) => Answer::handled(*handled),
            _ => Answer::unknown(),
        }
    }

    fn post(&mut self, event: &Value) -> Result<Answer, Answer> {
        let mut event = event.clone();
        let id = sha256_hex(event.to_string().as_bytes());
        fill_id(&mut event, || id);
        let read = parse(&event, Origin::Client, self.world.now()).map_err(|e| Answer::status(400, e.to_string()))?;
        if read.size() > Limits::default().max_event_bytes {
            return Err(Answer::status(413, "the event is too large"));
        }
        check_client_event(&read).map_err(|e| Answer::status(400, e.to_string()))?;
        match self.ask(block_on(self.api.preflight(&read)))? {
            Preflight::Known => {}
            Preflight::Publish => drop(self.put_on_the_bus(&read.to_json())),
            Preflight::Decision(to, trigger) => {
                let x = match self.ask(block_on(self.api.approval(&to, trigger)))? {
                    Approval::Open(x) => x,
                    _ => return Err(Answer::status(409, "the approval was decided before")),
                };
                let event = self.api.decision_of(&x, &read);
                self.hand_in(block_on(self.api.decide(&x, trigger, &event)))?;
            }
        }
        Ok(Answer::status(200, ""))
    }

    fn hand_in(&mut self, sent: Result<(), PortError>) -> Result<(), Answer> {
        sent.map_err(|e| Answer::status(503, e.to_string()))?;
        self.deliver_all();
        Ok(())
    }

    fn decided(&mut self, approval: &Value, approve: bool) -> Result<Answer, Answer> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let invalid = |e: keelway_domain::names::NameError| Answer::status(400, e.to_string());
        let project = ProjectName::new(text(&approval["data"]["project"])).map_err(invalid)?;
        let context = Context::new(text(&approval["shkeptncontext"])).map_err(invalid)?;
        let (to, trigger) = self.ask(commands::approval_address(&project, &context, &text(&approval["id"])))?;
        let x = match self.ask(block_on(self.api.approval(&to, trigger)))? {
            Approval::Open(x) => x,
            // The same decision again is answered as the first time.
            Approval::Decided { result, .. } if (result == TaskResult::Pass) == approve => return Ok(Answer::status(200, "")),
            Approval::Decided { result, .. } => {
                return Err(Answer::status(409, format!("it was decided before: {}", result.as_str())));
            }
            Approval::Closed(why) => return Err(Answer::status(409, why)),
        };
        let verdict = Verdict { approve, message: None, by: Some("somebody".into()) };
        let event = self.api.decision_event(&x, trigger, &verdict);
        self.hand_in(block_on(self.api.decide(&x, trigger, &event)))?;
        Ok(Answer::status(200, ""))
    }

    fn applied(&mut self, project: &str, text: &str) -> Result<Answer, Answer> {
        let parsed = manifest::parse(text, "shipyard.yaml");
        if parsed.refused() {
            let findings: Vec<String> = parsed.findings.iter().map(ToString::to_string).collect();
            return Err(Answer::status(400, findings.join("\n")));
        }
        let name = ProjectName::new(project).map_err(|e| Answer::status(400, e.to_string()))?;
        for document in &parsed.documents {
            let Document::Shipyard(manifest) = document else { continue };
            if matches!(block_on(self.api.get_project(&name)), Err(Refusal::Unknown { .. })) {
                let settings = ProjectSettings { name: name.clone(), description: None, start_deadline: None, task_timeout: None };
                self.ask(block_on(self.api.apply_project(&settings)))?;
            }
            let revision = blob_id(&manifest.source);
            self.ask(block_on(self.api.apply_shipyard(&name, &revision, &manifest.source, &manifest.shipyard)))?;
        }
        Ok(Answer::status(200, ""))
    }
}

fn either(result: Result<Answer, Answer>) -> Answer {
    result.unwrap_or_else(|refused| refused)
}

impl Stand for Story {
    fn salt(&self) -> String {
        String::new()
    }
    fn ordered(&self) -> bool {
        !matches!(self.mode, Mode::Crash { late: true, .. })
    }
    fn now(&self) -> Timestamp {
        self.world.now()
    }
    fn step(&mut self) {
        self.world.pass(Span(10));
        self.deliver_all();
    }
    fn apply(&mut self, project: &str, shipyard: &str) -> Answer {
        either(self.applied(project, shipyard))
    }
    fn send(&mut self, event: &Value, at: Entrance) -> Answer {
        match at {
            Entrance::Bus => self.put_on_the_bus(event),
            Entrance::Api => either(self.post(event)),
        }
    }
    fn decide(&mut self, approval: &Value, approve: bool) -> Answer {
        either(self.decided(approval, approve))
    }
    fn control(&mut self, project: &str, context: &str, stage: Option<&str>, control: Control) -> Answer {
        let (Ok(project), Ok(context)) = (ProjectName::new(project), Context::new(context)) else {
            return Answer::status(400, "not a name");
        };
        let what = match control {
            Control::Pause => commands::Control::Pause,
            Control::Resume => commands::Control::Resume,
            Control::Abort => commands::Control::Abort,
        };
        let told = self.ask(block_on(self.api.control(&project, &context, stage, what)));
        self.deliver_all();
        either(told.map(|()| Answer::status(200, "")))
    }
    fn wait(&mut self, span: Span) {
        let end = self.world.now() + span;
        while self.next_timer(end) {}
        let now = self.world.now();
        self.world.pass(end - now);
    }
    fn outgoing(&mut self) -> Vec<Value> {
        let fresh: Vec<_> = self.world.core().bus.firsts().skip(self.read.len()).map(|p| p.entry.clone()).collect();
        self.read.extend(fresh.iter().map(|entry| serde_json::from_str(&entry.detail).unwrap_or_default()));
        self.read.clone()
    }
    fn sequence(&mut self, project: &str, context: &str) -> Option<Option<Value>> {
        let (Ok(project), Ok(context)) = (ProjectName::new(project), Context::new(context)) else { return Some(None) };
        match block_on(self.api.sequence_state(&project, &context)) {
            Ok(view) => Some(view),
            Err(e) => Some(Some(json!({"state": e.to_string()}))),
        }
    }
    fn open(&mut self, project: &str, types: &[String]) -> Option<Vec<Value>> {
        let filter = WorkFilter { project: ProjectName::new(project).ok(), ..WorkFilter::default() };
        let mut events = vec![];
        for ty in types {
            let EventType::Task(task, _) = EventType::parse(ty) else { continue };
            let page = block_on(self.api.open_triggers(&task, &filter, 100, None));
            events.extend(page.map(|page| page.events).unwrap_or_default());
        }
        Some(events)
    }
    fn lane(&mut self, project: &str, stage: &str, service: &str) -> Option<LaneView> {
        let core = self.world.core();
        let mut view = LaneView::default();
        for item in core.table.partition(&format!("K#{project}#{stage}#{service}")) {
            match item.key.sk.as_str() {
                "!" => view.holder = item.text("hc").map(str::to_owned),
                _ => view.queue.extend(item.text("c").map(str::to_owned)),
            }
        }
        Some(view)
    }
}
