//! Committing a transition and doing what a committed state owes.

use super::Engine;
use super::codec::{self, Frame, Loaded, address};
use super::history;
use super::lane;
use crate::item::{Item, Key};
use crate::keys::LaneKey;
use crate::message::{Address, Message};
use crate::ports::{PortError, Ports, Transacted, Write, Written};
use crate::table;
use keelway_domain::ids::RecordId;
use keelway_domain::sequences::{
    Birth, Class, Effect, Execution, FollowUp, Input, Lane, Record, Transition, born, fresh, owed, same_lane,
};
use keelway_domain::shipyard::Sequence;
use keelway_domain::time::{Span, Timestamp};

/// Clocks of functions differ by less than this.
const SKEW: Span = Span::seconds(60);
/// Follow-ups born in their parent's commit: a transaction has room for so many, the others start by message.
const BORN_IN_COMMIT: usize = 45;

/// What a commit is made of besides the transition.
#[derive(Default)]
pub(super) struct Recorded {
    /// Records to write before the commit: the input event, and what else it needs.
    pub items: Vec<Item>,
    /// Keys to delete with them.
    pub deletes: Vec<Key>,
}

impl<P: Ports> Engine<P> {
    /// Records, commits, and does what the new state owes. `false`: somebody else changed the execution first; load again.
    pub(super) async fn commit(
        &self,
        loaded: &Loaded,
        sequence: &Sequence,
        transition: Transition,
        recorded: Recorded,
    ) -> Result<bool, PortError> {
        let now = self.ports.now();
        let next = &transition.next;
        let frame = Frame { tasks: &sequence.tasks, retention: self.limits.retention, now };
        let mut items = recorded.items;
        items.extend(self.record_items(next, transition.record.as_ref()));
        let entry_deleted = !recorded.deletes.is_empty();
        table::record(&self.ports, items, recorded.deletes).await?;
        let update = frame.update(loaded, next);
        let children = self.children(&loaded.x, next, transition.record.as_ref()).await?;
        let done = if children.is_empty() {
            self.ports.write(&update).await? == Written::Done
        } else {
            let mut writes = vec![update];
            writes.extend(children.iter().flat_map(|child| child.writes.clone()));
            self.ports.transact(&writes).await? == Transacted::Done
        };
        if !done {
            return Ok(false);
        }
        if loaded.x.lane == Lane::Wants && next.lane != Lane::Wants && !entry_deleted {
            // Nobody wants this entry any more; left in the queue it would be in the next hand-over's way.
            table::record(&self.ports, vec![], vec![LaneKey::of(&loaded.x).entry(&loaded.x)]).await?;
        }
        tracing::debug!(execution = %next.id, task = next.task, lane = ?next.lane, outcome = ?next.outcome, "committed");
        let born_here = |n: usize| children.iter().any(|child| child.n == n);
        let effects = fresh(Some(&loaded.x), next, transition.record.as_ref(), born_here);
        self.perform(next, transition.record.as_ref(), &effects).await?;
        Ok(true)
    }

    /// The record of a transition, and the tombstone of an execution that ends with it. The tombstone may be there before the end
    /// is: it is looked at only where no execution is.
    pub(super) fn record_items(&self, next: &Execution, record: Option<&Record>) -> Vec<Item> {
        let tombstone = next.outcome.map(|_| history::tombstone(&next.project, next.id));
        self.transition_record(next, record).into_iter().chain(tombstone).collect()
    }

    fn transition_record(&self, next: &Execution, record: Option<&Record>) -> Option<Item> {
        let (id, record) = next.record.zip(record)?;
        Some(history::record(&self.limits, &next.project, &next.context, &id, record, self.ports.now()))
    }

    /// The tombstone of an execution that was over when it was born. Before the execution exists it would say "was here" of one that
    /// a crash kept from ever being; so it follows, and whoever settles the execution sees to it again.
    async fn bury(&self, x: &Execution) -> Result<(), PortError> {
        if x.outcome.is_none() || x.began.is_some() {
            return Ok(());
        }
        table::record(&self.ports, vec![history::tombstone(&x.project, x.id)], vec![]).await
    }

