//! The world as a stand for the cases of webhooks: the engine, people, and receivers.

use super::{Engine, NAMESPACE, Own, Reply, Shared, address, engine, subscription};
use crate::case::{Answer, Entrance, Stand};
use crate::exec::{Task, block_on};
use crate::fork::Forked;
use crate::queue::Parcel;
use crate::story::{Mode, Story};
use keelway_domain::ids::SubjectId;
use keelway_domain::time::{Span, Timestamp};
use keelway_domain::webhooks::{Delivery, Subscription};
use keelway_engine::keys::MAIN;
use keelway_engine::protocol::Loaded;
use keelway_engine::webhooks::Applied;
use keelway_wire::cloudevent::from_bus_envelope;
use serde_json::{Value, json};
use std::sync::Arc;

/// A story of webhooks.
pub struct HooksWorld {
    /// The story.
    pub story: Story<Engine>,
    pub(super) shared: Shared,
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

    pub(super) fn subscription(&self, webhook: &str) -> Option<Applied> {
        let engine = engine(self.story.world.worker(5), &self.shared);
        block_on(engine.subscription(&address(webhook))).ok().flatten()
    }

    fn now(&self) -> Timestamp {
        self.story.world.now()
    }
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
    pub(super) fn apply(&mut self, webhook: &str, subscription: Subscription) -> Result<(), String> {
        let of = address(webhook);
        let apply = |engine: Arc<Engine>| -> Task<_> {
            let (of, subscription) = (of.clone(), subscription.clone());
            Box::pin(async move { engine.apply(&of, &subscription, "").await.map(drop) })
        };
        self.story.request(apply).map_err(|error| error.to_string())
    }

    /// Asks the engine something about the subscription.
    pub(super) fn person(&mut self, own: &Own) -> Result<(), String> {
        let last = |webhook: &str| self.deliveries(webhook).last().map_or(SubjectId(0), |x| x.id);
        let (delete, resume) = (own.delete.clone(), own.resume.clone());
        let redeliver = own.redeliver.as_deref().map(last);
        let ask = self.now().0.to_string();
        let act = move |engine: Arc<Engine>| -> Task<_> {
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
