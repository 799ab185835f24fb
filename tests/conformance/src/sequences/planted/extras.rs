//! Windows, schedules, retries and remediations: what is noted of them, and mistakes.

use super::{Mistake, Plant, is_execution};
use keelway_domain::ids::{SubjectId, event_id};
use keelway_domain::stored::Stored;
use keelway_domain::time::Timestamp;
use keelway_engine::item::{Attr, Item, Key};
use keelway_engine::ports::{Query, Write};
use keelway_engine::protocol::record;
use keelway_engine::schedules;
use keelway_engine::sequences::{Message, keys};
use serde_json::Value;

pub(super) fn is_schedule(key: &Key) -> bool {
    key.pk.starts_with("SC#") && key.sk.starts_with(schedules::keys::SCHEDULE)
}

fn is_project(key: &Key) -> bool {
    key.pk.starts_with("P#") && key.sk == keys::MAIN
}

/// A record whose payload says nothing of the actions that were tried.
pub(super) fn forget_actions(item: &mut Item) {
    let Some(mut json) =
        record::text(item).filter(|_| item.key.sk.starts_with("T#")).and_then(|text| serde_json::from_str::<Value>(&text).ok())
    else {
        return;
    };
    if let Some(base) = json["b"].as_object_mut() {
        base.remove("get-action");
        item.attrs.insert("j".into(), Attr::S(json.to_string()));
    }
}

impl Mistake {
    /// Notes what a retry and a schedule's trigger are, and since when they count.
    pub(super) fn note_handed_in(&self, message: &Message, sent: Timestamp) {
        let (to, at) = match message {
            Message::Retry { to, .. } => (to, sent),
            Message::Fire { to, firing, .. } => (to, firing.at),
            _ => return,
        };
        let mut seen = self.seen();
        seen.sent.entry(event_id(to.execution, "triggered").to_string()).or_default().insert(at.0);
        seen.handed_in.insert(message.to_body());
    }

    /// Notes which shipyard is in force.
    pub(super) fn note_revision(&self, item: &Item) {
        if is_project(&item.key) {
            self.state().revision = item.text("rev").map(str::to_owned);
        }
    }

    /// Notes when a schedule's runs were looked at.
    pub(super) fn note_runs(&self, query: &Query) {
        if matches!(self.state().message, Some(Message::Due { .. })) && query.partition.starts_with("C#") {
            let now = self.inner.core().request_count();
            self.state().runs.get_or_insert(now);
        }
    }

    /// Notes what a write was decided by.
    pub(super) fn note_write(&self, write: &Write) {
        self.note_lock(write);
        let (key, version) = match write {
            Write::Put(item, _) => (&item.key, item.version()),
            Write::Update { key, set, .. } => match set.get("v") {
                Some(Attr::N(version)) => (key, *version),
                _ => return,
            },
            _ => return,
        };
        if is_schedule(key)
            && let Some(looked) = self.state().runs
        {
            let mut seen = self.seen();
            let first = seen.runs.entry((key.clone(), version)).or_insert(looked);
            *first = looked.min(*first);
        }
        if is_execution(key) && self.seen().judges {
            let revision = self.state().revision.clone();
            self.seen().judged.entry((key.clone(), version)).or_default().extend(revision);
        }
    }

    /// The project as whoever gives an execution its turn reads it, if that knows no other shipyard than the first.
    pub(super) fn outdated(&self, item: Item) -> Item {
        let granted = matches!(self.state().message, Some(Message::Granted { .. } | Message::Wake { .. }));
        if granted && is_project(&item.key) { item.with("rev", "r1") } else { item }
    }

    /// Whether a mistaken engine does not send this.
    pub(super) fn is_unsaid(&self, body: &str) -> bool {
        let message = self.state().message.clone();
        match self.plant {
            Some(Plant::HeldNotTold) => matches!(message, Some(Message::Windows { .. })),
            // What it has begun itself is the older one.
            Some(Plant::OlderStays) => {
                let begun = |to| self.state().begun.contains(&keys::execution(to));
                matches!(Message::from_json(body), Ok(Message::Supersede { ref to, .. }) if begun(to))
            }
            // The worker that commits sends them; whoever comes after it does not.
            Some(Plant::FiringForgotten) => body.contains("\"fire\"") && self.settles(),
            _ => false,
        }
    }

    /// What a mistaken engine sends instead.
    pub(super) fn resaid(&self, body: &str) -> String {
        let salted = |id: SubjectId, salt: u64| SubjectId(id.0 ^ (salt | 1));
        match (self.plant, Message::from_json(body)) {
            (Some(Plant::FiredByMessage), Ok(Message::Fire { mut to, schedule, mut firing })) => {
                to.execution = salted(to.execution, self.state().cause);
                firing.execution = to.execution;
                Message::Fire { to, schedule, firing }.to_body()
            }
            (Some(Plant::RetriedByRequest), Ok(Message::Retry { mut to, of, from, by })) => {
                to.execution = salted(to.execution, self.inner.core().request_count() << 1);
                Message::Retry { to, of, from, by }.to_body()
            }
            (Some(Plant::AskNumberConstant), Ok(Message::Granted { to, payload, .. })) => {
                Message::Granted { to, ask: 0, payload }.to_body()
            }
            _ => body.to_owned(),
        }
    }

    /// Whether this wakes an execution that a window holds back.
    pub(super) fn wakes_held(&self, body: &str) -> bool {
        let Ok(Message::Wake { to, .. }) = Message::from_json(body) else { return false };
        self.inner.core().table.peek(&keys::execution(&to)).is_some_and(|item| item.text("hd").is_some())
    }
}
