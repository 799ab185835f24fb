//! Turns a decision into a commit: the writes together with the execution.

use super::birth::birth_of;
use super::codec::LoadedContext;
use super::keys::{self, LaneKey};
use super::message::Address;
use super::{Loaded, Sequences, codec, history, lane, standing};
use crate::item::Item;
use crate::ports::{Condition, PortError, Ports, Write};
use crate::protocol::{Change, Effect, create};
use keelway_domain::ids::{ExecutionId, RecordId};
use keelway_domain::sequences::{Duty, Entrance, Execution, FollowUp, Lane, Record, Transition, born, same_lane};

/// The most follow-ups created in their parent's commit: a transaction has no room for more; the others start by message.
const BORN_IN_COMMIT: usize = 45;

impl<P: Ports> Sequences<P> {
    /// The commit of a transition; `None`: the lane does not match the execution, so the loaded state is old.
    pub(super) async fn change(&self, old: &Loaded, transition: Transition) -> Result<Option<Change<Execution>>, PortError> {
        let mut change = Change::new(Some(&old.x), transition.next, transition.record);
        if change.next.outcome.is_some() {
            // It may exist before the end does: it is read only where no execution exists.
            change.items.push(history::tombstone(&change.next.project, change.next.id));
        }
        let here: Vec<(usize, FollowUp)> = match &change.record {
            Some(record) => same_lane(&change.next, &record.sends).map(|(n, follow_up)| (n, follow_up.clone())).collect(),
            None => vec![],
        };
        if here.is_empty() || self.bear(old, &mut change, &here).await? { Ok(Some(change)) } else { Ok(None) }
    }

    /// Follow-ups that need this execution's own lane are created in the same commit. If the execution holds the lane, the first of
    /// them gets it in the same transaction, so that no other execution can take it in between; the others enter the queue.
    async fn bear(&self, old: &Loaded, change: &mut Change<Execution>, here: &[(usize, FollowUp)]) -> Result<bool, PortError> {
        let next = change.next.clone();
        let Some((id, record)) = next.record.zip(change.record.clone()) else { return Ok(true) };
        let lane = LaneKey::of(&next);
        let of_context = keys::context(&next.project, &next.context);
        let items = self.read(&[of_context.clone(), lane.lock()]).await?;
        let context = codec::context(items.get(&of_context));
        let children = self.children(&next, (&id, &record), here, &context).await?;
        if context.version > 0 && !children.is_empty() {
            change.with.push(codec::count_executions(of_context, &context, children.len()));
        }
        let holds = old.x.lane == Lane::Holds && next.lane == Lane::None;
        for (place, (n, child)) in children.iter().enumerate() {
            let expires = self.ports.now() + self.limits.retention;
            change.with.push(create(child, expires));
            change.effects.retain(|effect| *effect != Effect::Send(*n));
            if holds && place == 0 {
                let lock = items.get(&lane.lock());
                if !lock.is_some_and(|lock| lane::is_held_by(lock, &old.x)) {
                    return Ok(false);
                }
                let last = lock.and_then(standing::Last::read).map(|last| last.outcome.at);
                let left = standing::of(&next, last);
                change.with.push(lane::lock_write(&lane, lock.map_or(0, Item::version), Some(child), left));
                change.effects.retain(|effect| *effect != Effect::Duty(Duty::Drive));
                change.effects.push(Effect::Duty(Duty::Grant(child.id)));
            } else {
                change.with.push(Write::Put(lane::entry_item(child), Condition::Always));
            }
        }
        Ok(true)
    }

    /// The follow-ups that can be created in the commit. A follow-up that ends before it begins, as one too many for its context
    /// does, or is held back, is left to the message, because its events must be published.
    async fn children(
        &self,
        parent: &Execution,
        (id, record): (&RecordId, &Record),
        here: &[(usize, FollowUp)],
        context: &LoadedContext,
    ) -> Result<Vec<(usize, Execution)>, PortError> {
        let mut children = Vec::new();
        let room = self.limits.max_executions.saturating_sub(context.executions) as usize;
        for (n, follow_up) in here.iter().take(room.min(BORN_IN_COMMIT)) {
            let birth = birth_of(parent, (id, record), follow_up, Default::default());
            let shipyard = self.projects().shipyard(&parent.project, &follow_up.revision).await?;
            let stage = shipyard.stage(follow_up.stage.as_str());
            let Some(sequence) = stage.and_then(|stage| stage.sequence(follow_up.sequence.as_str())) else { continue };
            // The revision of a follow-up is the one in force.
            let (flags, now) = (&context.flags, self.ports.now());
            let child = born(&birth, &Entrance { sequence: &sequence, shipyard: &shipyard, flags, now }).next;
            if child.lane == Lane::Wants && child.held.is_none() {
                children.push((*n, child));
            }
        }
        Ok(children)
    }

    /// The address of a grant to one of the execution's follow-ups.
    pub(super) fn child(&self, parent: &Execution, id: ExecutionId) -> Address {
        Address { execution: id, ..Address::of(parent) }
    }
}
