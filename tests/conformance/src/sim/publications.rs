//! Repetition is bounded: an event is published by deliveries of the message that made its record, once by each. Nobody else
//! publishes it, but whom the scenario allows to repeat it. A record that a state owes is published by whoever finds the note.

use keelway_domain::cause::Cause;
use keelway_domain::record::Record;
use keelway_engine::keys::record_id;
use keelway_engine::protocol::record;
use keelway_world::bus::Publication;
use keelway_world::queue::{Parcel, Received};
use keelway_world::table::Change;
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// Which messages made which events.
#[derive(Default)]
pub(super) struct Makers {
    by_event: HashMap<String, Vec<u64>>,
    by_record: HashMap<String, Vec<String>>,
    owed: HashSet<String>,
}

/// What one delivery has published, and with how many requests.
pub(super) struct Published {
    by: HashMap<String, usize>,
    tries: usize,
}

impl Published {
    /// By a delivery. The next one is another.
    pub fn by_delivery() -> Self {
        Self { by: HashMap::new(), tries: 1 }
    }

    /// By a client's request, whose function tries once more what has failed: the second try is what a second delivery is.
    pub fn by_request() -> Self {
        Self { tries: 2, ..Self::by_delivery() }
    }
}

/// A message as the engines see it as a cause: by itself, and, for one of their own, together with its copies.
pub(super) fn causes_of(received: &Received) -> Vec<u64> {
    match &received.parcel {
        Parcel::Event(event) => vec![Cause::of(event.to_bytes().as_bytes(), received.sent).id],
        Parcel::Own(text) => [Cause::of(text.as_bytes(), received.sent), Cause::of_any_copy(text.as_bytes(), received.sent)]
            .map(|cause| cause.id)
            .to_vec(),
        Parcel::Invalid { text, .. } => vec![Cause::of(text.as_bytes(), received.sent).id],
    }
}

impl Makers {
    /// Learns from records that were written.
    pub fn learn(&mut self, changes: &[Change]) {
        for item in changes.iter().filter_map(|change| change.new.as_ref()) {
            if let Some(record) = item.text("ow") {
                self.owed.extend(self.by_record.get(record).cloned().unwrap_or_default());
            }
            let Some(id) = record_id(&item.key.sk) else { continue };
            let Some(record) = record::text(item).and_then(|text| serde_json::from_str::<Record<Value>>(&text).ok()) else {
                continue;
            };
            for draft in record.events {
                let event = draft.id.unwrap_or_else(|| id.uuid().to_string());
                self.by_record.entry(item.key.sk.clone()).or_default().push(event.clone());
                self.by_event.entry(event).or_default().push(record.made_by);
            }
        }
    }

    fn made(&self, event: &str, cause: u64) -> bool {
        self.owed.contains(event) || self.by_event.get(event).is_some_and(|makers| makers.contains(&cause))
    }
}

/// What a message published in one request. `twice`: the client may have repeated the request.
pub(super) fn check(
    makers: &Makers,
    causes: &[u64],
    published: &mut Published,
    (request, twice): (&[Publication], bool),
    may_repeat: impl Fn(u64, &str) -> bool,
) -> Result<(), String> {
    let mut now: HashMap<&str, usize> = HashMap::new();
    for publication in request {
        let id = publication.id.as_str();
        let what = format!("{} {id}", publication.entry.detail_type);
        if !causes.iter().any(|cause| makers.made(id, *cause) || may_repeat(*cause, id)) {
            return Err(format!("{what} was published by a message that did not cause it"));
        }
        let times = now.entry(id).or_default();
        *times += 1;
        if *times > if twice { 2 } else { 1 } || published.by.get(id).is_some_and(|before| *before >= published.tries) {
            return Err(format!("{what} was published more than once by one delivery"));
        }
    }
    now.into_keys().for_each(|id| *published.by.entry(id.to_owned()).or_default() += 1);
    Ok(())
}
