//! The queue's twin: visibility, delays, receive counts, dead letters, one-time schedules.

use keelway_domain::event::CloudEvent;
use keelway_domain::stored::Stored;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::ports::PortError;
use keelway_engine::protocol::dead_letter::{DeadLetter, Redriven};
use keelway_engine::protocol::{Body, Incoming};
use keelway_wire::cloudevent::from_bus_envelope;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// What lies in a queue, before an engine reads it.
#[derive(Debug, Clone, PartialEq)]
pub enum Parcel {
    /// An event the bus's rule put there.
    Event(CloudEvent),
    /// A message of an engine's own.
    Own(String),
    /// Neither.
    Invalid {
        /// Why.
        reason: String,
        /// As it arrived.
        text: String,
    },
}

impl From<CloudEvent> for Parcel {
    fn from(event: CloudEvent) -> Self {
        Self::Event(event)
    }
}

impl Parcel {
    /// As text, the way a queue holds it.
    pub fn text(&self) -> String {
        match self {
            Parcel::Event(event) => json!({"source": event.source, "detail-type": event.ty, "detail": event.to_json()}).to_string(),
            Parcel::Own(text) | Parcel::Invalid { text, .. } => text.clone(),
        }
    }

    fn of_text(text: &str, sent: Timestamp) -> Self {
        let json: Value = serde_json::from_str(text).unwrap_or_default();
        if json.get("keelway").is_some() {
            return Parcel::Own(text.to_owned());
        }
        match from_bus_envelope(&json, sent) {
            Ok(event) => Parcel::Event(event),
            Err(e) => Parcel::Invalid { reason: e.to_string(), text: text.to_owned() },
        }
    }

    /// As an engine with these messages reads it; `None`: a newer version must.
    pub fn body<M: Stored>(&self) -> Option<Body<M>> {
        Some(match self {
            Parcel::Event(event) => Body::Event(event.clone()),
            Parcel::Own(text) => Body::Own(M::from_json(text).ok()?),
            Parcel::Invalid { reason, text } => Body::Invalid { reason: reason.clone(), text: text.clone() },
        })
    }
}

/// What a worker received: a message, and the dead letter it was, if it is one on its way again.
#[derive(Debug, Clone, PartialEq)]
pub struct Received {
    /// The engine in whose queue it was.
    pub engine: String,
    /// When it was first sent.
    pub sent: Timestamp,
    /// What it says.
    pub parcel: Parcel,
    /// The letter to take out when it is handled.
    pub letter: Option<Redriven>,
    /// It was received before.
    pub again: bool,
}

impl Received {
    /// As an engine with these messages reads it; `None`: a newer version must.
    pub fn incoming<M: Stored>(&self) -> Option<Incoming<M>> {
        Some(Incoming { sent: self.sent, again: self.again, body: self.parcel.body()? })
    }
}

/// A message in the queue.
#[derive(Debug, Clone, PartialEq)]
pub struct Queued {
    /// The engine whose queue it is in.
    pub engine: String,
    /// When it was first sent; stays the same.
    pub sent: Timestamp,
    /// What every delivery of it says.
    pub parcel: Parcel,
    /// Not received before.
    pub visible: Timestamp,
    /// How often it was received.
    pub receives: u32,
    /// Some worker has it.
    pub in_flight: bool,
}

/// The engines' queues and the schedules that end in them.
#[derive(Debug, Clone)]
pub struct QueueTwin {
    next: u64,
    /// By id, in the order of sending.
    pub messages: BTreeMap<u64, Queued>,
    /// Received too often.
    pub dead: Vec<(u64, Queued)>,
    /// After so many receives a message is dead.
    pub max_receives: u32,
    /// The engine that a world has not, if something is sent to one: nobody receives that.
    pub absent: Option<&'static str>,
    /// What was sent to it, each message once.
    pub sent_away: Vec<String>,
    schedules: BTreeMap<String, (Timestamp, String, String)>,
    /// Their names by the times at which they fire.
    due: BTreeSet<(Timestamp, String)>,
}

/// What one request may carry, in bytes.
const REQUEST_BYTES: usize = 1 << 20;
/// The longest delay SQS takes.
pub const LONGEST_DELAY: Span = Span::minutes(15);
/// How long before its time a schedule fires, so that its imprecision does not matter.
const SCHEDULE_LEAD: Span = Span::minutes(10);

