//! The world as a stand for the cases of promotions: both halves of the engine, an API beside them, and a host to play with.

use super::host::Shared;
use super::judge::{self, Verdicts};
use super::{Both, Plant, Real, Servers, both_with};
use keelway_domain::note::Note;
use keelway_domain::promotions::report::{self, Observation};
use keelway_domain::promotions::{Command, Decision, Facts, Input, NEEDED, Past, Phase, Pipeline, Refused, decide};
use keelway_domain::stored::Stored;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::item::Item;
use keelway_engine::ports::{Condition, Store, Write};
use keelway_engine::promotions::observations::{Fact, Kept};
use keelway_engine::promotions::{Address, Message, NAME, keys};
use keelway_engine::protocol::declare::Outcome;
use keelway_engine::protocol::{Handled, Inbox, Loaded};
use keelway_wire::cloudevent::from_bus_envelope;
use keelway_wire::manifest::{self, Document};
use keelway_world::case::{Answer, Entrance, Stand};
use keelway_world::exec::block_on;
use keelway_world::fork::Forked;
use keelway_world::promotions::host::{End, GitHost};
use keelway_world::promotions::{PromotionsStand, view};
use keelway_world::queue::Parcel;
use keelway_world::rng::Rng;
use keelway_world::story::{BEGINNING, Mode, Story};
use keelway_world::worker::Worker;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The world's worker that plays the API.
const API: usize = 0;
/// So long at most does anything take to mend itself: the lease, the pause, and the sweep.
const MENDED: Span = Span::minutes(60);

/// What is done besides to every case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rider {
    /// Nothing.
    None,
    /// After each step, every pipeline is evaluated again.
    Evaluated,
    /// Everything that a step sends is delivered in an order that this number draws, together with facts that are no longer new.
    Shuffled(u64),
    /// Something goes wrong on purpose: after each step there is time to mend it, and single steps are not compared.
    Disturbed,
}

/// A story of promotions.
pub struct PromotionsWorld<H = Shared> {
    /// The story.
    pub story: Story<Both>,
    /// The host.
    pub host: H,
    /// What evaluations come to.
    verdicts: Verdicts,
    /// What the API works with.
    pub api: Both,
    rider: Rider,
    plant: Option<Plant>,
    pipelines: BTreeSet<Address>,
    evaluations: u32,
    copy: Option<Item>,
    sent: Vec<Value>,
    rng: Rng,
    /// Until when a disturbed step waits, and until when at most what went wrong is mended.
    waits: Option<Timestamp>,
    mends: Option<Timestamp>,
}

impl PromotionsWorld {
    /// In an empty world.
    pub fn new(mode: Mode, rider: Rider, plant: Option<Plant>) -> Self {
        let (host, verdicts) = (Shared::default(), Verdicts::default());
        let engines = host.engines(&verdicts, plant);
        Self { plant, ..Self::with((host, verdicts), (BEGINNING, mode, rider), engines) }
    }
}

impl Forked for PromotionsWorld {
    type Engine = Both;

    fn story(&mut self) -> &mut Story<Both> {
        &mut self.story
    }
    fn into_story(self) -> Story<Both> {
        self.story
    }
    fn fork(&self, mode: Mode) -> Self {
        let (host, verdicts) = (self.host.fork(), self.verdicts.fork());
        let engines = host.engines(&verdicts, self.plant);
        let story = self.story.fork_of(mode, handler(engines.clone()));
        Self {
            api: engines(&story.world.worker(API)),
            story,
            host,
            verdicts,
            rider: self.rider,
            plant: self.plant,
            pipelines: self.pipelines.clone(),
            evaluations: self.evaluations,
            copy: self.copy.clone(),
            sent: self.sent.clone(),
            rng: self.rng.clone(),
            waits: self.waits,
            mends: self.mends,
        }
    }
    fn goes_on_like(&self, other: &Self) -> bool {
        self.story.goes_on_like(&other.story)
            && self.host.is_like(&other.host)
            && self.verdicts.is_like(&other.verdicts)
            && (self.rider, self.evaluations) == (other.rider, other.evaluations)
            && (self.waits, self.mends) == (other.waits, other.mends)
            && (&self.pipelines, &self.copy, &self.sent) == (&other.pipelines, &other.copy, &other.sent)
            // Nothing is drawn.
            && !matches!(self.rider, Rider::Shuffled(_))
    }
}

