//! Answers to tasks: `.started` and `.finished` of executors, and people's decisions about approvals.

use super::history::{self, Verdict as Recorded};
use super::load::Reading;
use super::message::Address;
use super::{Loaded, Sequences, codec, keys};
use crate::item::Key;
use crate::ports::{Consistency, PortError, Ports, Written};
use crate::projects;
use crate::protocol::{Change, Handled, Handler, Subject, Verdict, commit, invalid, record, run, settle};
use crate::table::Items;
use keelway_domain::cause::Cause;
use keelway_domain::event::{CloudEvent, EventType};
use keelway_domain::ids::RecordId;
use keelway_domain::names::ProjectName;
use keelway_domain::sequences::{
    Bare, Decision, Execution, First, Flags, Input, ReactionKind, Transition, content, decide, events_needed,
};
use keelway_domain::time::Timestamp;

pub(super) const UNKNOWN_TRIGGER: &str =
    "triggeredid names no task trigger of this context: answer with the id of the .triggered event";

/// The largest decision: it is stored next to the payload that it becomes part of, so it must be short.
pub const MAX_DECISION_BYTES: usize = 16 * 1024;

/// An answer on its way to a decision.
struct Answer<'a> {
    to: Address,
    trigger: RecordId,
    kind: ReactionKind,
    event: &'a CloudEvent,
    at: Timestamp,
    by_person: bool,
    cause: Cause,
}

impl<P: Ports> Sequences<P> {
    /// Which execution and task an event answers, by its `triggeredid`; or why this is unknown.
    pub(super) fn answered(&self, event: &CloudEvent) -> Result<(Address, RecordId), &'static str> {
        for (field, reason) in [
            ("stage", "data.stage is missing: repeat the stage of the .triggered event"),
            ("service", "data.service is missing: repeat the service of the .triggered event"),
        ] {
            event.text(field).ok_or(reason)?;
        }
        let project = event.text("project").ok_or("data.project is missing: repeat the project of the .triggered event")?;
        let project = ProjectName::new(project).map_err(|_| "data.project is not a project's name")?;
        let id = event.triggered_id.as_deref().ok_or("triggeredid is missing: set it to the id of the .triggered event")?;
        let trigger = RecordId::from_uuid(id).ok_or(UNKNOWN_TRIGGER)?;
        Ok((Address { project, context: event.context.clone(), execution: trigger.subject }, trigger))
    }

    /// An executor's `.started` or `.finished`.
    pub(crate) async fn answer(
        &self,
        event: &CloudEvent,
        kind: ReactionKind,
        at: Timestamp,
        cause: Cause,
    ) -> Result<Handled, PortError> {
        if let Some(reason) = self.oversize(event) {
            return self.refuse(event, at, &reason).await;
        }
        match self.answered(event) {
            Ok((to, trigger)) => {
                if kind == ReactionKind::Started && self.first_started(&to, &trigger, event, at).await? {
                    return Ok(Handled::Committed);
                }
                run(self, cause, &Answer { to, trigger, kind, event, at, by_person: false, cause }).await
            }
            Err(reason) => self.refuse(event, at, reason).await,
        }
    }

    /// The same answer as a request. `glanced`: what was read to check it, which may be old. If it counts by that and the sequence
    /// goes on, it is committed, because the commit has its condition. What is left is decided from what is read anew.
    pub(super) async fn answer_from(
        &self,
        (to, trigger): (Address, RecordId),
        (kind, event): (ReactionKind, &CloudEvent),
        cause: Cause,
        glanced: Option<Items>,
    ) -> Result<Handled, PortError> {
        let mut answer = Answer { to, trigger, kind, event, at: cause.sent, by_person: false, cause };
        if let Some(items) = glanced {
            match answer.commit_at_a_glance(self, &items).await? {
                Some(true) => return Ok(Handled::Committed),
                // The conflict may be with this worker's own write, whose answer was lost before the client repeated it.
                Some(false) => answer.cause.again = true,
                None => {}
            }
        }
        run(self, answer.cause, &answer).await
    }

    /// Absorbs the first `.started` of an open task in one write, if it has no other data. `false`: decide about it.
    pub(super) async fn first_started(
        &self,
        to: &Address,
        trigger: &RecordId,
        event: &CloudEvent,
        at: Timestamp,
    ) -> Result<bool, PortError> {
        let EventType::Task(task, _) = EventType::parse(&event.ty) else { return Ok(false) };
        let (Some(stage), Some(service)) = (event.text("stage"), event.text("service")) else { return Ok(false) };
        let Some(first) = First::of(event, &task, at) else { return Ok(false) };
        let write = codec::first_started(to, trigger, (task.as_str(), stage, service), &first);
        Ok(self.ports.write(&write).await? == Written::Done)
    }

    /// A person's decision on an approval, from the API.
    pub(crate) async fn decision(
        &self,
        to: &Address,
        trigger: RecordId,
        event: &serde_json::Value,
        at: Timestamp,
        cause: Cause,
    ) -> Result<Handled, PortError> {
        let Some(event) = history::from_json(event) else {
            let reason = "a decision that is no CloudEvent";
            return invalid::record(&self.ports, self.limits.retention, at, reason, &event.to_string()).await;
        };
        if event.size() > MAX_DECISION_BYTES {
            let reason = format!("the decision has {} bytes, {MAX_DECISION_BYTES} are allowed", event.size());
            return self.refuse(&event, at, &reason).await;
        }
        let kind = ReactionKind::Finished;
        run(self, cause, &Answer { to: to.clone(), trigger, kind, event: &event, at, by_person: true, cause }).await
    }
}

