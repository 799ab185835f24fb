//! A world with one worker of webhooks that keeps what it knows, people, and receivers, for direct tests.

use keelway_domain::event::CloudEvent;
use keelway_domain::names::Context;
use keelway_domain::stored::Stored;
use keelway_domain::webhooks::{Delivery, Subscription, id};
use keelway_engine::protocol::Loaded;
use keelway_engine::webhooks::{Address, Applied, NAME, keys};
use keelway_world::World;
use keelway_world::exec::block_on;
use keelway_world::queue::{Parcel, Received};
use keelway_world::story::{BEGINNING, play};
use keelway_world::webhooks::{Engine, Shared, engine};
use serde_json::json;

pub const TYPE: &str = "sh.keptn.event.dev.delivery.finished";

/// A world with a worker that keeps what it knows, and people.
pub struct Stand {
    pub world: World,
    pub warm: Engine,
    pub people: Engine,
    pub receivers: Shared,
}

pub fn address() -> Address {
    Address { namespace: "p".into(), name: "hook".into() }
}

/// A subscription to events of this type.
pub fn subscription(ty: &str) -> Subscription {
    Subscription::from_value(&json!({"events": [ty], "projects": ["p"], "url": "https://receiver.test", "attempts": 10})).unwrap()
}

impl Stand {
    pub fn new() -> Self {
        let (world, receivers) = (World::new(BEGINNING), Shared::default());
        let (warm, people) = (engine(world.worker(1), &receivers), engine(world.worker(2), &receivers));
        Self { world, warm, people, receivers }
    }

    pub fn apply(&self, ty: &str) {
        block_on(self.people.apply(&address(), &subscription(ty), "")).unwrap();
    }

    pub fn subscription(&self) -> Applied {
        block_on(self.people.subscription(&address())).unwrap().unwrap()
    }

    /// The next message that is due, with its id.
    pub fn receive(&self) -> Option<(u64, Received)> {
        let mut core = self.world.core();
        let now = core.now;
        let id = core.queue.receivable(now).first().copied()?;
        Some((id, core.queue.receive(id)?))
    }

    /// Handles what is due, and returns it.
    pub fn rest(&self) -> Vec<Received> {
        let mut all = vec![];
        while let Some((id, received)) = self.receive() {
            block_on(play(&self.warm, &received)).unwrap();
            self.world.core().queue.acknowledge(id);
            all.push(received);
        }
        all
    }

    /// The worker handles an event and what comes of it.
    pub fn event(&self, id: &str) -> Vec<Received> {
        self.emit(self.said(id))
    }

    /// The worker handles this event and what comes of it.
    pub fn emit(&self, event: CloudEvent) -> Vec<Received> {
        self.world.enqueue(NAME, Parcel::Event(event));
        self.rest()
    }

    /// An event of now.
    pub fn said(&self, id: &str) -> CloudEvent {
        CloudEvent {
            id: id.into(),
            source: "somebody".into(),
            ty: TYPE.into(),
            time: self.world.now(),
            context: Context::of("C1"),
            authors: vec![],
            triggered_id: None,
            git_commit_id: None,
            data: json!({"project": "p"}).as_object().cloned().unwrap(),
        }
    }

    /// The delivery of an event to the subscription.
    pub fn delivery(&self, event: &str) -> Option<Delivery> {
        let id = id(("p", "hook"), "somebody", event, None);
        let item = self.world.core().table.peek(&keys::delivery(id)).cloned();
        item.map(|item| Loaded::read(&item).unwrap().x)
    }

    /// The requests that receivers got, by the names of their subscriptions.
    pub fn requests(&self) -> Vec<String> {
        self.receivers.got().iter().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
    }

    /// What has expired by now is gone.
    pub fn expire(&self) {
        let mut core = self.world.core();
        let now = core.now.0 / 1000;
        let expired = core.table.items().filter(|item| item.number("ttl").is_some_and(|ttl| ttl <= now));
        let gone: Vec<_> = expired.map(|item| item.key.clone()).collect();
        for key in gone {
            core.table.put_batch(&[], &[key], false).unwrap();
        }
    }

    pub fn is_delivered(&self, event: &str) -> bool {
        self.delivery(event).is_some()
    }
}
