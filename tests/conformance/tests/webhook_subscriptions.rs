//! What a function remembers of the subscriptions: never a list that lacks one, and never one that does not change any more.

use keelway_conformance::webhooks::{Engine, Shared, engine};
use keelway_domain::event::CloudEvent;
use keelway_domain::names::Context;
use keelway_domain::time::{Span, Timestamp};
use keelway_domain::webhooks::{Body, Health, Subscription};
use keelway_engine::ports::{Condition, Write};
use keelway_engine::protocol::{Body as Sent, Delivery, Engine as _};
use keelway_engine::webhooks::{Address, keys};
use keelway_world::World;
use keelway_world::exec::block_on;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Longer than it takes until the items of a transaction are all visible.
const LATER: Span = Span::minutes(1);

struct Stand {
    world: World,
    /// A person's.
    api: Engine,
    /// The function's, which lives on.
    function: Engine,
    events: usize,
}

impl Stand {
    fn new() -> Self {
        let world = World::new(Timestamp(1_795_222_266_686));
        let engine = |worker| engine(world.worker(worker), &Shared::default());
        Self { api: engine(1), function: engine(2), events: 0, world }
    }

    fn apply(&self, name: &str, attempts: u32) {
        let value = Subscription {
            events: vec!["*".into()],
            projects: vec!["shop".into()],
            stages: vec![],
            services: vec![],
            match_expressions: vec![],
            url: "https://hooks.example.com".into(),
            headers: BTreeMap::new(),
            body: Body::Event,
            secrets: BTreeMap::new(),
            signing: None,
            send_started: false,
            send_finished: false,
            attempts,
        };
        block_on(self.api.apply(&of(name), &value, "")).unwrap();
    }

    /// The subscriptions that the function delivers the next event to.
    fn takers(&mut self) -> Vec<String> {
        self.events += 1;
        let event = CloudEvent {
            id: format!("e-{}", self.events),
            source: "me".into(),
            ty: "sh.keptn.event.test.finished".into(),
            time: self.world.now(),
            context: Context::of("c"),
            triggered_id: None,
            git_commit_id: None,
            data: json!({"project": "shop"}).as_object().cloned().unwrap(),
        };
        let delivery = Delivery { sent: self.world.now(), again: false, body: Sent::Event(event.clone()) };
        block_on(self.function.handle(&delivery)).unwrap();
        let core = self.world.core();
        let bodies = core.queue.messages.values().map(|message| serde_json::from_str::<Value>(&message.parcel.text()).unwrap());
        let own = bodies.filter(|body| body["keelway"] == "deliver" && body["event"]["id"] == event.id);
        let mut names: Vec<String> = own.map(|body| body["to"]["n"].as_str().unwrap().to_owned()).collect();
        names.sort();
        names
    }
}

fn of(name: &str) -> Address {
    Address { namespace: "shop".into(), name: name.into() }
}

#[test]
fn a_subscription_that_becomes_visible_after_the_news_of_it_is_not_missed() {
    let mut stand = Stand::new();
    stand.apply("a", 1);
    stand.world.pass(LATER);
    assert_eq!(stand.takers(), ["a"]);
    stand.apply("b", 1);
    // Of the transaction, the news is visible already.
    let key = keys::subscription(&of("b"));
    let item = stand.world.core().table.peek(&key).unwrap().as_ref().clone();
    stand.world.core().table.write(&Write::Delete(key, Condition::Always)).unwrap();
    assert_eq!(stand.takers(), ["a"]);
    stand.world.core().table.write(&Write::Put(item, Condition::Always)).unwrap();
    assert_eq!(stand.takers(), ["a", "b"]);
    stand.world.pass(LATER);
    assert_eq!(stand.takers(), ["a", "b"]);
    assert_eq!(stand.takers(), ["a", "b"]);
}

/// The clock stands still.
#[test]
fn two_changes_at_the_same_time_are_two() {
    let mut stand = Stand::new();
    stand.apply("a", 1);
    stand.apply("b", 1);
    let news = |stand: &Stand| stand.world.core().table.peek(&keys::changed()).unwrap().version();
    let before = news(&stand);
    stand.apply("a", 2);
    assert!(block_on(stand.api.remove(&of("b"))).unwrap());
    stand.apply("a", 1);
    assert_eq!((news(&stand) - before, stand.takers()), (3, vec!["a".to_owned()]));
}

#[test]
fn who_is_disabled_or_resumed_is_known_with_the_same_write() {
    let mut stand = Stand::new();
    stand.apply("a", 1);
    stand.world.pass(LATER);
    assert_eq!(stand.takers(), ["a"]);
    let news = |stand: &Stand| stand.world.core().table.peek(&keys::changed()).unwrap().version();
    let (before, x) = (news(&stand), delivery(&stand));
    for _ in 0..2 {
        block_on(stand.function.perform(&x, &Health::Gone(stand.world.now()))).unwrap();
    }
    assert_eq!((news(&stand), stand.takers().len()), (before + 1, 0));
    stand.world.pass(LATER);
    assert!(stand.takers().is_empty());
    let asked = stand.world.core().request_count();
    assert_eq!(block_on(stand.api.resume(&of("a"))).unwrap(), Some(true));
    // Two reads and one transaction: there is nothing between them that could be missing.
    assert_eq!((news(&stand), stand.world.core().request_count() - asked), (before + 2, 3));
    assert_eq!(stand.takers(), ["a"]);
    assert_eq!(block_on(stand.api.resume(&of("a"))).unwrap(), Some(false));
}

fn delivery(stand: &Stand) -> keelway_domain::webhooks::Delivery {
    let event = json!({"id": "e", "source": "me", "type": "sh.keptn.event.test.finished", "data": {"project": "shop"}});
    keelway_domain::webhooks::Delivery::begin(("shop", "a"), &event, None, Default::default(), stand.world.now())
}
