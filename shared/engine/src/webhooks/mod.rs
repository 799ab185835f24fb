//! The webhooks engine: events of the bus, delivered to servers of other people. A delivery is the subject of its messages.
//!
//! An event becomes one message for each subscription that selects it, and each message one [`Delivery`], whose id is derived from
//! the subscription and the event. Wake-ups lead to its attempts, through [`Sender`]. The stored deliveries are also the log, and
//! expire.

mod attempt;
mod codec;
mod health;
pub mod keys;
mod message;
pub mod places;
mod rule;
mod subject;
pub(crate) mod subscriptions;
mod views;

pub use message::{Address, Message};
pub use places::PLACES;
pub use rule::{QUIET, RULE, feed};
pub use subscriptions::{Applied, MOST, Off, Subscriptions};
pub use views::{DeliveryPage, Redelivery};

use crate::item::Key;
use crate::ports::{PortError, Ports};
use crate::protocol::work::work;
use crate::protocol::{self, Change, Engine, Handled, Handler, Inbox, Verdict, invalid, run};
use crate::sequences::history;
use crate::table::{self, Items};
use attempt::Try;
use keelway_domain::cause::Cause;
use keelway_domain::event::CloudEvent;
use keelway_domain::ids::SubjectId;
use keelway_domain::time::{Span, Timestamp};
use keelway_domain::webhooks::{self, Decision, Delivery, Exchange, Executor, Facts, Health, Input, Subscription, decide};
use serde_json::Value;
use std::future::Future;

/// The name of the engine and of its queue.
pub const NAME: &str = "webhooks";

/// Settings of the installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long deliveries that have ended are kept. Default 90 days.
    pub retention: Span,
    /// The largest event that is delivered, as EventBridge counts it. Default 240 KB.
    pub max_event_bytes: usize,
    /// Whether events are delivered at all. If not, the rule that feeds the queue stays as it is.
    pub delivers: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self { retention: Span::minutes(90 * 24 * 60), max_event_bytes: 240 * 1024, delivers: true }
    }
}

/// One request to make.
#[derive(Debug, Clone, PartialEq)]
pub struct Request<'a> {
    /// Of which subscription.
    pub of: &'a Address,
    /// What it says.
    pub subscription: &'a Subscription,
    /// The delivery: its event, and the attempts that were made.
    pub delivery: &'a Delivery,
    /// The present time.
    pub now: Timestamp,
}

/// Makes the requests. A request may be repeated; the receiver recognises it by the id of the event.
pub trait Sender: Send + Sync {
    /// Makes a request. The attempt contains its errors, without secrets.
    ///
    /// # Errors
    /// A service of Keelway itself fails.
    fn send(&self, request: &Request<'_>) -> impl Future<Output = Result<Exchange, PortError>> + Send;
}

/// The sender of functions that make no requests: the API and the sweep.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

impl Sender for Nobody {
    async fn send(&self, _: &Request<'_>) -> Result<Exchange, PortError> {
        Err(PortError::Refused { request: "webhook", reason: "requests are made by the function webhooks only".into() })
    }
}

/// A delivery and the version of its item.
pub type Loaded = protocol::Loaded<Delivery>;
/// A message from the engine's queue.
pub type Incoming = protocol::Incoming<Message>;

/// The engine on its ports.
pub struct Webhooks<P, S = Nobody> {
    ports: P,
    limits: Limits,
    sender: S,
    known: subscriptions::Known,
    places: places::Places,
}

impl<P: Ports> Webhooks<P> {
    /// An engine that makes no requests.
    pub fn new(ports: P, limits: Limits) -> Self {
        Self::with(ports, limits, Nobody)
    }
}

impl<P: Ports, S: Sender> Webhooks<P, S> {
    /// An engine that makes requests.
    pub fn with(ports: P, limits: Limits, sender: S) -> Self {
        Self { ports, limits, sender, known: subscriptions::Known::default(), places: places::Places::default() }
    }

    /// The same, with the subscriptions that another one remembers.
    pub fn remembering(self, other: &Self) -> Self {
        Self { known: other.known.clone(), ..self }
    }

    /// Whether both remember the same subscriptions.
    pub fn remembers_what(&self, other: &Self) -> bool {
        self.known.version() == other.known.version()
    }

    /// An event that is too large is recorded with the reason, before anything else is written.
    async fn too_large(&self, event: &CloudEvent, cause: Cause) -> Result<Handled, PortError> {
        let (size, limit) = (event.size(), self.limits.max_event_bytes);
        let reason =
            format!("webhooks take it, but it has {size} bytes, {limit} are allowed: send a reference instead of the content");
        invalid::record(&self.ports, self.limits.retention, cause.sent, &reason, &event.to_bytes()).await
    }

    async fn turn(&self, to: SubjectId, (input, of): (Input<'_>, Option<&Applied>), cause: Cause) -> Result<Handled, PortError> {
        run(self, cause, &Turn { to, input, of, cause }).await
    }
}

impl<P: Ports, S: Sender> Inbox for Webhooks<P, S> {
    type Ports = P;
    type Message = Message;

    const NAME: &'static str = NAME;

