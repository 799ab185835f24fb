//! What must hold of deliveries and subscriptions, whatever goes wrong.

use super::yard::{Shared, earliest, lock};
use crate::sim::paid;
use keelway_domain::event::CloudEvent;
use keelway_domain::ids::{SubjectId, event_id, hash64};
use keelway_domain::stored::Stored;
use keelway_domain::time::{Span, Timestamp};
use keelway_domain::webhooks::{Delivery, End, Subscription, id};
use keelway_engine::item::Item;
use keelway_engine::keys::MAIN;
use keelway_engine::protocol::Loaded;
use keelway_engine::protocol::record::SKEW;
use keelway_engine::webhooks::{Address, Off, keys};
use keelway_world::bus::BusTwin;
use keelway_world::table::{Change, Table};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// What a subscription says, and since when it takes events.
#[derive(Debug, Clone, PartialEq)]
struct Taking {
    says: Subscription,
    began: Timestamp,
}

impl Taking {
    /// Whether it takes an event: none from before it began.
    fn takes(&self, event: &CloudEvent) -> bool {
        self.says.takes(event) && event.time + SKEW >= self.began
    }
}

/// A subscription from a time on, counted in requests; `None`: it takes nothing.
type Period = (u64, Option<Taking>);

/// An event on its way: when it was put on the bus first, and when a message with it was done with first, counted in requests.
#[derive(Debug, Clone)]
pub struct Emitted {
    pub event: CloudEvent,
    pub from: u64,
    pub first: Option<u64>,
    pub last: u64,
}

/// What the watcher remembers.
#[derive(Default)]
pub struct Watch {
    pub skew: Span,
    pub now: Timestamp,
    pub yard: Shared,
    /// Events by their identity.
    pub emitted: BTreeMap<(String, String), Emitted>,
    /// When a message that delivers an event to a subscription was done with first.
    pub handled: HashMap<SubjectId, u64>,
    /// Deliveries that people were promised, and when.
    pub promised: Vec<(Address, SubjectId, u64)>,
    periods: BTreeMap<Address, Vec<Period>>,
    /// When it was said that the subscriptions have changed.
    told: Vec<u64>,
    /// Events about subscriptions that are disabled: whoever finds it again tells it again.
    pub disabled: HashSet<String>,
    resumed: HashMap<Address, Timestamp>,
    successes: HashMap<Address, Vec<Timestamp>>,
    /// Receivers that answered 410, and when they did for the first time, counted in requests.
    gone: HashMap<Address, u64>,
}

fn of(x: &Delivery) -> Address {
    Address { namespace: x.of.0.clone(), name: x.of.1.clone() }
}

/// A delivery in an item.
pub fn delivery(item: &Item) -> Result<Delivery, String> {
    Loaded::<Delivery>::read(item).map(|loaded| loaded.x).map_err(|e| e.to_string())
}

fn off(item: Option<&Arc<Item>>) -> Option<Off> {
    item.and_then(|item| Off::from_json(item.text("off")?).ok())
}

/// What a subscription says, if it is not disabled.
fn in_force(item: Option<&Arc<Item>>) -> Option<Taking> {
    let item = item.filter(|item| item.text("off").is_none())?;
    Some(Taking { says: serde_json::from_str(item.text("j")?).ok()?, began: Timestamp(item.number("be").unwrap_or_default()) })
}

/// Since when nothing has reached the receiver.
fn failing(item: Option<&Arc<Item>>) -> Option<Timestamp> {
    item.and_then(|item| item.number("fa")).map(Timestamp)
}

impl Watch {
    /// Of these receivers.
    pub fn of(yard: &Shared) -> Self {
        Self { yard: yard.clone(), ..Self::default() }
    }