/// How the handler's engine is made.
fn handler(make: impl Fn(&Worker) -> Both) -> impl Fn(Worker) -> Both {
    move |worker| {
        let both = make(&worker);
        Inbox::ports(&both).begin(None);
        both
    }
}

impl<H: GitHost> PromotionsWorld<H> {
    /// With a real host, which clients of this make reach from a worker. The world begins at this time.
    pub fn real(host: H, beginning: Timestamp, clients: impl Fn(&Worker) -> Arc<dyn Real> + Clone + Send + Sync + 'static) -> Self {
        let verdicts = Verdicts::default();
        let told = verdicts.clone();
        let make = move |worker: &Worker| both_with(worker, Servers::Real(clients(worker)), (&told, None));
        Self::with((host, verdicts), (beginning, Mode::Clean, Rider::None), make)
    }

    fn with(
        (host, verdicts): (H, Verdicts),
        (beginning, mode, rider): (Timestamp, Mode, Rider),
        make: impl Fn(&Worker) -> Both + Clone + Send + Sync + 'static,
    ) -> Self {
        let mut story = Story::at(beginning, mode, handler(make.clone()));
        let mut rng = Rng::new(0);
        if let Rider::Shuffled(seed) = rider {
            (story.order, rng) = (Some(Rng::new(seed)), Rng::new(!seed));
        }
        let api = make(&story.world.worker(API));
        let (pipelines, sent) = (BTreeSet::new(), vec![]);
        let (waits, mends) = (None, None);
        Self { story, host, verdicts, api, rider, plant: None, pipelines, evaluations: 0, copy: None, sent, rng, waits, mends }
    }

    fn state(&self, to: &Address) -> Option<Pipeline> {
        let core = self.story.world.core();
        Some(Loaded::<Pipeline>::read(core.table.peek(&keys::pipeline(to))?).ok()?.x)
    }

    /// All pipelines of the case, and the history of each environment as it is kept now: of two environments, either may have ended
    /// first.
    pub fn views(&self) -> Vec<Value> {
        let history = |to| {
            let mut history = self.history(to);
            history.sort_by(|a, b| a.environment.cmp(&b.environment));
            history
        };
        self.pipelines.iter().filter_map(|to| Some(view(&self.state(to)?, &history(to)))).collect()
    }

    fn history(&self, to: &Address) -> Vec<Past> {
        let core = self.story.world.core();
        let now = core.now.0 / 1000;
        let partition = keys::pipeline_partition(to);
        let items = core.table.partition(&partition);
        let kept = items.filter(|item| item.key.sk.starts_with(keys::HISTORY) && item.number("ttl").is_none_or(|ttl| ttl > now));
        kept.filter_map(|item| Past::from_json(item.text("j")?).ok()).collect()
    }

    /// What a command would be refused for, if it would.
    fn refusal(&self, to: &Address, command: &Command, note: &Note) -> Option<String> {
        let definition = block_on(self.api.decides.definition(to)).ok()?.map(|applied| applied.spec);
        let Some(definition) = definition else { return Some(format!("pipeline {:?} does not exist", to.name)) };
        let observations = block_on(self.api.decides.observations(to, &definition)).ok()?;
        let now = self.story.world.now();
        let facts = Facts { now, cause: Default::default(), definition: Some(&definition), observations: &observations };
        let x = self.state(to).unwrap_or_else(|| Pipeline::new(&to.namespace, &to.name, now));
        match decide(&x, Input::Command(command, note), &facts) {
            Decision::Refused(Refused::Unknown(reason) | Refused::Conflict(reason)) => Some(reason),
            _ => None,
        }
    }

    fn evaluate_all(&mut self) {
        for to in self.pipelines.clone() {
            self.evaluate(&to.namespace, &to.name, 1);
        }
    }