impl Default for QueueTwin {
    fn default() -> Self {
        Self {
            next: 0,
            messages: BTreeMap::new(),
            dead: vec![],
            max_receives: 10,
            absent: None,
            sent_away: vec![],
            schedules: BTreeMap::new(),
            due: BTreeSet::new(),
        }
    }
}

impl QueueTwin {
    /// How many messages were ever sent.
    pub fn sent(&self) -> u64 {
        self.next
    }

    /// Whether the same is in it in the same order, whatever the ids are and how many copies there are of a message, and nothing is
    /// dead in either. A copy is one message more that is handled twice, and every case holds with each of them handled twice.
    pub(crate) fn holds_what(&self, other: &Self) -> bool {
        self.dead.is_empty()
            && other.dead.is_empty()
            && self.max_receives == other.max_receives
            && self.sent_away == other.sent_away
            && self.schedules == other.schedules
            && self.once().eq(other.once())
    }

    /// Messages in the order of sending, without later copies.
    fn once(&self) -> impl Iterator<Item = &Queued> {
        let copies = |id: u64, message: &Queued| self.messages.range(..id).any(|(_, earlier)| earlier == message);
        self.messages.iter().filter(move |(id, message)| !copies(**id, message)).map(|(_, message)| message)
    }

    /// Puts a message into an engine's queue and returns its id.
    pub fn push(&mut self, sent: Timestamp, engine: &str, parcel: Parcel, delay: Span) -> u64 {
        self.next += 1;
        let engine = engine.to_owned();
        self.messages.insert(self.next, Queued { engine, sent, parcel, visible: sent + delay, receives: 0, in_flight: false });
        self.next
    }

    /// `SendMessageBatch`; when `busy`, the last half of the entries fails.
    pub fn send(&mut self, now: Timestamp, engine: &str, bodies: &[String], busy: bool) -> Result<Vec<Option<String>>, PortError> {
        if bodies.is_empty() || bodies.len() > 10 || bodies.iter().map(String::len).sum::<usize>() > REQUEST_BYTES {
            let reason = format!("{} messages: 1 to 10 of 1 MB together are allowed", bodies.len());
            return Err(PortError::Refused { request: "SendMessageBatch", reason });
        }
        let taken = if busy { bodies.len() / 2 } else { bodies.len() };
        for text in &bodies[..taken] {
            if self.absent == Some(engine) {
                self.send_away(text);
                continue;
            }
            // An envelope of the bus is an event; everything else is the engine's own.
            let event = serde_json::from_str(text).ok().and_then(|json: Value| from_bus_envelope(&json, now).ok());
            self.push(now, engine, event.map_or_else(|| Parcel::Own(text.clone()), Parcel::Event), Span(0));
        }
        Ok((0..bodies.len()).map(|i| (i >= taken).then(|| "InternalError".to_owned())).collect())
    }

    fn send_away(&mut self, text: &str) {
        if !self.sent_away.iter().any(|sent| sent == text) {
            self.sent_away.push(text.to_owned());
        }
    }

    /// Puts what was received from this message into its queue once more.
    pub fn copy(&mut self, id: u64, received: &Received) -> u64 {
        let engine = self.messages.get(&id).map(|message| message.engine.clone()).unwrap_or_default();
        self.push(received.sent, &engine, received.parcel.clone(), Span(0))
    }

    /// A delayed message within 15 minutes; a one-time schedule, by name, beyond. The sender works out the delay by its own
    /// clock, which is `skew` ahead.
    pub fn send_at(
        &mut self,
        (now, skew): (Timestamp, Span),
        engine: &str,
        (name, text): (&str, &str),
        at: Timestamp,
    ) -> Result<(), PortError> {
        if text.len() > REQUEST_BYTES {
            let reason = format!("{} bytes: {REQUEST_BYTES} are allowed", text.len());
            return Err(PortError::Refused { request: "SendMessage", reason });
        }
        let delay = at - (now + skew);
        if !Self::needs_schedule((now, skew), at) {
            self.push(now, engine, Parcel::Own(text.to_owned()), Span(delay.0.max(0)));
            return Ok(());
        }
        if name.is_empty() || name.len() > 64 {
            return Err(PortError::Refused {
                request: "CreateSchedule",
                reason: format!("name {name:?} has not 1 to 64 characters"),
            });
        }
        if !self.schedules.contains_key(name) {
            let fires = at - SCHEDULE_LEAD;
            self.due.insert((fires, name.to_owned()));
            self.schedules.insert(name.to_owned(), (fires, engine.to_owned(), text.to_owned()));
        }
        Ok(())
    }

