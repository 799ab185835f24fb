//! A counter as the protocol sees it: its key, its attributes, its messages.

use super::core::{Counter, End, Nudge, Record};
use super::{Message, NAME};
use keelway_domain::event::CloudEvent;
use keelway_domain::ids::RecordId;
use keelway_domain::names::Context;
use keelway_domain::time::Timestamp;
use keelway_engine::item::{Attrs, Item, Key};
use keelway_engine::keys;
use keelway_engine::ports::PortError;
use keelway_engine::protocol::{Letter, Place, Subject};
use std::convert::Infallible;

/// Where a counter is.
pub fn key(name: &str) -> Key {
    Key::new(format!("N#{name}"), keys::MAIN)
}

impl Subject for Counter {
    type Send = Nudge;
    type Duty = Infallible;

    const PART: &'static str = NAME;
    const FORMAT: i64 = 1;

    fn key(&self) -> Key {
        key(&self.name)
    }
    fn decode(item: &Item) -> Result<Self, PortError> {
        read(item).ok_or_else(|| PortError::Refused { request: "decode", reason: format!("{} is no counter", item.key) })
    }
    /// An ended counter stays for ever, so `expires` is not used: an old input must not begin another one.
    fn attributes(&self, _expires: Timestamp) -> Attrs {
        let seen: Vec<u8> = self.seen.iter().flat_map(|id| id.to_be_bytes()).collect();
        let end = |end| if end == End::Full { "full" } else { "late" };
        let item = Item::new(self.key())
            .with("c", self.context.as_str())
            .with("be", self.began.0)
            .with("n", self.count)
            .with("li", self.limit)
            .with("de", self.deadline.0)
            .with_some("pe", self.peer.as_deref())
            .with("se", seen)
            .with_some("en", self.end.map(end))
            .with_some("re", self.record.map(|id| keys::record_sort(&id)));
        item.attrs
    }
    fn place(&self) -> Place {
        Place { scope: self.name.clone(), since: self.began, name: self.name.clone() }
    }
    fn record(&self) -> Option<RecordId> {
        self.record
    }
    fn wake(&self) -> Option<Timestamp> {
        self.end.is_none().then_some(self.deadline)
    }
    fn over(&self) -> bool {
        self.end.is_some()
    }
    fn events(&self, id: &RecordId, record: &Record) -> Vec<CloudEvent> {
        record.events(id, &self.context)
    }
    fn letter(&self, id: &RecordId, _n: usize, what: &Nudge) -> Letter {
        Message::Nudge { to: what.peer.clone(), from: id.uuid().to_string(), context: self.context.clone() }.letter()
    }
    fn wake_up(&self, at: Timestamp) -> Letter {
        Message::Wake { to: self.name.clone(), at }.letter()
    }
}

fn read(item: &Item) -> Option<Counter> {
    let time = |name: &str| item.number(name).map(Timestamp);
    let ids = item.bytes("se").as_chunks().0.iter();
    Some(Counter {
        name: item.key.pk.strip_prefix("N#")?.to_owned(),
        context: Context::new(item.text("c")?).ok()?,
        began: time("be")?,
        count: item.number("n")?,
        limit: item.number("li")?,
        deadline: time("de")?,
        peer: item.text("pe").map(str::to_owned),
        seen: ids.map(|bytes| u64::from_be_bytes(*bytes)).collect(),
        end: item.text("en").map(|end| if end == "full" { End::Full } else { End::Late }),
        record: item.text("re").and_then(keys::record_id),
    })
}