impl<P: Ports> Handler<Execution, Sequences<P>> for Answer<'_> {
    fn key(&self) -> Key {
        keys::execution(&self.to)
    }

    fn reads(&self) -> Vec<Key> {
        let mut wanted = vec![projects::keys::project(&self.to.project)];
        // A `.started` almost never completes a task: then the payload is not needed.
        wanted.extend((self.kind == ReactionKind::Finished).then(|| self.record()));
        wanted
    }

    async fn decide(&self, engine: &Sequences<P>, found: Option<&Loaded>, items: &Items) -> Result<Verdict<Execution>, PortError> {
        let Some(loaded) = found else { return self.to_nobody(engine).await.map(Verdict::Done) };
        match self.decided(engine, loaded, items).await? {
            Decision::Commit(transition) => match self.change(engine, loaded, *transition).await? {
                Some(change) => Ok(Verdict::Commit(Box::new(change))),
                None => Ok(Verdict::Again),
            },
            Decision::Settle => Ok(Verdict::Settle),
            // A client sends again what was not answered, so the first request may have stopped half-way.
            Decision::Duplicate if self.cause.unqueued => Ok(Verdict::Settle),
            Decision::Duplicate => Ok(Verdict::Done(Handled::Settled)),
            Decision::Late => self.late(engine, &loaded.x).await.map(Verdict::Done),
            Decision::Noted => {
                engine.keep(&self.to.project, self.event, self.at, Recorded::None).await?;
                Ok(Verdict::Done(Handled::Recorded))
            }
            Decision::Invalid(reason) => engine.refuse(self.event, self.at, &reason).await.map(Verdict::Done),
        }
    }
}