    /// Whether an attempt was interrupted and nobody has taken it up again, or something is still being closed.
    fn is_mending(&self) -> bool {
        let mending = |x: Pipeline| {
            x.environments.values().any(|state| {
                let lost = state.promotion.as_ref().is_some_and(|promotion| {
                    promotion.phase == Phase::Attempting
                        || promotion.contested && promotion.is_watched()
                        || promotion.phase == Phase::Failed && promotion.due.is_some() && promotion.why.reason != "NoMarkerFound"
                });
                lost || !state.closing.is_empty()
            })
        };
        self.pipelines.iter().filter_map(|to| self.state(to)).any(mending)
    }

    /// What comes due next, until all that was interrupted is done; `false`: it is, or takes too long.
    pub fn mends(&mut self) -> bool {
        let end = *self.mends.get_or_insert(self.story.world.now() + MENDED);
        let mending = self.is_mending() && self.story.next_timer(end);
        if !mending {
            self.mends = None;
        }
        mending
    }

    fn end_step(&mut self) {
        match self.rider {
            Rider::Evaluated => self.evaluate_all(),
            Rider::Shuffled(_) => self.story.deliver_all(),
            Rider::None | Rider::Disturbed => {}
        }
    }

    fn observed(&mut self, event: &Value) -> Answer {
        let all = report::read(&event["data"]["facts"], None, self.now()).unwrap_or_default();
        let facts =
            all.into_iter().map(|Observation { app, target, version, observed, .. }| Fact { app, target, version, observed });
        let newer = |fact| matches!(block_on(self.api.decides.observe(&fact)), Ok(Kept::Same | Kept::Revision));
        let fresh: Vec<bool> = facts.map(newer).collect();
        self.story.deliver_all();
        Answer::handled(if fresh.contains(&true) { Handled::Recorded } else { Handled::Stale })
    }
}

impl<H: GitHost> Stand for PromotionsWorld<H> {
    fn salt(&self) -> String {
        String::new()
    }
    fn ordered(&self) -> bool {
        self.story.ordered() && !matches!(self.rider, Rider::Shuffled(_))
    }
    fn now(&self) -> Timestamp {
        self.story.world.now()
    }
    fn is_disturbed(&self) -> bool {
        self.rider == Rider::Disturbed
    }
    fn step(&mut self) {
        self.end_step();
        self.story.step();
    }
    fn send(&mut self, event: &Value, at: Entrance) -> Answer {
        if at == Entrance::Api {
            return self.observed(event);
        }
        let envelope = json!({"source": event["source"], "detail-type": event["type"], "detail": event});
        let parcel = match from_bus_envelope(&envelope, self.story.world.now()) {
            Ok(event) => Parcel::Event(event),
            Err(e) => Parcel::Invalid { reason: e.to_string(), text: envelope.to_string() },
        };
        if matches!(self.rider, Rider::Shuffled(_)) && !self.pipelines.is_empty() {
            self.story.world.enqueue(NAME, parcel);
            // A fact that is no longer new.
            if let Some(old) = (!self.sent.is_empty()).then(|| self.rng.pick(&self.sent).clone())
                && let Ok(old) = from_bus_envelope(&old, self.story.world.now())
            {
                self.story.world.enqueue(NAME, Parcel::Event(old));
            }
            self.sent.push(envelope);
            return Answer::unknown();
        }
        self.story.put_in(parcel)
    }
    fn wait(&mut self, span: Span) {
        match self.rider {
            Rider::Disturbed => self.waits = Some(self.story.world.now() + span),
            _ => self.story.wait(span),
        }
    }
    /// What comes due while a step waits, and then what mends.
    fn passes_time(&mut self) -> bool {
        if self.rider != Rider::Disturbed {
            return false;
        }
        if let Some(end) = self.waits {
            if self.story.outage || !self.story.next_timer(end) {
                self.waits = None;
                self.story.wait(end - self.story.world.now());
            }
            return true;
        }
        self.mends()
    }
    fn outgoing(&mut self) -> Vec<Value> {
        self.end_step();
        let mut events = self.story.outgoing();
        events.retain(|event| event["type"] != NEEDED);
        events
    }
}

impl<H: GitHost> PromotionsStand for PromotionsWorld<H> {
    type Host = H;