    /// One request changed an item.
    pub fn changed(&mut self, change: &Change, time: u64) -> Result<(), String> {
        match change.key.pk.as_str() {
            keys::SUBSCRIPTIONS => self.subscription(change, time),
            pk if pk.starts_with("WD#") && change.key.sk == MAIN => self.delivery(change, time),
            _ if change.key == keys::changed() => {
                self.told.push(time);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn subscription(&mut self, change: &Change, time: u64) -> Result<(), String> {
        let name = keys::address(&change.key);
        let is_there = |item: &&Arc<Item>| item.text("j").is_some();
        if change.new.as_ref().is_some_and(|new| !is_there(&new) && (new.text("off").is_some() || new.number("fa").is_some())) {
            return Err(format!("{name} is deleted, and something is noted there: {:?}", change.new));
        }
        let (old, new) = (change.old.as_ref().filter(is_there), change.new.as_ref().filter(is_there));
        let (before, after) = (off(old), off(new));
        let resumed = before.is_some() && after.is_none() && new.is_some();
        if resumed {
            self.resumed.insert(name.clone(), self.now);
            if let Some(since) = failing(new) {
                return Err(format!("{name} was resumed, and has been failing since {}", since.0));
            }
        } else if let (Some(since), Some(_), None) = (failing(old), new, failing(new)) {
            self.works_again(&name, since)?;
        }
        if let Some(wanted) = after.filter(|_| before.is_none()) {
            let subject = SubjectId(hash64(&[b"subscription", name.to_string().as_bytes(), &wanted.at.0.to_be_bytes()]));
            self.disabled.insert(event_id(subject, "disabled").to_string());
            self.disables(&name, &wanted)?;
        }
        let present = in_force(new);
        {
            let mut yard = lock(&self.yard);
            match &present {
                Some(_) => drop(yard.stopped.remove(&name)),
                None => drop(yard.stopped.entry(name.clone()).or_insert(time)),
            }
        }
        let periods = self.periods.entry(name).or_default();
        if periods.last().is_none_or(|(_, last)| *last != present) {
            periods.push((time, present));
        }
        Ok(())
    }

    /// A subscription is disabled by what was found since a person resumed it, and while nothing reached the receiver.
    fn disables(&self, name: &Address, wanted: &Off) -> Result<(), String> {
        let margin = Span(2 * self.skew.0);
        if self.resumed.get(name).is_some_and(|resumed| wanted.at + margin < *resumed) {
            return Err(format!("{name} was resumed and is disabled again by what was found before: {wanted:?}"));
        }
        let reached = |at: &&Timestamp| wanted.since.is_some_and(|since| since + margin < **at) && **at + margin < wanted.at;
        match self.successes.get(name).into_iter().flatten().find(reached) {
            Some(at) => Err(format!("{name} was reached at {} and is disabled because it was not: {wanted:?}", at.0)),
            None => Ok(()),
        }
    }

    /// Only a success since then says that a receiver works again.
    fn works_again(&self, name: &Address, since: Timestamp) -> Result<(), String> {
        let margin = Span(2 * self.skew.0);
        let reached = self.successes.get(name).into_iter().flatten().any(|at| *at + margin >= since);
        if reached { Ok(()) } else { Err(format!("{name} fails since {} and is said to work by an older success", since.0)) }
    }

    fn delivery(&mut self, change: &Change, time: u64) -> Result<(), String> {
        let Some(item) = &change.new else { return Err(format!("{} was deleted", change.key)) };
        if change.old.as_ref().is_some_and(|old| paid(old, item)) {
            return Ok(());
        }
        let x = delivery(item)?;
        let old = change.old.as_ref().map(|item| Ok::<_, String>((delivery(item)?, item.version()))).transpose()?;
        if item.version() != old.as_ref().map_or(0, |(_, version)| *version) + 1 {
            return Err(format!("delivery {} was written over: {old:?} became {x:?}", x.id));
        }
        let wrong = |what: &str| Err(format!("{what}: {old:?} became {x:?}"));
        if x.end.is_some() != x.due.is_none() {
            return wrong("a delivery is over and waits, or neither");
        }
        if x.end.is_some() {
            lock(&self.yard).ended.entry(x.id).or_insert(time);
        }
        let Some((before, _)) = &old else { return if x.attempts.is_empty() { Ok(()) } else { wrong("born with attempts") } };
        if before.end.is_some() || !x.attempts.starts_with(&before.attempts) {
            return wrong("a delivery changes after its end, or forgets an attempt");
        }
        let made = &x.attempts[before.attempts.len()..];
        let Some(attempt) = made.last() else { return if x.end.is_none() { Ok(()) } else { self.stops(&x) } };
        if made.len() > 1 || before.due.is_none_or(|due| attempt.at < due) {
            return wrong("an attempt was made early, or two at once");
        }
        if x.due.is_some_and(|due| due < earliest(attempt, x.attempts.len())) {
            return wrong("the next attempt is due too early");
        }
        if attempt.succeeded() {
            self.successes.entry(of(&x)).or_default().push(attempt.at);
        }
        if attempt.status == Some(410) {
            self.gone.entry(of(&x)).or_insert(time);
        }
        let expected = match attempt.status {
            Some(200..=299) => x.end == Some(End::Delivered),
            Some(410) => x.end == Some(End::Gone),
            _ => matches!(x.end, None | Some(End::GivenUp)),
        };
        if expected { Ok(()) } else { wrong("a delivery ends otherwise than its last attempt says") }
    }

    /// A delivery ends without an attempt: its subscription must have stopped some time.
    fn stops(&self, x: &Delivery) -> Result<(), String> {
        let periods = self.periods.get(&of(x)).into_iter().flatten();
        let stopped = periods.skip(1).any(|(_, present)| present.is_none());
        if stopped && matches!(x.end, Some(End::Disabled | End::Deleted)) {
            Ok(())
        } else {
            Err(format!("ends for no reason: {x:?}"))
        }
    }

    /// When a period was told to everybody.
    fn told(&self, since: u64) -> u64 {
        let told = self.told.iter().find(|told| **told >= since);
        told.copied().unwrap_or(u64::MAX)
    }

    /// Whether a subscription took an event during the whole time.
    fn throughout(&self, periods: &[Period], (from, to): (u64, u64), event: &CloudEvent) -> bool {
        let Some((since, Some(subscription))) = periods.iter().rfind(|(since, _)| *since <= from) else { return false };
        let changed = periods.iter().any(|(since, _)| from < *since && *since <= to);
        self.told(*since) <= from && !changed && subscription.takes(event)
    }

    /// Whether it took the event at any time, as far as anybody may have known.
    fn ever(&self, periods: &[Period], (from, to): (u64, u64), event: &CloudEvent) -> bool {
        let ends = |n: usize| periods.get(n + 1).map_or(u64::MAX, |(next, _)| self.told(*next));
        let taken = |(n, (since, present)): (usize, &Period)| {
            *since <= to && ends(n) >= from && present.as_ref().is_some_and(|subscription| subscription.takes(event))
        };
        periods.iter().enumerate().any(taken)
    }

    /// Whether a subscription takes the event of a delivery now.
    pub fn takes(&self, x: &Delivery) -> bool {
        let event = self.emitted.get(&(x.text("source").to_owned(), x.text("id").to_owned()));
        let present = self.periods.get(&of(x)).and_then(|periods| periods.last()?.1.as_ref());
        event.zip(present).is_some_and(|(emitted, present)| present.takes(&emitted.event))
    }

    /// Every event that a subscription took has one delivery, and no other has one.
    pub fn check_deliveries(&self, table: &Table) -> Result<(), String> {
        for emitted in self.emitted.values() {
            // A worker may be done with a letter that was sent again, and stop before it says so.
            let first = emitted.first.unwrap_or(u64::MAX);
            let last = emitted.first.map_or(u64::MAX, |_| emitted.last);
            for (name, periods) in &self.periods {
                let event = &emitted.event;
                let id = id((&name.namespace, &name.name), &event.source, &event.id, None);
                let handled = self.handled.get(&id).copied().unwrap_or(first).max(first);
                let there = table.peek(&keys::delivery(id)).is_some();
                if !there && self.throughout(periods, (emitted.from, handled), event) {
                    return Err(format!("{name} took {} and it is not delivered: {periods:?} {emitted:?}", event.id));
                }
                // A copy of the event may be at work when another one is acknowledged; it was matched before the delivery began.
                let begun = self.handled.get(&id).copied().unwrap_or(last).max(last);
                if there && !self.ever(periods, (emitted.from, begun), event) {
                    return Err(format!("{name} never took {} and it is delivered: {periods:?} {emitted:?}", event.id));
                }
            }
        }
        for (name, id, at) in &self.promised {
            let stopped = self.periods.get(name).into_iter().flatten().any(|(since, present)| since >= at && present.is_none());
            if table.peek(&keys::delivery(*id)).is_none() && !stopped {
                return Err(format!("{name}: a person was promised {id}, and nothing came of it"));
            }
        }
        Ok(())
    }

    /// A delivery is over, the receiver got what it says, and its task was answered.
    pub fn check_end(&self, x: &Delivery, bus: &BusTwin) -> Result<(), String> {
        let Some(end) = x.end else { return Err(format!("a delivery never ends: {x:?}")) };
        let yard = lock(&self.yard);
        let got = yard.got.get(&x.id).map(Vec::as_slice).unwrap_or_default();
        let first = id((&x.of.0, &x.of.1), x.text("source"), x.text("id"), None);
        if got.len() < x.attempts.len() || got.iter().any(|got| got.id != first) {
            return Err(format!("{x:?} was requested otherwise than it says: {got:?}"));
        }
        if end == End::Delivered && !got.iter().any(|got| got.taken) {
            return Err(format!("nobody took {x:?}"));
        }
        for (kind, wanted) in [("started", x.executor.started), ("finished", x.executor.finished)] {
            let id = event_id(x.id, kind).to_string();
            if bus.knows(&id) != wanted {
                return Err(format!("{kind} of {x:?} was told: {}", bus.knows(&id)));
            }
        }
        Ok(())
    }

    /// A receiver that answered 410 is disabled, and each task has one answer of each kind from a subscription.
    pub fn check_receivers(&self, bus: &BusTwin) -> Result<(), String> {
        for (name, at) in &self.gone {
            // Unless it was deleted before that could be noted.
            let periods = self.periods.get(name).map(Vec::as_slice).unwrap_or_default();
            let stopped =
                (0..periods.len()).any(|n| periods[n].1.is_none() && periods.get(n + 1).is_none_or(|(next, _)| next >= at));
            if !stopped {
                return Err(format!("{name} answered 410 and is not disabled"));
            }
        }
        let mut answers: HashMap<(String, String, String), HashSet<&str>> = HashMap::new();
        for publication in bus.firsts() {
            let event: serde_json::Value = serde_json::from_str(&publication.entry.detail).unwrap_or_default();
            let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
            if event["triggeredid"].is_string() {
                let task = event["type"].as_str().unwrap_or_default().rsplit('.').nth(1).unwrap_or_default();
                let by = text(&event["data"][task]["webhook"]);
                let key = (text(&event["triggeredid"]), text(&event["type"]), by);
                answers.entry(key).or_default().insert(&publication.id);
            }
        }
        // Only the end names who answers.
        match answers.iter().find(|((_, ty, _), ids)| ty.ends_with(".finished") && ids.len() > 1) {
            Some((task, ids)) => Err(format!("{task:?} was answered {} times", ids.len())),
            None => Ok(()),
        }
    }
}
