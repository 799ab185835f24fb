//! The cases of the webhooks engine: what they add to the format, and how they are told in the world.

mod receiver;
mod world;

pub use keelway_cases::webhooks::{Given, Hooks, Own, Reply};
pub use receiver::{Engine, Receiver, Shared, engine};
pub use world::HooksWorld;

use crate::case::{Answer, Dialect, Entrance, Stand, Step, Telling, Tells, matches, merge};
use crate::tested::Tested;
use crate::worker::Worker;
use keelway_domain::event::SPEC_VERSION;
use keelway_domain::ids::context_of;
use keelway_domain::stored::Stored;
use keelway_domain::webhooks::{End, SOURCE, Subscription};
use keelway_engine::item::Key;
use keelway_engine::register;
use keelway_engine::webhooks::{Address, Sender, Webhooks, keys};
use serde_json::{Map, Value, json};

/// The namespace of all subscriptions of a case, which is their project.
const NAMESPACE: &str = "p";

/// A case of webhooks.
pub type Case = crate::case::Case<Hooks>;

impl Dialect for Hooks {
    /// What it publishes itself comes back, too, for those who want to be told. It answers none of it: an end of a task triggers
    /// nothing.
    fn takes(source: &str, detail_type: &str) -> bool {
        source != SOURCE && takes(source, detail_type)
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

/// Whether the rule that feeds the engine's queue takes an event.
pub fn takes(_: &str, detail_type: &str) -> bool {
    detail_type.starts_with("sh.keptn.") || detail_type.starts_with("dev.keelway.")
}

impl<S: Sender + 'static> Tested for Webhooks<Worker, S> {
    fn remembering(self, other: &Self) -> Self {
        Self::remembering(self, other)
    }
    fn remembers_what(&self, other: &Self) -> bool {
        Self::remembers_what(self, other)
    }
    fn takes(source: &str, detail_type: &str) -> bool {
        takes(source, detail_type)
    }
    /// Deliveries and subscriptions.
    fn is_state(key: &Key) -> bool {
        register::is_state(keys::PARTITIONS, key)
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
    Subscription::from_value(&all).map_err(|error| format!("a subscription: {error}"))
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