impl Answer<'_> {
    fn record(&self) -> Key {
        keys::record(&self.to.project, &self.to.context, &self.trigger)
    }

    async fn decided<P: Ports>(&self, engine: &Sequences<P>, loaded: &Loaded, items: &Items) -> Result<Decision, PortError> {
        let x = &loaded.x;
        let mut reading = Reading::of(engine, x, items).await?;
        let completes = self.kind == ReactionKind::Finished || x.count(ReactionKind::Finished) > 0;
        if completes && x.record == Some(self.trigger) {
            reading.base = engine.base(x, items).await?;
            reading.events = engine.events(x, &events_needed(x, self.kind)).await?;
        }
        let flags = Flags::default();
        let input = match self.by_person {
            true => Input::Decision(self.trigger, self.event, self.at),
            false => Input::Reaction(self.trigger, self.kind, self.event, self.at),
        };
        Ok(decide(x, input, &reading.facts(engine.ports.now(), self.cause, &flags)))
    }

    /// The commit of a transition, with the answer itself if nothing else keeps it; `None`: the loaded state is old.
    async fn change<P: Ports>(
        &self,
        engine: &Sequences<P>,
        loaded: &Loaded,
        transition: Transition,
    ) -> Result<Option<Change<Execution>>, PortError> {
        let Some(mut change) = engine.change(loaded, transition).await? else { return Ok(None) };
        // A decision is an event of the commit's own record. A bare `.started` is kept in the execution, and the record has the
        // answer that completes the task.
        let kept = |bare: &Bare| (bare.at, &bare.source, &bare.id) == (self.at, &self.event.source, &self.event.id);
        let recorded = || change.record.as_ref().is_some_and(|record| Bare::all(record).iter().any(kept));
        if !self.by_person && !change.next.bare.iter().any(kept) && !recorded() {
            change.items.push(history::event(&engine.limits, &self.to.project, self.event, self.at, Recorded::None));
        }
        Ok(Some(change))
    }

    /// Commits what follows from items that were read before; whether the commit counted. `None`: nothing was tried. An end starts
    /// what the project's shipyard says, so it is not decided from what may be old.
    async fn commit_at_a_glance<P: Ports>(&self, engine: &Sequences<P>, items: &Items) -> Result<Option<bool>, PortError> {
        let found = items.get(&keys::execution(&self.to)).map(Loaded::read).transpose()?;
        let Some(loaded) = found.filter(|loaded| loaded.owes.is_none() && !self.cause.again) else { return Ok(None) };
        let new = engine.checks_with() == Consistency::Strong;
        match self.decided(engine, &loaded, items).await? {
            Decision::Commit(transition) if new || transition.next.outcome.is_none() => {
                let Some(change) = self.change(engine, &loaded, *transition).await? else { return Ok(None) };
                commit(engine, Some(&loaded), &change, self.cause).await.map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The execution does not exist, or it and its history have expired.
    async fn to_nobody<P: Ports>(&self, engine: &Sequences<P>) -> Result<Handled, PortError> {
        let tombstone = keys::tombstone(&self.to.project, self.to.execution);
        if engine.read(std::slice::from_ref(&tombstone)).await?.is_empty() {
            return engine.refuse(self.event, self.at, UNKNOWN_TRIGGER).await;
        }
        engine.keep(&self.to.project, self.event, self.at, Recorded::Stale).await?;
        Ok(Handled::Stale)
    }

    /// An answer to a task that is over: a redelivery completes what it began, a duplicate was handled before, anything else is
    /// stale.
    async fn late<P: Ports>(&self, engine: &Sequences<P>, x: &Execution) -> Result<Handled, PortError> {
        let content = content(self.event);
        let follower = record::follower(&engine.ports, x, self.trigger).await?.filter(|(_, next)| next.absorbed.contains(&content));
        if let Some((_, next)) = follower {
            // What a request has committed and the sweep does not find is noted in the state until it is told.
            if !self.cause.unqueued || x.is_swept(&next) {
                settle(engine, x, self.cause).await?;
            }
            return Ok(Handled::Settled);
        }
        engine.keep(&self.to.project, self.event, self.at, Recorded::Stale).await?;
        tracing::info!(project = %x.project, context = %x.context, execution = %x.id, event = self.event.id, "stale answer recorded");
        Ok(Handled::Stale)
    }
}
