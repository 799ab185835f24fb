//! The world as a stand for the cases of deployments: the engine, an API beside it, and whoever starts deployers.

use super::{Both, HERE, Plant, Starter, both};
use keelway_domain::deployments::definition::Definition;
use keelway_domain::deployments::registry::{ArtifactSource, Repository};
use keelway_domain::deployments::{Call, Command, Config, Past, Refused, Reply, Request, Snapshot};
use keelway_domain::note::Note;
use keelway_domain::stored::Stored;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::deployments::configs::Wanted;
use keelway_engine::deployments::images::Push;
use keelway_engine::deployments::{Address, Message, NAME, keys};
use keelway_engine::item::Item;
use keelway_engine::ports::PortError;
use keelway_engine::protocol::declare::Outcome;
use keelway_engine::protocol::sweep::{self, Tick};
use keelway_engine::protocol::{Handled, Inbox, Loaded};
use keelway_engine::registry::{Registry, Tagged};
use keelway_wire::aws::events::notice;
use keelway_wire::cloudevent::from_bus_envelope;
use keelway_world::case::{Answer, Entrance, Stand};
use keelway_world::deployments::{DeploymentsStand, Happened, REPOSITORY, SOURCE, view};
use keelway_world::exec::block_on;
use keelway_world::fork::Forked;
use keelway_world::queue::Parcel;
use keelway_world::rng::Rng;
use keelway_world::story::{Mode, Story};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The world's worker that plays the API.
const API: usize = 0;

/// What is done besides to every case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rider {
    /// Nothing.
    None,
    /// After each step, every config is evaluated again.
    Evaluated,
    /// Everything that a step sends is delivered in an order that this number draws, together with pushes that are no longer new.
    Shuffled(u64),
}

/// A story of deployments.
pub struct DeploymentsWorld {
    /// The story.
    pub story: Story<Both>,
    /// Who starts deployers.
    pub starter: Starter,
    api: Both,
    rider: Rider,
    plant: Option<Plant>,
    configs: BTreeSet<Address>,
    events: u64,
    evaluations: u32,
    pushes: Vec<Parcel>,
    rng: Rng,
}

/// A registry with these tags.
#[derive(Clone)]
struct Answers(Vec<Tagged>);

impl Registry for Answers {
    async fn tags(&self, of: &Repository) -> Result<Option<Vec<Tagged>>, PortError> {
        Ok((of.name == REPOSITORY).then(|| self.0.clone()))
    }
}

fn to(namespace: &str, name: &str) -> Address {
    Address { namespace: namespace.to_owned(), name: name.to_owned() }
}

fn reason(refused: &Refused) -> String {
    let (Refused::Unknown(reason) | Refused::Conflict(reason) | Refused::Nothing(reason)) = refused;
    reason.clone()
}

fn failed(error: &PortError) -> Answer {
    Answer::status(503, error.to_string())
}

impl DeploymentsWorld {
    /// In an empty world.
    pub fn new(mode: Mode, rider: Rider, plant: Option<Plant>) -> Self {
        let starter = Starter::default();
        let mut story = Story::of(mode, starter.engines(plant));
        let mut rng = Rng::new(0);
        if let Rider::Shuffled(seed) = rider {
            (story.order, rng) = (Some(Rng::new(seed)), Rng::new(!seed));
        }
        let api = both(&story.world.worker(API), &starter, plant);
        let (configs, pushes) = (BTreeSet::new(), vec![]);
        Self { story, starter, api, rider, plant, configs, events: 0, evaluations: 0, pushes, rng }
    }

    /// A config as it is kept: without its history, so it takes the same time however long that is.
    pub fn state(&self, namespace: &str, name: &str) -> Option<Config> {
        let core = self.story.world.core();
        Some(Loaded::<Config>::read(core.table.peek(&keys::config(&to(namespace, name)))?).ok()?.x)
    }

