//! A small engine, to prove and to show how an engine is added: counters. A counter has a deadline; when it ends it publishes an event
//! and nudges another counter.
//!
//! `core` decides, `subject` says how a counter is stored and addressed, and this file maps messages to inputs. Everything else is the
//! protocol's.

pub mod core;
mod scenario;
pub mod subject;

pub use scenario::{Counting, simulate};

use self::core::{ADD, Counter, Decision, Input, Rules, SOURCE, decide};
use keelway_domain::cause::Cause;
use keelway_domain::event::CloudEvent;
use keelway_domain::ids::hash64;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::item::Key;
use keelway_engine::keys;
use keelway_engine::ports::{PortError, Ports};
use keelway_engine::protocol::{Change, Engine, Handled, Handler, Letter, Loaded, Verdict, delivery, invalid, run, woken};
use keelway_engine::table::Items;
use keelway_world::Tested;
use serde::{Deserialize, Serialize};

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
    },
    /// The deadline.
    Wake {
        /// Whom.
        to: String,
        /// When.
        at: Timestamp,
    },
}

impl Message {
    /// The message on its way to the engine's queue.
    pub fn letter(&self) -> Letter {
        Letter { to: NAME, body: delivery::body(self) }
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

impl<P: Ports> Engine for Counters<P> {
    type Ports = P;
    type State = Counter;
    type Message = Message;

    const NAME: &'static str = NAME;

    fn ports(&self) -> &P {
        &self.ports
    }
    fn retention(&self) -> Span {
        Span::minutes(90 * 24 * 60)
    }
    async fn event(&self, event: &CloudEvent, cause: Cause) -> Result<Handled, PortError> {
        let n = event.data.get("n").and_then(serde_json::Value::as_i64);
        let (Some(to), Some(n @ 1..), ADD) = (event.text("counter"), n, event.ty.as_str()) else {
            return self.refuse(cause, "data.counter must be a name, and data.n at least 1", &event.to_bytes()).await;
        };
        let id = hash64(&[event.source.as_bytes(), event.id.as_bytes()]);
        run(self, cause, &Turn { to, input: Input::Add { id, n, peer: event.text("peer") }, cause }).await
    }
    async fn message(&self, message: &Message, cause: Cause) -> Result<Handled, PortError> {
        let turn = match message {
            Message::Nudge { to, from } => {
                let id = hash64(&[SOURCE.as_bytes(), from.as_bytes()]);
                Turn { to, input: Input::Add { id, n: 1, peer: None }, cause }
            }
            Message::Wake { to, at } => Turn { to, input: Input::Wake(*at), cause },
        };
        run(self, cause, &turn).await
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

impl<P: Ports> Handler<Counters<P>> for Turn<'_> {
    fn key(&self) -> Key {
        subject::key(self.to)
    }

    async fn decide(
        &self,
        engine: &Counters<P>,
        found: Option<&Loaded<Counter>>,
        _: &Items,
    ) -> Result<Verdict<Counter>, PortError> {
        let now = match self.input {
            Input::Wake(at) => woken(at, engine.ports.now()),
            Input::Add { .. } => engine.ports.now(),
        };
        let old = found.map(|loaded| &loaded.x);
        let x = match (old, self.input) {
            (Some(x), _) => x.clone(),
            (None, Input::Add { .. }) => Counter::new(self.to, now, &engine.rules),
            (None, Input::Wake(_)) => return Ok(Verdict::Done(Handled::Stale)),
        };
        Ok(match decide(&x, self.input, now, self.cause) {
            Decision::Commit(next, record) => Verdict::Commit(Box::new(Change::new(old, *next, record))),
            Decision::Settle => Verdict::Settle,
            Decision::Late => {
                engine.refuse(self.cause, "the counter has ended", &format!("{} {:?}", self.to, self.input)).await?;
                Verdict::Done(Handled::Stale)
            }
        })
    }
}

impl<P: Ports + 'static> Tested for Counters<P> {
    fn on(ports: P) -> Self {
        Self::new(ports, Rules { limit: 10, lifetime: Span::seconds(60) })
    }
    fn takes(source: &str, detail_type: &str) -> bool {
        detail_type == ADD && source != SOURCE
    }
    fn is_state(key: &Key) -> bool {
        key.pk.starts_with("N#") && key.sk == keys::MAIN
    }
}