    /// Whether something at this time needs a schedule, because a delay would be too long.
    pub fn needs_schedule((now, skew): (Timestamp, Span), at: Timestamp) -> bool {
        at - (now + skew) > LONGEST_DELAY
    }

    /// When the next schedule fires.
    pub fn next_schedule(&self) -> Option<Timestamp> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Lets every schedule that is due put its message into the queue.
    pub fn fire(&mut self, now: Timestamp) {
        // Those of one time fire in the order of their names, as do those that were due at different times by now.
        let mut due: Vec<String> = self.due.iter().take_while(|(at, _)| *at <= now).map(|(_, name)| name.clone()).collect();
        due.sort();
        due.iter().for_each(|name| self.fire_one(now, name));
    }

    /// Lets the schedule that has been due for longest put its message into the queue.
    pub fn fire_next(&mut self, now: Timestamp) {
        let name = self.due.first().filter(|(at, _)| *at <= now).map(|(_, name)| name.clone());
        name.iter().for_each(|name| self.fire_one(now, name));
    }

    fn fire_one(&mut self, now: Timestamp, name: &str) {
        if let Some((at, engine, text)) = self.schedules.remove(name) {
            self.due.remove(&(at, name.to_owned()));
            self.push(now, &engine, Parcel::Own(text), Span(0));
        }
    }

    /// Ids of what a worker could receive now, in the order of sending.
    pub fn receivable(&self, now: Timestamp) -> Vec<u64> {
        self.messages.iter().filter(|(_, m)| !m.in_flight && m.visible <= now).map(|(id, _)| *id).collect()
    }

    /// The next time anything becomes receivable.
    pub fn next_time(&self) -> Option<Timestamp> {
        let messages = self.messages.values().filter(|m| !m.in_flight).map(|m| m.visible);
        messages.chain(self.next_schedule()).min()
    }

    /// Hands the message to a worker, or moves it to the dead letters when it was received too often.
    pub fn receive(&mut self, id: u64) -> Option<Received> {
        let message = self.messages.get_mut(&id)?;
        if message.receives >= self.max_receives {
            let message = self.messages.remove(&id)?;
            self.dead.push((id, message));
            return None;
        }
        message.receives += 1;
        message.in_flight = true;
        let again = match &message.parcel {
            Parcel::Own(text) => Redriven::parse(text),
            Parcel::Event(_) | Parcel::Invalid { .. } => None,
        };
        let engine = message.engine.clone();
        Some(match again {
            Some(letter) => {
                let parcel = Parcel::of_text(&letter.body, letter.sent);
                Received { engine, sent: letter.sent, parcel, letter: Some(letter), again: true }
            }
            None => {
                let (sent, parcel) = (message.sent, message.parcel.clone());
                Received { engine, sent, parcel, letter: None, again: message.receives > 1 }
            }
        })
    }

    /// Done with: deletes it, whoever else may have it.
    pub fn acknowledge(&mut self, id: u64) {
        self.messages.remove(&id);
    }

    /// Not done with: receivable again from then on.
    pub fn give_back(&mut self, id: u64, visible: Timestamp) {
        if let Some(message) = self.messages.get_mut(&id) {
            message.in_flight = false;
            message.visible = visible;
        }
    }

    /// Moves a message to the dead letters at once, as if it had been received too often.
    pub fn bury(&mut self, id: u64) {
        self.dead.extend(self.messages.remove(&id).map(|message| (id, message)));
    }

    /// A dead message as the function on the dead-letter queue gets it.
    pub fn letter(id: u64, message: &Queued) -> DeadLetter {
        DeadLetter {
            engine: message.engine.clone(),
            queue: format!("{}-dead-letters", message.engine),
            message_id: format!("message-{id}"),
            sent: message.sent,
            body: message.parcel.text(),
            receives: i64::from(message.receives),
            reason: None,
        }
    }
}