    /// All configs of the case, as they are shown.
    pub fn views(&self) -> Vec<Value> {
        self.configs.iter().filter_map(|of| self.shown(of)).collect()
    }

    fn shown(&self, of: &Address) -> Option<Value> {
        let x = self.state(&of.namespace, &of.name)?;
        let core = self.story.world.core();
        let partition = keys::partition(of);
        let past = core.table.partition(&partition).filter(|item| item.key.sk.starts_with(keys::PAST));
        let past: Vec<Past> = past.filter_map(|item| Past::from_json(item.text("j")?).ok()).collect();
        let snapshot = x.last.as_ref().and_then(|last| core.table.peek(&keys::snapshot(of, last.n, last.snapshot)));
        let snapshot = snapshot.and_then(|item| Snapshot::from_json(item.text("j")?).ok());
        Some(view(&x, &past, snapshot.as_ref()))
    }

    /// What a command would be refused for, if it would.
    fn refusal(&self, of: &Address, command: &Command, note: &Note) -> Option<String> {
        let Some(view) = block_on(self.api.decides.view(of)).ok()? else {
            return Some(format!("there is no deployment config {}", of.name));
        };
        block_on(self.api.decides.forecast(of, &view, command, note)).ok()?.err().as_ref().map(reason)
    }

    fn finish(&mut self) {
        match self.rider {
            Rider::Evaluated => {
                for of in self.configs.clone() {
                    self.evaluate(&of.namespace, &of.name, 1);
                }
            }
            Rider::Shuffled(_) => self.story.deliver_all(),
            Rider::None => {}
        }
    }

    /// A client's request, and everything that comes of it at once.
    fn request<R, F>(&mut self, make: impl Fn(Arc<Both>) -> F) -> Result<R, PortError>
    where
        F: Future<Output = Result<R, PortError>> + Send + 'static,
    {
        let answer = self.story.request(|both| {
            Inbox::ports(&*both).begin(None);
            Box::pin(make(both))
        });
        if !matches!(self.rider, Rider::Shuffled(_)) {
            self.story.deliver_all();
        }
        answer
    }

    /// An event of a service of AWS, as the bus puts it on the queue.
    pub fn event(&mut self, source: &str, ty: &str, detail: &Value, at: Timestamp) -> Parcel {
        self.events += 1;
        let envelope = json!({
            "id": format!("event-{}", self.events), "source": source, "detail-type": ty, "time": at.rfc3339(), "detail": detail,
            "account": HERE.0, "region": HERE.1,
        });
        told(&envelope, at)
    }

    fn pushed(&mut self, event: Parcel) -> Answer {
        if !matches!(self.rider, Rider::Shuffled(_)) || self.configs.is_empty() {
            return self.story.put_in(event);
        }
        self.story.world.enqueue(NAME, event.clone());
        if !self.pushes.is_empty() {
            let old = self.rng.pick(&self.pushes).clone();
            self.story.world.enqueue(NAME, old);
        }
        self.pushes.push(event);
        Answer::unknown()
    }

    fn may_say(&self) -> bool {
        self.story.is_clean()
    }
}

/// What a service of AWS tells, as the function reads it.
fn told(envelope: &Value, now: Timestamp) -> Parcel {
    match notice(envelope, now) {
        Some(Ok(notice)) => Parcel::Own(Message::Notice { notice }.letter().body),
        Some(Err(error)) => Parcel::Invalid { reason: error.to_string(), text: envelope.to_string() },
        None => Parcel::Invalid { reason: "no service of AWS told it".into(), text: envelope.to_string() },
    }
}

