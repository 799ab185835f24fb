//! Invariants on lanes: whoever stood in a queue when it was looked at goes before whoever is behind it, or not in it at all; and
//! the place in a queue goes by when the outside trigger at the root was sent.

use super::check::{Watch, decode};
use super::plan::PROJECT;
use super::planted::Seen;
use keelway_domain::sequences::{Class, Execution, Lane};
use keelway_engine::item::{Item, Key};
use keelway_engine::sequences::keys::LaneKey;
use keelway_world::table::{Change, Table};
use std::sync::Arc;

/// The execution a lock names.
fn holder(item: &Option<Arc<Item>>) -> Option<Key> {
    let item = item.as_ref()?;
    let context = item.text("hc")?;
    Some(Key::new(format!("C#{PROJECT}#{context}"), format!("X#{}", item.text("h")?)))
}

/// The execution that stands in a queue, if this is its present request.
fn waiting(entry: &Item, table: &Table) -> Option<Arc<Execution>> {
    let id = entry.key.sk.split('#').nth(3)?;
    let key = Key::new(format!("C#{PROJECT}#{}", entry.text("c")?), format!("X#{id}"));
    let x = decode(table.peek(&key)?).ok()?;
    (x.lane == Lane::Wants && LaneKey::of(&x).entry(&x, x.ask) == entry.key).then_some(x)
}

fn rank(x: &Execution) -> impl Ord {
    (x.class, x.accepted, x.caused, x.place, x.id)
}

impl Watch {
    pub(super) fn entry(&mut self, change: &Change, time: u64) {
        if change.old.is_none() && change.new.is_some() {
            self.entered.insert(change.key.clone(), time);
        }
    }

    /// A lane was given to somebody.
    pub(super) fn order(&self, change: &Change, table: &Table, seen: &Seen) -> Result<(), String> {
        let (old, new) = (holder(&change.old), holder(&change.new));
        let Some(taker) = new.filter(|new| old.as_ref() != Some(new)) else { return Ok(()) };
        let version = change.new.as_ref().map_or(0, |item| item.version());
        let Some(looked) = seen.looks.get(&(change.key.pk.clone(), version)) else { return Ok(()) };
        // One that is not visible yet has just been created.
        let Some(y) = table.peek(&taker).and_then(|item| decode(item).ok()) else { return Ok(()) };
        let of_holder = |parent| old.as_ref().is_some_and(|old| old.sk == format!("X#{parent}"));
        if y.class == Class::FollowUp && y.parent.is_some_and(of_holder) {
            return Ok(());
        }
        let stood = self.entered.contains_key(&LaneKey::of(&y).entry(&y, y.ask));
        for entry in table.partition(&change.key.pk).filter(|item| item.key.sk.starts_with("Q#")) {
            let was_there = self.entered.get(&entry.key).is_some_and(|entered| entered < looked);
            let Some(z) = waiting(entry, table).filter(|z| was_there && z.id != y.id) else { continue };
            // Windows held it back when the queue was looked at: it is passed over.
            let freed = self.freeze.freed.get(&Key::new(format!("C#{PROJECT}#{}", z.context), format!("X#{}", z.id)));
            if z.held.is_some() || freed.is_some_and(|freed| freed >= looked) {
                continue;
            }
            if !stood {
                return Err(format!("{} took a free lane though {} stood in its queue", y.id, z.id));
            }
            if rank(&z) < rank(&y) {
                return Err(format!("{} got the lane ahead of {}, which stood in the queue before it: {y:?} {z:?}", y.id, z.id));
            }
        }
        Ok(())
    }

    /// An execution counts as accepted when the outside trigger at its root was sent, for ever.
    pub(super) fn acceptance(&self, change: &Change, table: &Table, seen: &Seen) -> Result<(), String> {
        let Some(x) = change.new.as_ref().map(decode).transpose()? else { return Ok(()) };
        if let Some(old) = change.old.as_ref().map(decode).transpose()? {
            let same = old.accepted == x.accepted;
            return if same { Ok(()) } else { Err(format!("{} is accepted anew: {old:?} became {x:?}", x.id)) };
        }
        // A retry is an outside trigger, too.
        let parent = x.parent.filter(|_| x.class == Class::FollowUp).map(|id| Key::new(change.key.pk.as_str(), format!("X#{id}")));
        match parent {
            Some(parent) => match table.peek(&parent).map(decode).transpose()? {
                Some(parent) if parent.accepted != x.accepted => Err(format!("{} has another acceptance than its parent", x.id)),
                _ => Ok(()),
            },
            None => {
                let sent = seen.sent.get(&x.trigger_id);
                let known = sent.is_some_and(|sent| sent.contains(&x.accepted.0));
                if known { Ok(()) } else { Err(format!("{} was accepted when nothing was sent: {x:?}, {sent:?}", x.id)) }
            }
        }
    }
}
