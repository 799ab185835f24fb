//! The border between two projects: with two in one installation, each with something of everything, nothing that the one says reaches the other.

mod consents;
mod fields;
mod forgeries;
mod furnished;
mod manifests;
mod messages;
mod requests;

use crate::stand::{Answer, Stand};
use furnished::{Furnished, OTHER, OWN};
use keelway_engine::item::{Item, Key};
use requests::Sent;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What belongs to the other project.
struct Border {
    /// Partitions whose names are hashes.
    hashed: BTreeSet<String>,
}

impl Border {
    fn of(f: &Furnished) -> Self {
        let mut whose: BTreeMap<String, (bool, bool)> = BTreeMap::new();
        for item in f.stand.world.core().table.items() {
            let (text, key) = (format!("{item:?}"), key(item));
            let whose = whose.entry(key.pk).or_default();
            whose.0 |= text.contains(OTHER);
            whose.1 |= text.contains(OWN);
        }
        let hashed = whose.into_iter().filter(|(_, whose)| *whose == (true, false)).map(|(pk, _)| pk).collect();
        Self { hashed }
    }

    /// Whether an item of the other project has this key. The first project that a key names is the one to which it belongs.
    fn owns(&self, key: &Key) -> bool {
        let text = format!("{}#{}", key.pk, key.sk);
        match text.split(['#', '/']).find(|part| [OWN, OTHER].contains(part)) {
            Some(owner) => owner == OTHER,
            None => self.hashed.contains(&key.pk),
        }
    }
}

fn key(item: &Item) -> Key {
    item.key.clone()
}

/// A new message or event that is addressed to the other project.
fn addressed(stand: &Stand, known: &BTreeSet<u64>, published: usize) -> Option<String> {
    fn names(value: &Value) -> bool {
        let is = |(name, value): (&String, &Value)| {
            ["p", "project", "namespace"].contains(&name.as_str()) && value == OTHER || names(value)
        };
        match value {
            Value::Object(members) => members.iter().any(is),
            Value::Array(items) => items.iter().any(names),
            _ => false,
        }
    }
    let core = stand.world.core();
    let messages = core.queue.messages.iter().filter(|(id, _)| !known.contains(id)).map(|(_, message)| message.parcel.text());
    let events = core.bus.log.iter().skip(published).filter(|one| one.entry.detail_type != "dev.keelway.audit");
    let mut all = messages.chain(events.map(|one| one.entry.detail.to_string()));
    let found = all.find(|text| serde_json::from_str(text).is_ok_and(|json: Value| names(&json)));
    found.map(|text| format!("it sent {text}"))
}

/// Sends a request and has the engines work on it; the answer, and what happened in the other project.
async fn ask(stand: &mut Stand, border: &Border, sent: &Sent, header: (&str, &str)) -> (Answer, Option<String>) {
    stand.world.core().table.journal.clear();
    let outgoing = |stand: &Stand| {
        let core = stand.world.core();
        (core.bus.log.len(), core.queue.messages.len())
    };
    let before = outgoing(stand);
    let known: BTreeSet<u64> = stand.world.core().queue.messages.keys().copied().collect();
    let answer = stand.request(sent.request(header)).await;
    let refused = answer.status >= 400 || sent.method == "GET";
    if refused && sent.method != "DELETE" && outgoing(stand) != before {
        return (answer, Some("it was refused, and sent something".into()));
    }
    let sent_there = addressed(stand, &known, before.0);
    if !refused {
        stand.work().await;
    }
    let core = stand.world.core();
    let written: Vec<&Key> = core.table.journal.iter().map(|change| &change.key).filter(|key| border.owns(key)).collect();
    let happened = (!written.is_empty()).then(|| format!("it wrote {written:?}"));
    drop(core);
    (answer, sent_there.or(happened))
}
