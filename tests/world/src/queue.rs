//! The queue's twin: visibility, delays, receive counts, dead letters, one-time schedules.

use keelway_domain::time::{Span, Timestamp};
use keelway_engine::message::{Body, Delivery, Message};
use keelway_engine::ports::PortError;
use std::collections::BTreeMap;

/// A message in the queue.
#[derive(Debug, Clone)]
pub struct Queued {
    /// What every delivery of it says; `sent` stays the same.
    pub delivery: Delivery,
    /// Not received before.
    pub visible: Timestamp,
    /// How often it was received.
    pub receives: u32,
    /// Some worker has it.
    pub in_flight: bool,
}

/// The engine's queue and the schedules that end in it.
#[derive(Debug)]
pub struct QueueTwin {
    next: u64,
    /// By id, in the order of sending.
    pub messages: BTreeMap<u64, Queued>,
    /// Received too often.
    pub dead: Vec<(u64, Queued)>,
    /// After so many receives a message is dead.
    pub max_receives: u32,
    schedules: BTreeMap<String, (Timestamp, String)>,
}

/// What one request may carry, in bytes.
const REQUEST_BYTES: usize = 1 << 20;
/// The longest delay SQS takes.
pub const LONGEST_DELAY: Span = Span::minutes(15);
/// How long before its time a schedule fires, so that its imprecision does not matter.
const SCHEDULE_LEAD: Span = Span::minutes(10);

impl Default for QueueTwin {
    fn default() -> Self {
        Self { next: 0, messages: BTreeMap::new(), dead: vec![], max_receives: 10, schedules: BTreeMap::new() }
    }
}

/// What the queue's reader makes of an own message's text.
fn body(text: &str) -> Body {
    match serde_json::from_str::<Message>(text) {
        Ok(message) => Body::Own(message),
        Err(e) => Body::Invalid { reason: e.to_string(), text: text.to_owned() },
    }
}

impl QueueTwin {
    /// Puts a message into the queue and returns its id.
    pub fn push(&mut self, sent: Timestamp, body: Body, delay: Span) -> u64 {
        self.next += 1;
        let delivery = Delivery { sent, body };
        self.messages.insert(self.next, Queued { delivery, visible: sent + delay, receives: 0, in_flight: false });
        self.next
    }

    /// `SendMessageBatch`; when `busy`, the last half of the entries fails.
    pub fn send(&mut self, now: Timestamp, bodies: &[String], busy: bool) -> Result<Vec<Option<String>>, PortError> {
        if bodies.is_empty() || bodies.len() > 10 || bodies.iter().map(String::len).sum::<usize>() > REQUEST_BYTES {
            let reason = format!("{} messages: 1 to 10 of 1 MB together are allowed", bodies.len());
            return Err(PortError::Refused { request: "SendMessageBatch", reason });
        }
        let taken = if busy { bodies.len() / 2 } else { bodies.len() };
        for text in &bodies[..taken] {
            self.push(now, body(text), Span(0));
        }
        Ok((0..bodies.len()).map(|i| (i >= taken).then(|| "InternalError".to_owned())).collect())
    }

    /// A delayed message within 15 minutes; a one-time schedule, by name, beyond. The sender works out the delay by its own
    /// clock, which is `skew` ahead.
    pub fn send_at(&mut self, now: Timestamp, skew: Span, name: &str, text: &str, at: Timestamp) -> Result<(), PortError> {
        if text.len() > REQUEST_BYTES {
            let reason = format!("{} bytes: {REQUEST_BYTES} are allowed", text.len());
            return Err(PortError::Refused { request: "SendMessage", reason });
        }
        let delay = at - (now + skew);
        if delay <= LONGEST_DELAY {
            self.push(now, body(text), Span(delay.0.max(0)));
            return Ok(());
        }
        if name.is_empty() || name.len() > 64 {
            return Err(PortError::Refused {
                request: "CreateSchedule",
                reason: format!("name {name:?} has not 1 to 64 characters"),
            });
        }
        self.schedules.entry(name.to_owned()).or_insert_with(|| (at - SCHEDULE_LEAD, text.to_owned()));
        Ok(())
    }

    /// Lets every schedule that is due put its message into the queue.
    pub fn fire(&mut self, now: Timestamp) {
        let due: Vec<String> = self.schedules.iter().filter(|(_, (at, _))| *at <= now).map(|(name, _)| name.clone()).collect();
        for name in due {
            if let Some((_, text)) = self.schedules.remove(&name) {
                self.push(now, body(&text), Span(0));
            }
        }
    }

    /// Ids of what a worker could receive now, in the order of sending.
    pub fn receivable(&self, now: Timestamp) -> Vec<u64> {
        self.messages.iter().filter(|(_, m)| !m.in_flight && m.visible <= now).map(|(id, _)| *id).collect()
    }

    /// The next time anything becomes receivable.
    pub fn next_time(&self) -> Option<Timestamp> {
        let messages = self.messages.values().filter(|m| !m.in_flight).map(|m| m.visible);
        messages.chain(self.schedules.values().map(|(at, _)| *at)).min()
    }

    /// Hands the message to a worker, or moves it to the dead letters when it was received too often.
    pub fn receive(&mut self, id: u64) -> Option<Delivery> {
        let message = self.messages.get_mut(&id)?;
        if message.receives >= self.max_receives {
            let message = self.messages.remove(&id)?;
            self.dead.push((id, message));
            return None;
        }
        message.receives += 1;
        message.in_flight = true;
        Some(message.delivery.clone())
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
}
