//! Mistakes of the sweep, of what is published, and of what is forgotten.

use super::{Mistake, Plant, is_execution};
use crate::sequences::versions;
use keelway_domain::event::CloudEvent;
use keelway_domain::names::Context;
use keelway_domain::sequences::{Bare, Execution, Record};
use keelway_engine::item::{Item, Key};
use keelway_engine::keys::record_id;
use keelway_engine::ports::{BusEntry, Write};
use keelway_engine::protocol::record;
use keelway_engine::sequences::{Message, keys};

impl Mistake {
    /// An item as a mistaken sweep sees it.
    pub(super) fn swept(&self, mut item: Item) -> Item {
        let sweeps = self.state().sweeps;
        match self.plant {
            Some(Plant::SweepIgnoresFlags) if sweeps && item.key.pk.starts_with("C#") && item.key.sk == "!" => {
                item.attrs.retain(|name, _| !["pa", "ps", "ea", "es", "ep"].contains(&&**name));
            }
            Some(Plant::SweepIgnoresTriggers) if sweeps && item.number("tt").is_some() => return item.with("tt", i64::MAX / 2),
            Some(Plant::SweepIgnoresLanes) if sweeps && item.text("ky") == Some("w") => return item.with("ky", "n"),
            Some(Plant::RepeatedForEver)
                if is_execution(&item.key) && (sweeps || matches!(self.state().message, Some(Message::Settle { .. }))) =>
            {
                drop(item.attrs.remove("rp"));
            }
            _ => {}
        }
        item
    }

    /// A write that a mistaken engine would not make.
    pub(super) fn forgets(&self, write: &Write) -> bool {
        match (self.plant, write) {
            (Some(Plant::LetterForgotten), Write::Put(item, _)) => item.key.pk == "LD",
            (Some(Plant::NoTombstone), Write::Put(item, _)) => item.key.pk.starts_with("Z#"),
            (Some(Plant::ProlongForgotten), Write::Update { set, .. }) => set.len() == 1 && set.contains_key("ttl"),
            (Some(Plant::DecisionLost), Write::Update { key, .. }) => {
                is_execution(key) && matches!(self.state().message, Some(Message::Decide { .. }))
            }
            _ => false,
        }
    }

    /// The entry of an execution under the time that its item has.
    pub(super) fn reaccept(&self, entry: &mut Item) {
        let mut parts: Vec<String> = entry.key.sk.split('#').map(str::to_owned).collect();
        let (Some(context), [_, _, at, id, _]) = (entry.text("c"), parts.as_mut_slice()) else { return };
        let project = entry.key.pk.split('#').nth(1).unwrap_or_default();
        let key = Key::new(format!("C#{project}#{context}"), format!("X#{id}"));
        let accepted = self.inner.core().table.peek(&key).and_then(|item| item.number("ac"));
        if let Some(accepted) = accepted {
            at.replace_range(..13.min(at.len()), &format!("{accepted:013}"));
            entry.key.sk = parts.join("#");
        }
    }
}

impl Mistake {
    /// An item as the earlier version sees it.
    pub(super) fn as_earlier(&self, item: Item) -> Item {
        let seen = versions::read(item.clone(), is_execution(&item.key));
        if let Some(rollout) = self.rollout.as_ref().filter(|_| seen != item) {
            rollout.wait();
        }
        seen
    }

    /// Whether an event's item follows a record with an answer, in one message.
    pub(super) fn is_taken_for_kept(&self, item: &Item) -> bool {
        let has_answer = |record: &Record| Bare::all(record).iter().any(|answer| answer.finished);
        let answered = record::decode::<Execution>(Some(item)).as_ref().is_some_and(has_answer);
        let mut state = self.state();
        state.answered |= answered;
        state.answered && item.key.sk.starts_with(keys::EVENT)
    }
}

/// The events of records that are only about to be committed.
pub(super) fn published_early(puts: &[Item]) -> Vec<BusEntry> {
    let events = puts.iter().filter_map(|item| {
        let id = record_id(&item.key.sk)?;
        let record = record::decode::<Execution>(Some(item))?;
        let context = Context::new(item.key.pk.split('#').nth(2)?).ok()?;
        Some(record.events(&id, &context))
    });
    let entry =
        |event: CloudEvent| BusEntry { source: event.source.clone(), detail_type: event.ty.clone(), detail: event.to_bytes() };
    events.flatten().map(entry).collect()
}