    fn host(&mut self) -> &mut H {
        &mut self.host
    }
    fn apply(&mut self, text: &str) -> Answer {
        let parsed = manifest::parse(text, "pipeline.yaml");
        if parsed.refused() {
            let findings: Vec<String> = parsed.findings.iter().map(ToString::to_string).collect();
            return Answer::status(400, findings.join("\n"));
        }
        for document in &parsed.documents {
            let Document::Pipeline(pipeline) = document else { continue };
            let to = Address { namespace: pipeline.namespace.to_string(), name: pipeline.name.clone() };
            self.pipelines.insert(to.clone());
            match block_on(self.api.decides.apply(&to, &pipeline.definition, &pipeline.source)) {
                Ok(Outcome::Changed(_) | Outcome::Unchanged(_)) => self.story.deliver_all(),
                Ok(_) => return Answer::status(413, "too large"),
                Err(e) => return Answer::status(503, e.to_string()),
            }
        }
        let findings: Vec<String> = parsed.findings.iter().map(ToString::to_string).collect();
        Answer::status(200, findings.join("\n"))
    }
    fn delete(&mut self, namespace: &str, name: &str) -> Answer {
        let to = Address { namespace: namespace.to_owned(), name: name.to_owned() };
        let deleted = block_on(self.api.decides.delete(&to));
        self.story.deliver_all();
        match deleted {
            Ok(true) => Answer::status(200, ""),
            Ok(false) => Answer::status(404, "there is none"),
            Err(e) => Answer::status(503, e.to_string()),
        }
    }
    fn ask(&mut self, namespace: &str, name: &str, command: &Command, note: &Note) -> Answer {
        let to = Address { namespace: namespace.to_owned(), name: name.to_owned() };
        let refusal = self.refusal(&to, command, note);
        let message = Message::Command { to, command: command.clone(), note: note.clone() };
        let answer = self.story.put_in(Parcel::Own(message.letter().body));
        match refusal {
            Some(reason) => Answer { problem: reason, ..Answer::handled(Handled::Invalid) },
            None => answer,
        }
    }
    fn evaluate(&mut self, namespace: &str, name: &str, times: u32) {
        let to = Address { namespace: namespace.to_owned(), name: name.to_owned() };
        for _ in 0..times {
            self.evaluations += 1;
            let because = format!("the case {}", self.evaluations);
            let message = Message::Evaluate { to: to.clone(), because };
            self.story.world.enqueue(NAME, Parcel::Own(message.letter().body));
        }
        self.story.deliver_all();
    }
    fn replay(&mut self) -> bool {
        self.story.replay();
        true
    }
    fn backup(&mut self, namespace: &str, name: &str) -> bool {
        let to = Address { namespace: namespace.to_owned(), name: name.to_owned() };
        self.copy = self.story.world.core().table.peek(&keys::pipeline(&to)).map(|item| (**item).clone());
        true
    }
    fn restore(&mut self, namespace: &str, name: &str) {
        if let Some(item) = self.copy.take() {
            drop(block_on(self.story.world.worker(API).write(&Write::Put(item, Condition::Always))));
            self.evaluate(namespace, name, 1);
        }
    }
    fn finish(&mut self, of: (&str, &str), environment: &str, end: End, heard: bool) -> Result<(), String> {
        let event = self.host.finish(of, environment, end)?;
        if heard {
            self.send(&event, Entrance::Bus);
        }
        Ok(())
    }
    fn judge(&mut self, environment: &str, verdict: &str) -> Result<(), String> {
        judge::answer(verdict)?;
        self.verdicts.lock().verdicts.insert(environment.to_owned(), verdict.to_owned());
        Ok(())
    }
    fn webhook(&mut self, repository: &str) {
        drop(block_on(self.api.decides.look_at(repository)));
        self.story.deliver_all();
    }
    fn pipeline(&mut self, namespace: &str, name: &str) -> Option<Option<Value>> {
        let to = Address { namespace: namespace.to_owned(), name: name.to_owned() };
        Some(self.state(&to).map(|x| view(&x, &self.history(&to))))
    }
}