    /// Follow-ups that need this execution's own lane are born in the same commit and stand in its queue before it is given back.
    async fn children(&self, old: &Execution, next: &Execution, record: Option<&Record>) -> Result<Vec<Child>, PortError> {
        let Some((record, id)) = record.zip(next.record) else { return Ok(vec![]) };
        let here: Vec<(usize, &FollowUp)> = same_lane(next, &record.follow_ups).collect();
        if here.is_empty() {
            return Ok(vec![]);
        }
        let flags = self.context(&old.project, &old.context).await?.flags;
        let mut children = Vec::new();
        for (n, follow_up) in here.into_iter().take(BORN_IN_COMMIT) {
            let shipyard = self.shipyard(&next.project, &follow_up.revision).await?;
            let Some(sequence) =
                shipyard.stage(follow_up.stage.as_str()).and_then(|stage| stage.sequence(follow_up.sequence.as_str()))
            else {
                continue;
            };
            let birth = birth_of(next, (&id, record), follow_up);
            let transition = born(&birth, &flags, &sequence, self.ports.now());
            // One that is over before it began, or held back, is left to the message: its events must be published.
            if transition.next.lane != Lane::Wants {
                continue;
            }
            let frame = Frame { tasks: &sequence.tasks, retention: self.limits.retention, now: self.ports.now() };
            let entry = Write::Put(lane::entry(&transition.next), crate::ports::Condition::Always);
            children.push(Child { n, writes: vec![frame.create(&transition.next), entry] });
        }
        Ok(children)
    }

    /// Does everything a state owes; safe to do at any time.
    pub(super) async fn settle(&self, loaded: &Loaded) -> Result<(), PortError> {
        self.bury(&loaded.x).await?;
        let record = self.record(&loaded.x).await?;
        let effects = owed(&loaded.x, record.as_ref());
        self.perform(&loaded.x, record.as_ref(), &effects).await
    }

    /// Settles on behalf of an input that was absorbed before. `until`: no record from this one back can have absorbed it. `true`:
    /// one had.
    pub(super) async fn settle_for(&self, loaded: &Loaded, cause: Option<u64>, until: Option<RecordId>) -> Result<bool, PortError> {
        let absorber = self.absorber(&loaded.x, cause, until, |_| false).await?;
        if let Some((id, record)) = &absorber {
            self.publish_older(&loaded.x, id, record).await?;
        }
        self.settle(loaded).await?;
        Ok(absorber.is_some())
    }

    /// A wake-up that no longer matches the state. Every execution leaves one behind, so it may repeat only what it did itself: the
    /// commit it led to, if there was one, is not older than its time.
    pub(super) async fn settle_wake(&self, loaded: &Loaded, at: Timestamp) -> Result<(), PortError> {
        let x = &loaded.x;
        let older = |record: &Record| record.events.iter().any(|draft| draft.time + SKEW < at);
        if let Some((id, record)) = self.absorber(x, Input::Wake(at).cause(), None, older).await? {
            self.publish_older(x, &id, &record).await?;
            return self.settle(loaded).await;
        }
        // It may have been this message that armed the next one, and stopped before sending it.
        match x.wake.filter(|wake| x.outcome.is_none() && *wake > at) {
            Some(wake) => self.perform(x, None, &[Effect::Wake(wake)]).await,
            None => Ok(()),
        }
    }

    /// The record that absorbed an input, looked for from the newest back to `until` (without it) or one for which `last` holds.
    async fn absorber(
        &self,
        x: &Execution,
        cause: Option<u64>,
        until: Option<RecordId>,
        last: impl Fn(&Record) -> bool,
    ) -> Result<Option<(RecordId, Record)>, PortError> {
        let Some(cause) = cause else { return Ok(None) };
        let mut next = x.record;
        while let Some(id) = next.filter(|id| Some(*id) != until) {
            let Some(record) = self.record_of(&x.project, &x.context, &id).await? else { break };
            if record.absorbed.contains(&cause) {
                return Ok(Some((id, record)));
            }
            next = record.previous(x.id).filter(|_| !last(&record));
        }
        Ok(None)
    }

    /// Publishes a record that the state no longer names. Whoever committed it may have stopped before publishing, and an executor that
    /// polls can have answered what was never published since.
    async fn publish_older(&self, x: &Execution, id: &RecordId, record: &Record) -> Result<(), PortError> {
        if x.record == Some(*id) {
            return Ok(());
        }
        table::publish(&self.ports, &record.events(id, &x.context)).await?;
        let follow = |n| Message::Follow { to: address(x), record: *id, n }.to_body();
        let bodies: Vec<String> = (0..record.follow_ups.len()).map(follow).collect();
        table::send(&self.ports, &bodies).await
    }

    /// Does what a state owes without publishing: the lane and the wake-up.
    pub(super) async fn settle_quietly(&self, loaded: &Loaded) -> Result<(), PortError> {
        let effects = owed(&loaded.x, None);
        self.perform(&loaded.x, None, &effects).await
    }

