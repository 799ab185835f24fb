//! How cases of webhooks are written and told.

use super::{Engine, Reply, Shared, engine};
use keelway_domain::event::SPEC_VERSION;
use keelway_domain::ids::{SubjectId, context_of};
use keelway_domain::time::{Span, Timestamp};
use keelway_domain::webhooks::{Delivery, End, SOURCE, Subscription};
use keelway_engine::keys::MAIN;
use keelway_engine::protocol::Loaded;
use keelway_engine::webhooks::{Address, Applied};
use keelway_wire::cloudevent::from_bus_envelope;
use keelway_world::Tested;
use keelway_world::case::{Answer, Dialect, Entrance, Stand, Step, Telling, Tells, matches, merge};
use keelway_world::exec::block_on;
use keelway_world::fork::Forked;
use keelway_world::queue::Parcel;
use keelway_world::story::{Mode, Story};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The namespace of all subscriptions of a case, which is their project.
const NAMESPACE: &str = "p";

/// The dialect of webhooks' cases.
#[derive(Debug, Clone, Default)]
pub struct Hooks;

/// A case of webhooks.
pub type Case = keelway_world::case::Case<Hooks>;

/// What is there before the first step.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Given {
    /// The subscriptions by name: what differs from one that takes every event of its project.
    webhooks: BTreeMap<String, Map<String, Value>>,
    /// What their receivers answer to the first attempt, the second, …
    receivers: BTreeMap<String, Vec<Reply>>,
}

/// The inputs.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Own {
    /// An event of this type, `data` with the project.
    emit: Option<String>,
    /// Its data besides.
    data: Map<String, Value>,
    /// A subscription is applied again, with these changes to the case's.
    apply: Option<String>,
    /// The changes.
    with: Map<String, Value>,
    /// A subscription is deleted.
    delete: Option<String>,
    /// A person resumes a subscription.
    resume: Option<String>,
    /// A person asks for the last delivery of a subscription again.
    redeliver: Option<String>,
    /// Receivers answer something else from now on.
    receivers: Option<BTreeMap<String, Vec<Reply>>>,
}

impl Dialect for Hooks {
    type Given = Given;
    type Step = Own;

    const FOLDER: &'static str = keelway_engine::webhooks::NAME;

    fn inputs(own: &Own) -> usize {
        let named = [&own.emit, &own.apply, &own.delete, &own.resume, &own.redeliver];
        named.iter().filter(|input| input.is_some()).count() + usize::from(own.receivers.is_some())
    }
    /// What it publishes itself comes back, too, for those who want to be told. It answers none of it: an end of a task triggers
    /// nothing.
    fn takes(source: &str, detail_type: &str) -> bool {
        source != SOURCE && Engine::takes(source, detail_type)
    }
    /// A function that stops between arming the first attempt and telling `.started` may tell `.finished` first: sequences wait for
    /// the other one then.
    fn stream(event: &Value) -> String {
        format!("{} {}", event["shkeptncontext"], event["type"])
    }
    fn sound(_: &Telling<'_, Self>, event: &Value) -> Result<(), String> {
        if event["source"] == SOURCE { Ok(()) } else { Err(format!("it is no event of webhooks: {event}")) }
    }
}

/// A story of webhooks.
pub struct HooksWorld {
    /// The story.
    pub story: Story<Engine>,
    shared: Shared,
}

impl HooksWorld {
    /// In an empty world.
    pub fn new(mode: Mode) -> Self {
        let shared = Shared::default();
        Self { story: Story::of(mode, shared.engines()), shared }
    }

    /// A subscription that takes every event of the project, and whose receiver fails once.
    ///
    /// # Errors
    /// What the engine says.
    pub fn subscribe(&mut self, webhook: &str) -> Result<(), String> {
        self.shared.answer(webhook, &[Reply::Status(500), Reply::Status(200)]);
        self.apply(webhook, subscription(&[])?)
    }

