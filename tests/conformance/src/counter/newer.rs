//! A later version of the counter engine, for tests of two versions side by side: it knows one more message, which raises a
//! counter's limit, and one more attribute, by how much it was raised. With `FORMAT` 2 it also writes items that the earlier
//! version would misread: their count stands there twice over.

use super::core::{Counter, Decision, Input, Nudge, Record, Rules, decide};
use super::{Message, NAME, Turn, addition, input};
use keelway_domain::cause::Cause;
use keelway_domain::event::CloudEvent;
use keelway_domain::ids::{RecordId, hash64};
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::item::{Attr, Attrs, Item, Key, Name};
use keelway_engine::ports::{PortError, Ports};
use keelway_engine::protocol::{
    Change, Engine, Handled, Handler, Inbox, Letter, Loaded, OwnMessage, Place, Sameness, Subject, Verdict, run,
};
use keelway_engine::table::Items;
use serde::{Deserialize, Serialize};
use std::convert::Infallible;

/// A message of the later version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Newer {
    /// One the earlier version knows.
    Known(Message),
    /// One it does not know.
    New(New),
}

/// Messages that only the later version knows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "keelway", rename_all = "lowercase")]
pub enum New {
    /// Raise the limit of a counter that counts.
    Raise {
        /// Whom.
        to: String,
        /// By how much.
        by: i64,
        /// Tells raises apart.
        id: u64,
    },
}

keelway_domain::stored!(New, Newer);

impl OwnMessage for Newer {
    fn sameness(&self) -> Sameness {
        match self {
            Newer::Known(message) => message.sameness(),
            Newer::New(_) => Sameness::EachMessage,
        }
    }
}

/// A counter of the later version.
#[derive(Debug, Clone, PartialEq)]
pub struct Raised<const FORMAT: i64> {
    /// What the earlier version knows.
    pub counter: Counter,
    /// By how much its limit was raised.
    pub by: i64,
}

impl<const FORMAT: i64> Subject for Raised<FORMAT> {
    type Send = Nudge;
    type Duty = Infallible;

    const PART: &'static str = NAME;
    const FORMAT: i64 = FORMAT;

    fn key(&self) -> Key {
        self.counter.key()
    }
    fn decode(item: &Item) -> Result<Self, PortError> {
        let mut counter = Counter::decode(item)?;
        counter.count /= item.number("f").unwrap_or(1);
        Ok(Self { counter, by: item.number("ra").unwrap_or(0) })
    }
    fn attributes(&self, expires: Timestamp) -> Attrs {
        let mut attributes = self.counter.attributes(expires);
        attributes.insert(Name::Borrowed("n"), Attr::N(self.counter.count * FORMAT));
        attributes.insert(Name::Borrowed("ra"), Attr::N(self.by));
        attributes
    }
    fn place(&self) -> Place {
        self.counter.place()
    }
    fn record(&self) -> Option<RecordId> {
        self.counter.record
    }
    fn wake(&self) -> Option<Timestamp> {
        self.counter.wake()
    }
    fn over(&self) -> bool {
        self.counter.over()
    }
    fn events(&self, id: &RecordId, record: &Record) -> Vec<CloudEvent> {
        self.counter.events(id, record)
    }
    fn letter(&self, id: &RecordId, n: usize, what: &Nudge) -> Letter {
        self.counter.letter(id, n, what)
    }
    fn wake_up(&self, at: Timestamp) -> Letter {
        self.counter.wake_up(at)
    }
}

/// The later version on its ports.
pub struct NewerCounters<P, const FORMAT: i64> {
    ports: P,
    rules: Rules,
}

impl<P: Ports, const FORMAT: i64> NewerCounters<P, FORMAT> {
    /// On these ports.
    pub fn new(ports: P, rules: Rules) -> Self {
        Self { ports, rules }
    }
}

keelway_world::played!([const FORMAT: i64] NewerCounters<keelway_world::worker::Worker, FORMAT>);

impl<P: Ports, const FORMAT: i64> Inbox for NewerCounters<P, FORMAT> {
    type Ports = P;
    type Message = Newer;

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
            None => Ok(Handled::Invalid),
        }
    }
    async fn message(&self, message: &Newer, cause: Cause) -> Result<Handled, PortError> {
        match message {
            Newer::Known(message) => {
                let (to, input) = input(message);
                run(self, cause, &Turn { to, input, cause }).await
            }
            Newer::New(New::Raise { to, by, id }) => {
                run(self, cause, &Raise { to, by: *by, id: hash64(&[&id.to_be_bytes()]) }).await
            }
        }
    }
}

impl<P: Ports, const FORMAT: i64> Engine<Raised<FORMAT>> for NewerCounters<P, FORMAT> {}

impl<P: Ports, const FORMAT: i64> Handler<Raised<FORMAT>, NewerCounters<P, FORMAT>> for Turn<'_> {
    fn key(&self) -> Key {
        super::subject::key(self.to)
    }
    async fn decide(
        &self,
        engine: &NewerCounters<P, FORMAT>,
        found: Option<&Loaded<Raised<FORMAT>>>,
        _: &Items,
    ) -> Result<Verdict<Raised<FORMAT>>, PortError> {
        let now = engine.ports.now();
        let old = match (found.map(|loaded| &loaded.x), self.input) {
            (Some(x), _) => x.clone(),
            (None, Input::Add { context, .. }) => Raised { counter: Counter::new(self.to, context, now, &engine.rules), by: 0 },
            (None, Input::Wake(_)) => return Ok(Verdict::Done(Handled::Stale)),
        };
        Ok(match decide(&old.counter, self.input, now, self.cause) {
            Decision::Commit(counter, record) => {
                let next = Raised { counter: *counter, ..old };
                Verdict::Commit(Box::new(Change::new(found.map(|loaded| &loaded.x), next, record.map(|record| *record))))
            }
            Decision::Settle => Verdict::Settle,
            Decision::Late => Verdict::Done(Handled::Stale),
        })
    }
}

struct Raise<'a> {
    to: &'a str,
    by: i64,
    id: u64,
}

impl<P: Ports, const FORMAT: i64> Handler<Raised<FORMAT>, NewerCounters<P, FORMAT>> for Raise<'_> {
    fn key(&self) -> Key {
        super::subject::key(self.to)
    }
    async fn decide(
        &self,
        _: &NewerCounters<P, FORMAT>,
        found: Option<&Loaded<Raised<FORMAT>>>,
        _: &Items,
    ) -> Result<Verdict<Raised<FORMAT>>, PortError> {
        let Some(Loaded { x, .. }) = found.filter(|loaded| !loaded.x.over()) else { return Ok(Verdict::Done(Handled::Stale)) };
        if x.counter.seen.contains(&self.id) {
            return Ok(Verdict::Settle);
        }
        let mut next = x.clone();
        next.counter.limit += self.by;
        next.counter.seen.push(self.id);
        next.by += self.by;
        Ok(Verdict::Commit(Box::new(Change::new(Some(x), next, None))))
    }
}