    /// Settles for the sweep: what has been published again for a while is not published for ever.
    pub(super) async fn settle_swept(&self, loaded: &Loaded) -> Result<(), PortError> {
        let record = self.record(&loaded.x).await?;
        let newest = record.iter().flat_map(|record| &record.events).map(|draft| draft.time).max();
        if newest.is_some_and(|time| time + super::sweep::AGAIN < self.ports.now()) {
            return self.settle_quietly(loaded).await;
        }
        self.settle(loaded).await
    }

    /// Performs effects in order: what others may see first, the lane last.
    pub(super) async fn perform(&self, x: &Execution, record: Option<&Record>, effects: &[Effect]) -> Result<(), PortError> {
        if effects.contains(&Effect::Publish) {
            self.publish(x, record).await?;
        }
        let follow = |effect: &Effect| match (effect, x.record) {
            (Effect::Follow(n), Some(record)) => Some(Message::Follow { to: address(x), record, n: *n }.to_body()),
            _ => None,
        };
        table::send(&self.ports, &effects.iter().filter_map(follow).collect::<Vec<_>>()).await?;
        for effect in effects {
            match effect {
                Effect::Publish | Effect::Follow(_) => {}
                Effect::Wake(at) => self.wake_at(&address(x), *at).await?,
                Effect::Ask => self.ask(x).await?,
                Effect::Drive => self.drive(x, Some((x.id, x.ask))).await?,
                Effect::Recheck => {
                    if !self.context(&x.project, &x.context).await?.flags.pauses(&x.stage) {
                        table::send(&self.ports, &[Message::Obey { to: address(x) }.to_body()]).await?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Has an execution woken; twice for the same time is once.
    pub(super) async fn wake_at(&self, to: &Address, at: Timestamp) -> Result<(), PortError> {
        let body = Message::Wake { to: to.clone(), at }.to_body();
        self.ports.send_at(&format!("keelway-{}-{}", to.execution, at.0), &body, at).await
    }

    /// Publishes the events of the record a state names.
    pub(super) async fn publish(&self, x: &Execution, record: Option<&Record>) -> Result<(), PortError> {
        let Some((record, id)) = record.zip(x.record) else { return Ok(()) };
        table::publish(&self.ports, &record.events(&id, &x.context)).await
    }

    /// Creates an execution that no transaction covers: records, put if absent, and what it owes. An execution that is there
    /// already is settled instead.
    pub(super) async fn create(&self, transition: &Transition, sequence: &Sequence, recorded: Vec<Item>) -> Result<(), PortError> {
        let x = &transition.next;
        let mut items = recorded;
        items.extend(self.transition_record(x, transition.record.as_ref()));
        table::record(&self.ports, items, vec![]).await?;
        let frame = Frame { tasks: &sequence.tasks, retention: self.limits.retention, now: self.ports.now() };
        match self.ports.write(&frame.create(x)).await? {
            Written::Done => {
                self.bury(x).await?;
                let effects = fresh(None, x, transition.record.as_ref(), |_| false);
                self.perform(x, transition.record.as_ref(), &effects).await
            }
            Written::Conflict(Some(item)) => self.settle(&codec::execution(&item)?).await,
            Written::Conflict(None) => Err(self.contended(format_args!("execution {}", x.id))),
        }
    }
}

/// A follow-up born in its parent's commit.
struct Child {
    n: usize,
    writes: Vec<Write>,
}

/// What is known of a follow-up from the record that names it.
pub(super) fn birth_of(parent: &Execution, (id, record): (&RecordId, &Record), follow_up: &FollowUp) -> Birth {
    let trigger = record.events.iter().find(|draft| draft.id.as_deref() == Some(&follow_up.trigger_id));
    Birth {
        id: follow_up.execution,
        project: parent.project.clone(),
        context: parent.context.clone(),
        stage: follow_up.stage.to_string(),
        service: parent.service.clone(),
        sequence: follow_up.sequence.to_string(),
        revision: follow_up.revision.clone(),
        git_commit_id: Some(follow_up.revision.clone()).filter(|revision| !revision.is_empty()),
        trigger_id: follow_up.trigger_id.clone(),
        accepted: parent.accepted,
        caused: trigger.map_or(parent.accepted, |draft| draft.time),
        class: Class::FollowUp,
        parent: Some(parent.id),
        epoch: parent.epoch,
        payload: crate::keys::record_sort(id),
        data: record.base.clone(),
    }
}