    /// All deliveries of a subscription, oldest first.
    pub fn deliveries(&self, webhook: &str) -> Vec<Delivery> {
        let core = self.story.world.core();
        let items = core.table.items().filter(|item| item.key.pk.starts_with("WD#") && item.key.sk == MAIN);
        let mut all: Vec<Delivery> = items.filter_map(|item| Some(Loaded::<Delivery>::read(item).ok()?.x)).collect();
        all.retain(|x| x.of.1 == webhook);
        all.sort_by_key(|x| (x.began, x.id));
        all
    }

    fn subscription(&self, webhook: &str) -> Option<Applied> {
        let engine = engine(self.story.world.worker(5), &self.shared);
        block_on(engine.subscription(&address(webhook))).ok().flatten()
    }

    fn now(&self) -> Timestamp {
        self.story.world.now()
    }
}

fn address(webhook: &str) -> Address {
    Address { namespace: NAMESPACE.into(), name: webhook.into() }
}

fn subscription(changes: &[&Map<String, Value>]) -> Result<Subscription, String> {
    let mut all = json!({"events": ["*"], "projects": [NAMESPACE], "url": "https://receiver.test", "attempts": 10});
    if let Some(all) = all.as_object_mut() {
        changes.iter().for_each(|changes| merge(all, changes));
    }
    serde_json::from_value(all).map_err(|error| format!("a subscription: {error}"))
}

impl Stand for HooksWorld {
    fn salt(&self) -> String {
        String::new()
    }
    fn ordered(&self) -> bool {
        self.story.ordered()
    }
    fn now(&self) -> Timestamp {
        HooksWorld::now(self)
    }
    fn step(&mut self) {
        self.story.step();
    }
    fn send(&mut self, event: &Value, _: Entrance) -> Answer {
        let envelope = json!({"source": event["source"], "detail-type": event["type"], "detail": event});
        match from_bus_envelope(&envelope, HooksWorld::now(self)) {
            Ok(event) => self.story.put_in(Parcel::Event(event)),
            Err(e) => self.story.put_in(Parcel::Invalid { reason: e.to_string(), text: envelope.to_string() }),
        }
    }
    fn wait(&mut self, span: Span) {
        self.story.wait(span);
    }
    fn outgoing(&mut self) -> Vec<Value> {
        self.story.outgoing()
    }
}

impl Forked for HooksWorld {
    type Engine = Engine;

    fn story(&mut self) -> &mut Story<Engine> {
        &mut self.story
    }
    fn into_story(self) -> Story<Engine> {
        self.story
    }
    fn fork(&self, mode: Mode) -> Self {
        let shared = self.shared.fork();
        Self { story: self.story.fork_of(mode, shared.engines()), shared }
    }
    fn goes_on_like(&self, other: &Self) -> bool {
        self.story.goes_on_like(&other.story) && self.shared.is_like(&other.shared)
    }
}

impl HooksWorld {
    fn apply(&mut self, webhook: &str, subscription: Subscription) -> Result<(), String> {
        let of = address(webhook);
        let apply = |engine: Arc<Engine>| -> keelway_world::exec::Task<_> {
            let (of, subscription) = (of.clone(), subscription.clone());
            Box::pin(async move { engine.apply(&of, &subscription, "").await.map(drop) })
        };
        self.story.request(apply).map_err(|error| error.to_string())
    }

