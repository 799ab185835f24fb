//! The checks of open executions, for the sweep.

use super::keys::{self, LaneKey};
use super::message::{Address, Message};
use super::{Loaded, Sequences, codec};
use crate::item::Key;
use crate::ports::{PortError, Ports};
use crate::projects;
use crate::protocol::sweep::{OVERDUE, Tick};
use crate::protocol::{Letter, Subject};
use crate::table::Items;
use keelway_domain::sequences::{Execution, Lane, UNANSWERED};
use std::collections::HashSet;

impl<P: Ports> Sequences<P> {
    /// A message to each execution that needs one. Of the executions that wait only for the same lane, the first is enough: driving
    /// the lane serves all of them.
    pub(super) async fn overdue(&self, open: &[Loaded], tick: &mut Tick) -> Result<Vec<Letter>, PortError> {
        let contexts = open.iter().map(|loaded| keys::context(&loaded.x.project, &loaded.x.context));
        let held = open.iter().filter(|loaded| loaded.x.held.is_some());
        let wanted: HashSet<Key> = contexts.chain(held.map(|loaded| projects::keys::project(&loaded.x.project))).collect();
        let wanted: Vec<Key> = wanted.into_iter().collect();
        let items = if wanted.is_empty() { Items::new() } else { self.read(&wanted).await? };
        let mut letters = Vec::new();
        for Loaded { x, .. } in open {
            let flags = codec::context(items.get(&keys::context(&x.project, &x.context))).flags;
            if let Some(message) = Message::of_flags(x, &flags) {
                letters.push(message.letter());
            } else if let Some(at) = x.wake.filter(|at| tick.overdue(Some(*at))) {
                letters.push(x.wake_up(at));
            } else if waits_in_vain(x, tick)
                || (self.limits.polled && x.is_open() && !x.listed)
                || (waits_for_lane(x, tick) && tick.once.insert(LaneKey::of(x).0))
            {
                letters.push(Message::Settle { to: Address::of(x) }.letter());
            } else if self.is_held_differently(x, &items).await? {
                letters.push(Message::Obey { to: Address::of(x) }.letter());
            }
        }
        Ok(letters)
    }
}

/// Whether an open trigger may never have been published.
fn waits_in_vain(x: &Execution, tick: &Tick) -> bool {
    let unanswered = x.is_open() && x.reactions.is_empty() && x.repeated.is_none() && !x.waits_for_approval();
    unanswered && x.sent.is_some_and(|at| at + UNANSWERED < tick.now)
}

/// Whether it has waited for its lane for a while.
fn waits_for_lane(x: &Execution, tick: &Tick) -> bool {
    x.lane == Lane::Wants && x.held.is_none() && x.caused + OVERDUE < tick.now
}