    fn ports(&self) -> &P {
        &self.ports
    }
    fn retention(&self) -> Span {
        self.limits.retention
    }
    async fn event(&self, event: &CloudEvent, cause: Cause) -> Result<Handled, PortError> {
        let all = self.in_force().await?;
        let takers = all.readable.iter().filter(|(_, applied)| self.takes(applied, event));
        // A subscription that only newer code can read does not delay the others: its own message waits for that code.
        let unmatched = all.unread.iter().map(|to| (to, true));
        let to: Vec<_> = takers.map(|(to, _)| (to, false)).chain(unmatched).collect();
        if to.is_empty() {
            return Ok(Handled::Recorded);
        }
        if event.size() > self.limits.max_event_bytes {
            return self.too_large(event, cause).await;
        }
        let json = event.to_json();
        let deliver =
            |(to, unmatched): (&Address, bool)| Message::Deliver { to: to.clone(), event: json.clone(), again: None, unmatched };
        let letters: Vec<_> = to.into_iter().map(|to| deliver(to).letter()).collect();
        table::send_all(&self.ports, &letters).await?;
        Ok(Handled::Recorded)
    }
    async fn message(&self, message: &Message, cause: Cause) -> Result<Handled, PortError> {
        match message {
            Message::Deliver { to, event, again, unmatched } => {
                run(self, cause, &Begin { to, event, again: again.as_deref(), unmatched: *unmatched, cause }).await
            }
            Message::Wake { to, .. } => work(&self.ports, cause, &Try { on: self, to: *to, cause }).await,
            Message::Now { to, attempts } => self.turn(*to, (Input::Now(*attempts), None), cause).await,
        }
    }
    /// The rule for webhooks selects events of all kinds. Invalid ones are recorded by the engine that they are for.
    async fn unreadable(&self, _: Timestamp, _: &str, _: &str) -> Result<Handled, PortError> {
        Ok(Handled::Recorded)
    }
}

impl<P: Ports, S: Sender> Engine<Delivery> for Webhooks<P, S> {
    async fn perform(&self, x: &Delivery, duty: &Health) -> Result<(), PortError> {
        self.note(x, *duty).await
    }
}

/// An event on its way to a subscription.
struct Begin<'a> {
    to: &'a Address,
    event: &'a Value,
    again: Option<&'a str>,
    unmatched: bool,
    cause: Cause,
}

impl Begin<'_> {
    /// Whether the subscription selects the event now. For a matched event, only the time is checked again.
    fn is_taken<P: Ports, S: Sender>(&self, engine: &Webhooks<P, S>, applied: &Applied) -> bool {
        let time = self.event.get("time").and_then(Value::as_str).and_then(Timestamp::parse);
        // A person may ask for what is old.
        let in_time = self.again.is_some() || time.is_none_or(|time| engine.is_in_time(applied, time));
        let taken = || history::from_json(self.event).is_some_and(|event| applied.value.takes(&event));
        applied.off.is_none() && in_time && (!self.unmatched || taken())
    }
}

impl<P: Ports, S: Sender> Handler<Delivery, Webhooks<P, S>> for Begin<'_> {
    fn key(&self) -> Key {
        let text = |name: &str| self.event.get(name).and_then(Value::as_str).unwrap_or_default();
        keys::delivery(webhooks::id((&self.to.namespace, &self.to.name), text("source"), text("id"), self.again))
    }

    fn reads(&self) -> Vec<Key> {
        vec![keys::subscription(self.to)]
    }

    async fn decide(&self, engine: &Webhooks<P, S>, found: Option<&Loaded>, items: &Items) -> Result<Verdict<Delivery>, PortError> {
        if found.is_some() {
            return Ok(Verdict::Settle);
        }
        let applied = items.get(&keys::subscription(self.to)).map(subscriptions::read).transpose()?.flatten();
        // The subscription was deleted or disabled after the event was matched, or the message came too late.
        let Some(applied) = applied.filter(|applied| self.is_taken(engine, applied)) else {
            return Ok(Verdict::Done(Handled::Stale));
        };
        let executor = Executor { started: applied.value.send_started, finished: applied.value.send_finished };
        let of = (self.to.namespace.as_str(), self.to.name.as_str());
        let x = Delivery::begin(of, self.event, self.again, executor, engine.ports.now());
        let (x, record) = x.begun(self.cause);
        Ok(Verdict::Commit(Box::new(Change::new(None, x, record))))
    }
}

/// An input on its way to a delivery, with what is known of its subscription if that matters.
struct Turn<'a> {
    to: SubjectId,
    input: Input<'a>,
    of: Option<&'a Applied>,
    cause: Cause,
}

impl<P: Ports, S: Sender> Handler<Delivery, Webhooks<P, S>> for Turn<'_> {
    fn key(&self) -> Key {
        keys::delivery(self.to)
    }

    async fn decide(&self, engine: &Webhooks<P, S>, found: Option<&Loaded>, _: &Items) -> Result<Verdict<Delivery>, PortError> {
        let Some(Loaded { x, .. }) = found else { return Ok(Verdict::Done(Handled::Stale)) };
        let facts = Facts {
            now: engine.ports.now(),
            cause: self.cause,
            limit: self.of.map_or(webhooks::MAX_ATTEMPTS, |of| of.value.attempts),
            failing: self.of.and_then(|of| of.failing),
            since: self.of.and_then(|of| of.began),
        };
        Ok(match decide(x, self.input, &facts) {
            Decision::Commit(next, record) => Verdict::Commit(Box::new(Change::new(Some(x), *next, record.map(|record| *record)))),
            Decision::Settle => Verdict::Settle,
        })
    }
}
