//! A small engine, to prove and to show how an engine is added: counters. A counter has a deadline; when it ends it publishes an
//! event and nudges another counter.
//!
//! `core` decides, `subject` says how a counter is stored and addressed, and this file maps messages to inputs. Everything else is
//! the protocol's.

pub mod cases;
pub mod core;
pub mod newer;
mod scenario;
pub mod subject;
pub mod versions;

pub use scenario::{Counting, simulate};

use self::core::{ADD, Counter, Decision, Input, Rules, SOURCE, decide};
use keelway_domain::cause::Cause;
use keelway_domain::event::CloudEvent;
use keelway_domain::ids::hash64;
use keelway_domain::names::Context;
use keelway_domain::stored::Stored;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::item::Key;
use keelway_engine::ports::{PortError, Ports};
use keelway_engine::protocol::{
    Change, Engine, Handled, Handler, Inbox, Letter, Loaded, OwnMessage, Sameness, Verdict, invalid, run,
};
use keelway_engine::table::Items;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The engine's name.
pub const NAME: &str = "counter";

/// A message of the counter engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "keelway", rename_all = "lowercase")]
pub enum Message {
    /// A peer has ended: add one.
    Nudge {
        /// Whom.
        to: String,
        /// The record of the peer's end: the same nudge may come twice.
        from: String,
        /// The peer's context.
        context: Context,
    },
    /// The deadline.
    Wake {
        /// Whom.
        to: String,
        /// When.
        at: Timestamp,
    },
}

keelway_domain::stored!(Message);

impl OwnMessage for Message {
    fn sameness(&self) -> Sameness {
        match self {
            Message::Wake { .. } => Sameness::AnyCopy,
            Message::Nudge { .. } => Sameness::EachMessage,
        }
    }
}

impl Message {
    /// The message on its way to the engine's queue.
    pub fn letter(&self) -> Letter {
        Letter { to: NAME, body: self.to_json() }
    }
}

/// The engine on its ports.
pub struct Counters<P> {
    ports: P,
    rules: Rules,
}

impl<P: Ports> Counters<P> {
    /// An engine on these ports.
    pub fn new(ports: P, rules: Rules) -> Self {
        Self { ports, rules }
    }
}

impl<P: Ports> Inbox for Counters<P> {
    type Ports = P;
    type Message = Message;

    const NAME: &'static str = NAME;

    fn ports(&self) -> &P {
        &self.ports
    }
    fn retention(&self) -> Span {
        Span::minutes(90 * 24 * 60)
    }
    async fn event(&self, event: &CloudEvent, cause: Cause) -> Result<Handled, PortError> {
        match addition(event) {
            Some((to, input)) => run(self, cause, &Turn { to, input, cause }).await,
            None => self.refuse(cause, "data.counter must be a name, and data.n at least 1", &event.to_bytes()).await,
        }
    }
    async fn message(&self, message: &Message, cause: Cause) -> Result<Handled, PortError> {
        let (to, input) = input(message);
        run(self, cause, &Turn { to, input, cause }).await
    }
}

impl<P: Ports> Engine<Counter> for Counters<P> {}

/// What an event adds, and to which counter.
fn addition(event: &CloudEvent) -> Option<(&str, Input<'_>)> {
    let n = event.data.get("n").and_then(Value::as_i64).filter(|n| *n > 0 && event.ty == ADD)?;
    let id = hash64(&[event.source.as_bytes(), event.id.as_bytes()]);
    Some((event.text("counter")?, Input::Add { id, n, peer: event.text("peer"), context: &event.context }))
}

/// What a message says, and to which counter.
fn input(message: &Message) -> (&str, Input<'_>) {
    match message {
        Message::Nudge { to, from, context } => {
            let id = hash64(&[SOURCE.as_bytes(), from.as_bytes()]);
            (to, Input::Add { id, n: 1, peer: None, context })
        }
        Message::Wake { to, at } => (to, Input::Wake(*at)),
    }
}

impl<P: Ports> Counters<P> {
    async fn refuse(&self, cause: Cause, reason: &str, text: &str) -> Result<Handled, PortError> {
        invalid::record(&self.ports, self.retention(), cause.sent, reason, text).await
    }
}

/// An input on its way to a counter.
struct Turn<'a> {
    to: &'a str,
    input: Input<'a>,
    cause: Cause,
}

impl<P: Ports> Handler<Counter, Counters<P>> for Turn<'_> {
    fn key(&self) -> Key {
        subject::key(self.to)
    }

    async fn decide(
        &self,
        engine: &Counters<P>,
        found: Option<&Loaded<Counter>>,
        _: &Items,
    ) -> Result<Verdict<Counter>, PortError> {
        let now = engine.ports.now();
        let old = found.map(|loaded| &loaded.x);
        let x = match (old, self.input) {
            (Some(x), _) => x.clone(),
            (None, Input::Add { context, .. }) => Counter::new(self.to, context, now, &engine.rules),
            (None, Input::Wake(_)) => return Ok(Verdict::Done(Handled::Stale)),
        };
        Ok(match decide(&x, self.input, now, self.cause) {
            Decision::Commit(next, record) => Verdict::Commit(Box::new(Change::new(old, *next, record.map(|record| *record)))),
            Decision::Settle => Verdict::Settle,
            Decision::Late => {
                engine.refuse(self.cause, "the counter has ended", &format!("{} {:?}", self.to, self.input)).await?;
                Verdict::Done(Handled::Stale)
            }
        })
    }
}