impl Stand for DeploymentsWorld {
    fn salt(&self) -> String {
        String::new()
    }
    fn ordered(&self) -> bool {
        self.story.ordered() && !matches!(self.rider, Rider::Shuffled(_))
    }
    fn now(&self) -> Timestamp {
        self.story.world.now()
    }
    fn step(&mut self) {
        self.finish();
        self.story.step();
    }
    fn send(&mut self, event: &Value, _: Entrance) -> Answer {
        let envelope = json!({"source": event["source"], "detail-type": event["type"], "detail": event});
        let parcel = match from_bus_envelope(&envelope, self.story.world.now()) {
            Ok(event) => Parcel::Event(event),
            Err(e) => Parcel::Invalid { reason: e.to_string(), text: envelope.to_string() },
        };
        self.story.put_in(parcel)
    }
    fn wait(&mut self, span: Span) {
        self.story.wait(span);
    }
    fn outgoing(&mut self) -> Vec<Value> {
        self.finish();
        self.story.outgoing()
    }
}

impl Forked for DeploymentsWorld {
    type Engine = Both;

    fn story(&mut self) -> &mut Story<Both> {
        &mut self.story
    }
    fn into_story(self) -> Story<Both> {
        self.story
    }
    fn fork(&self, mode: Mode) -> Self {
        let starter = self.starter.fork();
        let story = self.story.fork_of(mode, starter.engines(self.plant));
        Self {
            api: both(&story.world.worker(API), &starter, self.plant),
            story,
            starter,
            rider: self.rider,
            plant: self.plant,
            configs: self.configs.clone(),
            events: self.events,
            evaluations: self.evaluations,
            pushes: self.pushes.clone(),
            rng: self.rng.clone(),
        }
    }
    fn goes_on_like(&self, other: &Self) -> bool {
        self.story.goes_on_like(&other.story)
            && self.starter.is_like(&other.starter)
            && (self.rider, self.events, self.evaluations) == (other.rider, other.events, other.evaluations)
            && (&self.configs, &self.pushes) == (&other.configs, &other.pushes)
            // Nothing is drawn.
            && !matches!(self.rider, Rider::Shuffled(_))
    }
}