    /// Asks the engine something about the subscription.
    fn person(&mut self, own: &Own) -> Result<(), String> {
        let last = |webhook: &str| self.deliveries(webhook).last().map_or(SubjectId(0), |x| x.id);
        let (delete, resume) = (own.delete.clone(), own.resume.clone());
        let redeliver = own.redeliver.as_deref().map(last);
        let ask = self.now().0.to_string();
        let act = move |engine: Arc<Engine>| -> keelway_world::exec::Task<_> {
            let (delete, resume, ask) = (delete.clone(), resume.clone(), ask.clone());
            Box::pin(async move {
                if let Some(webhook) = delete {
                    engine.remove(&address(&webhook)).await?;
                }
                if let Some(webhook) = resume {
                    engine.resume(&address(&webhook)).await?;
                }
                if let Some(id) = redeliver {
                    engine.redeliver(NAMESPACE, id, &ask).await?;
                }
                Ok(())
            })
        };
        self.story.request(act).map_err(|error| error.to_string())?;
        self.story.deliver_all();
        Ok(())
    }
}

impl Tells<HooksWorld> for Hooks {
    fn set_up(telling: &mut Telling<'_, Self>, stand: &mut HooksWorld) -> Result<(), String> {
        let given = &telling.case.given;
        for (webhook, changes) in &given.webhooks {
            let context = context_of("webhook", &address(webhook).to_string());
            telling.contexts.insert(webhook.clone(), context.to_string());
            stand.apply(webhook, subscription(&[changes])?)?;
        }
        given.receivers.iter().for_each(|(webhook, replies)| stand.shared.answer(webhook, replies));
        Ok(())
    }

    fn put_in(telling: &mut Telling<'_, Self>, step: &Step<Self>, stand: &mut HooksWorld) -> Result<Answer, String> {
        let own = &step.own;
        if let Some(receivers) = &own.receivers {
            receivers.iter().for_each(|(webhook, replies)| stand.shared.answer(webhook, replies));
            return Ok(Answer::unknown());
        }
        if let Some(webhook) = &own.apply {
            let before = telling.case.given.webhooks.get(webhook).cloned().unwrap_or_default();
            stand.apply(webhook, subscription(&[&before, &own.with])?)?;
            return Ok(Answer::unknown());
        }
        let Some(ty) = &own.emit else {
            stand.person(own)?;
            return Ok(Answer::unknown());
        };
        let mut data = Map::from_iter([("project".to_owned(), NAMESPACE.into())]);
        merge(&mut data, &own.data);
        let ty = if ty.starts_with("dev.keelway.") { ty.clone() } else { format!("sh.keptn.event.{ty}") };
        let event = json!({
            "specversion": "1.0", "datacontenttype": "application/json", "shkeptnspecversion": SPEC_VERSION,
            "id": telling.fresh_id(), "time": stand.now().rfc3339(), "shkeptncontext": telling.context(step.about()),
            "source": "somebody", "type": ty, "data": data,
        });
        Ok(telling.send(step, event, Entrance::Bus, stand))
    }

    /// Of a subscription: `status` and `tries` (the answers) of its last delivery, `next` (whole seconds until its next attempt),
    /// `count` (how many deliveries there are), `requests` (how many were made), `disabled` and `failing`.
    fn compare(_: &Telling<'_, Self>, step: &Step<Self>, stand: &mut HooksWorld) -> Result<(), String> {
        for (webhook, expected) in &step.state {
            let all = stand.deliveries(webhook);
            let last = all.last();
            let applied = stand.subscription(webhook);
            let tries = last.map(|x| x.attempts.iter().map(|attempt| attempt.status).collect::<Vec<_>>());
            let now = stand.now();
            let view = json!({
                "count": all.len(),
                "requests": stand.shared.got().iter().filter(|line| line.split(' ').next() == Some(webhook)).count(),
                "status": last.map(|x| x.end.map_or("waiting", End::as_str)),
                "tries": tries,
                "next": last.and_then(|x| x.due).map(|due| (due - now).0 / 1000),
                "applied": applied.is_some(),
                "disabled": applied.as_ref().and_then(|applied| applied.off.as_ref()).map(|off| off.reason.clone()),
                "failing": applied.as_ref().is_some_and(|applied| applied.failing.is_some()),
            });
            matches(&view, expected, webhook)?;
        }
        Ok(())
    }
}
