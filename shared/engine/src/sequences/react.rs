//! Answers to tasks: executors' `.started` and `.finished`, people's decisions on approvals.

use super::Engine;
use super::codec::{self, Loaded};
use super::history::{self, Verdict};
use super::load::decode_record;
use super::settle::Recorded;
use crate::keys;
use crate::message::{Address, Handled};
use crate::ports::{PortError, Ports};
use keelway_domain::event::CloudEvent;
use keelway_domain::ids::RecordId;
use keelway_domain::names::ProjectName;
use keelway_domain::sequences::{Decision, Facts, Flags, Input, ReactionKind, content, decide, events_needed};
use keelway_domain::time::Timestamp;

pub(super) const UNKNOWN_TRIGGER: &str =
    "triggeredid names no task trigger of this context: answer with the id of the .triggered event";

/// A decision is stored beside the payload it becomes part of: more than this is a document, not a decision.
pub const MAX_DECISION_BYTES: usize = 16 * 1024;

/// An answer on its way to a decision.
struct Answer<'a> {
    project: ProjectName,
    to: Address,
    trigger: RecordId,
    kind: ReactionKind,
    event: &'a CloudEvent,
    at: Timestamp,
    by_person: bool,
}

impl<P: Ports> Engine<P> {
    /// Whom an event answers, by its `triggeredid`; or why that cannot be said.
    pub(super) fn answered(&self, event: &CloudEvent) -> Result<(ProjectName, Address, RecordId), &'static str> {
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
        let to = Address { project: project.clone(), context: event.context.clone(), execution: trigger.execution };
        Ok((project, to, trigger))
    }

    /// An executor's `.started` or `.finished`.
    pub(super) async fn react(&self, event: &CloudEvent, kind: ReactionKind, at: Timestamp) -> Result<Handled, PortError> {
        if let Some(reason) = self.oversize(event) {
            return self.refuse(event, at, &reason).await;
        }
        match self.answered(event) {
            Ok((project, to, trigger)) => self.absorb(&Answer { project, to, trigger, kind, event, at, by_person: false }).await,
            Err(reason) => self.refuse(event, at, reason).await,
        }
    }

    /// A person's decision on an approval, from the API.
    pub(super) async fn decision(
        &self,
        to: &Address,
        trigger: RecordId,
        event: &serde_json::Value,
        at: Timestamp,
    ) -> Result<Handled, PortError> {
        let Some(event) = history::from_json(event) else {
            return history::invalid(&self.ports, &self.limits, at, "a decision that is no CloudEvent", &event.to_string()).await;
        };
        if event.size() > MAX_DECISION_BYTES {
            let reason = format!("the decision has {} bytes, {MAX_DECISION_BYTES} are allowed", event.size());
            return self.refuse(&event, at, &reason).await;
        }
        let kind = ReactionKind::Finished;
        self.absorb(&Answer { project: to.project.clone(), to: to.clone(), trigger, kind, event: &event, at, by_person: true })
            .await
    }

    async fn absorb(&self, answer: &Answer<'_>) -> Result<Handled, PortError> {
        let (of_execution, of_project) = (keys::execution(&answer.to), keys::project(&answer.project));
        let of_record = keys::record(&answer.project, &answer.to.context, &answer.trigger);
        for _ in 0..super::COMMIT_TRIES {
            // A `.started` almost never completes a task: then the payload is not needed.
            let mut wanted = vec![of_execution.clone(), of_project.clone()];
            if answer.kind == ReactionKind::Finished {
                wanted.push(of_record.clone());
            }
            let mut items = self.read(&wanted).await?;
            let Some(loaded) = items.get(&of_execution).map(codec::execution).transpose()? else {
                return self.to_nobody(answer).await;
            };
            let sequence = self.sequence(&loaded.x).await?;
            let needed = events_needed(&loaded.x, answer.kind);
            let completes = answer.kind == ReactionKind::Started && loaded.x.count(ReactionKind::Finished) > 0;
            if completes {
                items.extend(self.read(std::slice::from_ref(&of_record)).await?);
            }
            let events = self.events(&loaded.x, &needed).await?;
            let record = decode_record(items.get(&of_record));
            let wanted = answer.kind == ReactionKind::Finished || completes;
            let expired = wanted && loaded.x.record == Some(answer.trigger) && record.is_none();
            if expired {
                let reason = format!("the payload of {} has expired: abort the sequence and trigger it again", answer.to.execution);
                return Err(PortError::Refused { request: "BatchGetItem", reason });
            }
            let base = record.map(|record| record.base).unwrap_or_default();
            let project = self.project(&answer.project, items.get(&of_project)).await?;
            let facts = Facts {
                now: self.ports.now(),
                flags: &Flags::default(),
                sequence: &sequence,
                current: (&project.revision, &project.shipyard),
                base: &base,
                events: &events,
                policy: project.policy,
            };
            let input = match answer.by_person {
                true => Input::Decision(answer.trigger, answer.event, answer.at),
                false => Input::Reaction(answer.trigger, answer.kind, answer.event, answer.at),
            };
            match decide(&loaded.x, input, &facts) {
                Decision::Commit(transition) => {
                    // A decision is an event of the commit's own record.
                    let recorded = (!answer.by_person)
                        .then(|| history::event(&self.limits, &answer.project, answer.event, answer.at, Verdict::None));
                    let recorded = Recorded { items: recorded.into_iter().collect(), deletes: vec![] };
                    if self.commit(&loaded, &sequence, *transition, recorded).await? {
                        return Ok(Handled::Committed);
                    }
                }
                Decision::Settle | Decision::Rearm(_) => {
                    self.settle_for(&loaded, input.cause(), Some(answer.trigger)).await?;
                    return Ok(Handled::Settled);
                }
                Decision::Late => return self.late(answer, &loaded).await,
                Decision::Invalid(reason) => return self.refuse(answer.event, answer.at, &reason).await,
            }
        }
        Err(self.contended(format_args!("execution {}", answer.to.execution)))
    }

    /// No such execution: it never was, or it and its history have expired.
    async fn to_nobody(&self, answer: &Answer<'_>) -> Result<Handled, PortError> {
        let tombstone = keys::tombstone(&answer.project, answer.to.execution);
        if self.read(std::slice::from_ref(&tombstone)).await?.is_empty() {
            return self.refuse(answer.event, answer.at, UNKNOWN_TRIGGER).await;
        }
        self.keep(&answer.project, answer.event, answer.at, Verdict::Stale).await?;
        Ok(Handled::Stale)
    }

    /// An answer to a task that is over: a duplicate if some record absorbed it, else stale.
    async fn late(&self, answer: &Answer<'_>, loaded: &Loaded) -> Result<Handled, PortError> {
        let x = &loaded.x;
        if self.settle_for(loaded, Some(content(answer.event)), Some(answer.trigger)).await? {
            return Ok(Handled::Settled);
        }
        self.keep(&answer.project, answer.event, answer.at, Verdict::Stale).await?;
        tracing::info!(project = %x.project, context = %x.context, execution = %x.id, event = answer.event.id, "stale answer recorded");
        Ok(Handled::Stale)
    }
}