impl DeploymentsStand for DeploymentsWorld {
    fn bind(&mut self, namespace: &str, name: &str, source: &ArtifactSource) {
        drop(block_on(self.api.decides.apply_source(&to(namespace, name), source, "")));
    }
    fn apply(&mut self, namespace: &str, name: &str, definition: &Definition, asks: Option<u64>) -> Answer {
        let of = to(namespace, name);
        self.configs.insert(of.clone());
        let definition = definition.clone();
        let done = self.request(move |both| {
            let (of, definition) = (of.clone(), definition.clone());
            async move {
                let source = definition.template.to_string();
                let request = asks.map(|version| Request { version, causes: vec![] });
                let wanted = Wanted { definition: &definition, source: &source, by: "ann", request, over: None };
                both.decides.apply(&of, &wanted).await
            }
        });
        match done {
            Ok(Outcome::Changed(_) | Outcome::Unchanged(_)) => Answer::status(200, ""),
            Ok(Outcome::Conflict(_)) => Answer::status(409, "another version is in force"),
            Ok(Outcome::TooLarge | Outcome::TooMany) => Answer::status(413, "too large"),
            Err(e) => failed(&e),
        }
    }
    fn delete(&mut self, namespace: &str, name: &str) -> Answer {
        let of = to(namespace, name);
        let done = self.request(move |both| {
            let of = of.clone();
            async move { both.decides.delete(&of).await }
        });
        match done {
            Ok(true) => Answer::status(200, ""),
            Ok(false) if self.may_say() => Answer::status(404, "there is none"),
            Ok(false) => Answer::unknown(),
            Err(e) => failed(&e),
        }
    }
    fn image(&mut self, namespace: &str, what: &Happened, at: Entrance) -> Answer {
        let digest = format!("sha256:{}", what.digest);
        let image = format!("{}.dkr.ecr.{}.amazonaws.com/{REPOSITORY}@{digest}", HERE.0, HERE.1);
        if let (Entrance::Api, Some(tag)) = (at, &what.tag) {
            let (namespace, push) = (namespace.to_owned(), Push { tag: tag.clone(), image, at: what.at, by: String::new() });
            let done = self.request(move |both| {
                let (namespace, push) = (namespace.clone(), push.clone());
                async move { both.decides.pushed(&namespace, SOURCE, &push).await }
            });
            return match done {
                Ok(true) => Answer::status(200, ""),
                Ok(false) => Answer::status(404, "there is no such source"),
                Err(e) => failed(&e),
            };
        }
        let action = if what.tag.is_some() { "PUSH" } else { "DELETE" };
        let mut data = json!({"action-type": action, "result": "SUCCESS", "repository-name": REPOSITORY, "image-digest": digest});
        if let Some(tag) = &what.tag {
            data["image-tag"] = tag.as_str().into();
        }
        let event = self.event("aws.ecr", "ECR Image Action", &data, what.at);
        self.pushed(event)
    }
    fn registry(&mut self, tags: &[Tagged]) -> Answer {
        let answers = Answers(tags.to_vec());
        let asked = self.request(move |both| {
            let answers = answers.clone();
            async move {
                both.decides.ask_registries(&answers, || true).await?;
                // As the sweep does.
                let mut tick = Tick::default();
                while !sweep::page(&both.decides, &mut tick).await?.finished {}
                Ok(())
            }
        });
        asked.map_or_else(|e| failed(&e), |_| Answer::status(200, ""))
    }
    fn ask(&mut self, namespace: &str, name: &str, command: &Command, note: &Note) -> Answer {
        let of = to(namespace, name);
        // As the API does: what would be refused is not handed in.
        if let Some(reason) = self.refusal(&of, command, note) {
            return Answer { problem: reason, ..Answer::handled(Handled::Invalid) };
        }
        let message = Message::Command { to: of, command: command.clone(), note: note.clone() };
        self.story.put_in(Parcel::Own(message.letter().body))
    }
    fn say(&mut self, namespace: &str, name: &str, n: u64, call: &Call) -> (Answer, Option<String>) {
        let (of, call) = (to(namespace, name), call.clone());
        let told = self.request(move |both| {
            let (of, call) = (of.clone(), call.clone());
            async move { both.carries.say(&of, n, &call).await }
        });
        let word = |desired| serde_json::to_value(desired).ok().and_then(|word| word.as_str().map(str::to_owned));
        match told.map(|told| told.reply) {
            _ if !self.may_say() => (Answer::unknown(), None),
            Ok(Reply::Desired(desired)) => (Answer::status(200, ""), word(desired)),
            Ok(Reply::Refused(refused @ Refused::Unknown(_))) => (Answer::status(404, reason(&refused)), None),
            Ok(Reply::Refused(refused)) => (Answer::status(409, reason(&refused)), None),
            Err(e) => (failed(&e), None),
        }
    }
    fn alarm(&mut self, alarm: &str, on: bool) {
        let state = if on { "ALARM" } else { "OK" };
        let data = json!({"alarmName": alarm, "state": {"value": state}});
        let event = self.event("aws.cloudwatch", "CloudWatch Alarm State Change", &data, self.story.world.now());
        self.story.put_in(event);
    }
    fn evaluate(&mut self, namespace: &str, name: &str, times: u32) {
        for _ in 0..times {
            self.evaluations += 1;
            let message = Message::Evaluate { to: to(namespace, name), because: format!("the case {}", self.evaluations) };
            self.story.world.enqueue(NAME, Parcel::Own(message.letter().body));
        }
        self.story.deliver_all();
    }
    fn keep(&mut self, item: Item) {
        let done = self.story.world.core().table.put_batch(&[item], &[], false);
        drop(done.expect("the twin takes it"));
    }
    fn replay(&mut self) -> bool {
        self.story.replay();
        true
    }
    fn config(&mut self, namespace: &str, name: &str) -> Option<Option<Value>> {
        Some(self.shown(&to(namespace, name)))
    }
    fn started(&mut self) -> Option<Vec<String>> {
        Some(self.starter.started().clone())
    }
}
