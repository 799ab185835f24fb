//! What starts executions: an outside trigger, a follow-up's message, a domain event.

use super::Engine;
use super::codec::{self, Frame, Loaded, LoadedContext};
use super::history::{self, Verdict};
use super::load::Project;
use super::settle::birth_of;
use crate::item::{Item, Key};
use crate::keys;
use crate::message::{Address, Handled, Message};
use crate::ports::{Condition, PortError, Ports, Transacted, Write};
use crate::table;
use keelway_domain::event::{CloudEvent, Object};
use keelway_domain::ids::{ExecutionId, RecordId};
use keelway_domain::names::{ProjectName, SequenceName, ServiceName, StageName};
use keelway_domain::sequences::{
    Birth, Class, Decision, Execution, Facts, Input, Lane, Transition, born, content, decide, domain_event_starts, first_payload,
    fresh, never_started,
};
use keelway_domain::shipyard::{Sequence, Shipyard};
use keelway_domain::time::Timestamp;
use std::collections::HashMap;

/// What is found where an execution is to be: one request, whatever the outcome.
struct Found {
    context: LoadedContext,
    present: Option<Item>,
    expired: bool,
    project: Project,
    service_known: bool,
}

impl<P: Ports> Engine<P> {
    /// An outside `<stage>.<sequence>.triggered`: project, stage and service come from the data, the sequence from the type.
    pub(super) async fn accept(
        &self,
        event: &CloudEvent,
        stage: &StageName,
        sequence: &SequenceName,
        sent: Timestamp,
    ) -> Result<Handled, PortError> {
        let (project, service) = match self.scope(event) {
            Ok(scope) => scope,
            Err(reason) => return self.refuse(event, sent, &reason).await,
        };
        let Some(stage_given) = event.text("stage") else {
            return self.refuse(event, sent, &format!("data.stage is missing: name the stage, for example {stage}")).await;
        };
        if let Err(error) = StageName::new(stage_given) {
            return self.refuse(event, sent, &format!("data.stage: {error}")).await;
        }
        let id = ExecutionId::of_trigger(&project, &event.context, &event.source, &event.id);
        let to = Address { project: project.clone(), context: event.context.clone(), execution: id };
        let recorded = history::event(&self.limits, &project, event, sent, Verdict::None);
        let birth = |found: &Found| Birth {
            id,
            project: project.clone(),
            context: event.context.clone(),
            stage: stage_given.to_owned(),
            service: service.clone(),
            sequence: sequence.to_string(),
            revision: found.project.revision.clone(),
            git_commit_id: event.git_commit_id.clone().or_else(|| revision_id(found)),
            trigger_id: event.id.clone(),
            accepted: sent,
            caused: sent,
            class: Class::Outside,
            parent: None,
            epoch: found.context.flags.epoch,
            payload: recorded.key.sk.clone(),
            data: event.data.clone(),
        };
        for _ in 0..super::COMMIT_TRIES {
            let found = self.found(&to, &service).await?;
            if let Some(item) = &found.present {
                let loaded = codec::execution(item)?;
                if keys::event_content(&loaded.x.payload) != Some(content(event)) {
                    let reason =
                        format!("source {:?} has sent another event with id {:?}: the first one stands", event.source, event.id);
                    return self.refuse(event, sent, &reason).await;
                }
                self.settle_birth(&loaded).await?;
                return Ok(Handled::Settled);
            }
            if found.expired {
                self.keep(&project, event, sent, Verdict::Stale).await?;
                return Ok(Handled::Stale);
            }
            if self.begin(&birth(&found), &found, vec![recorded.clone()]).await? {
                return Ok(Handled::Committed);
            }
        }
        Err(self.contended(format_args!("execution {id}")))
    }

    /// A follow-up, by message: the record of the execution that caused it says everything.
    pub(super) async fn follow(&self, parent: &Address, record: &RecordId, n: usize) -> Result<Handled, PortError> {
        let written = self.record_of(&parent.project, &parent.context, record).await?;
        let Some((written, follow_up)) = written.as_ref().and_then(|written| Some((written, written.follow_ups.get(n)?))) else {
            tracing::warn!(execution = %parent.execution, "a follow-up's record is gone");
            return Ok(Handled::Stale);
        };
        let Some(loaded) = self.execution(parent).await? else { return Ok(Handled::Stale) };
        let x = &loaded.x;
        let to = Address { execution: follow_up.execution, ..parent.clone() };
        for _ in 0..super::COMMIT_TRIES {
            let found = self.found(&to, &x.service).await?;
            if let Some(item) = &found.present {
                self.settle_birth(&codec::execution(item)?).await?;
                return Ok(Handled::Settled);
            }
            if found.expired {
                return Ok(Handled::Settled);
            }
            if self.begin(&birth_of(x, (record, written), follow_up), &found, vec![]).await? {
                return Ok(Handled::Committed);
            }
        }
        Err(self.contended(format_args!("execution {}", follow_up.execution)))
    }

    /// An event that is neither a sequence's nor a task's: perhaps some sequence is triggered on it.
    pub(super) async fn domain_event(&self, event: &CloudEvent, name: &str, sent: Timestamp) -> Result<Handled, PortError> {
        let scope = self.scope(event);
        if Self::is_history(name) {
            return match scope {
                Ok((project, _)) => self.keep(&project, event, sent, Verdict::None).await.map(|()| Handled::Recorded),
                Err(_) => {
                    history::invalid(&self.ports, &self.limits, sent, "kept as history: it names no project", &event.to_bytes())
                        .await?;
                    Ok(Handled::Recorded)
                }
            };
        }
        let unknown = format!("unknown event type {:?}: no sequence is triggered on it", event.ty);
        let (project, _) = match scope {
            Ok(scope) => scope,
            Err(reason) => return self.refuse(event, sent, &format!("{unknown}, and {reason}")).await,
        };
        let items = self.read(&[keys::project(&project)]).await?;
        let known = self.project(&project, items.get(&keys::project(&project))).await?;
        let starts = domain_event_starts(&known.shipyard, &event.ty, &event.data);
        if starts.is_empty() {
            return self.refuse(event, sent, &unknown).await;
        }
        self.keep(&project, event, sent, Verdict::None).await?;
        let root = ExecutionId::of_trigger(&project, &event.context, &event.source, &event.id);
        let message = |stage: &StageName, sequence: &SequenceName| Message::Start {
            to: Address {
                project: project.clone(),
                context: event.context.clone(),
                execution: ExecutionId::of_follow_up(root, "event", stage, sequence),
            },
            event: keys::event_sort(sent, content(event)),
            stage: stage.clone(),
            sequence: sequence.clone(),
            accepted: sent,
        };
        let bodies: Vec<String> = starts.iter().map(|(stage, sequence)| message(&stage.name, &sequence.name).to_body()).collect();
        table::send(&self.ports, &bodies).await?;
        Ok(Handled::Committed)
    }

    /// One of the executions a domain event starts.
    pub(super) async fn start_on_event(
        &self,
        to: &Address,
        sort: &str,
        (stage, sequence): (&StageName, &SequenceName),
        accepted: Timestamp,
    ) -> Result<Handled, PortError> {
        let key = Key::new(keys::context_partition(&to.project, &to.context), sort);
        let items = self.read(std::slice::from_ref(&key)).await?;
        let Some(event) = items.get(&key).and_then(history::decode) else { return Ok(Handled::Stale) };
        let Ok((_, service)) = self.scope(&event) else { return Ok(Handled::Stale) };
        for _ in 0..super::COMMIT_TRIES {
            let found = self.found(to, &service).await?;
            if let Some(item) = &found.present {
                self.settle_birth(&codec::execution(item)?).await?;
                return Ok(Handled::Settled);
            }
            if found.expired {
                return Ok(Handled::Settled);
            }
            let birth = Birth {
                id: to.execution,
                project: to.project.clone(),
                context: to.context.clone(),
                stage: stage.to_string(),
                service: service.clone(),
                sequence: sequence.to_string(),
                revision: found.project.revision.clone(),
                git_commit_id: event.git_commit_id.clone().or_else(|| revision_id(&found)),
                trigger_id: event.id.clone(),
                accepted,
                caused: accepted,
                class: Class::Outside,
                parent: None,
                epoch: found.context.flags.epoch,
                payload: sort.to_owned(),
                data: event.data.clone(),
            };
            if self.begin(&birth, &found, vec![]).await? {
                return Ok(Handled::Committed);
            }
        }
        Err(self.contended(format_args!("execution {}", to.execution)))
    }

    /// The cause of an execution that is there already. A start on a free lane is a first grant in the same commit.
    async fn settle_birth(&self, loaded: &Loaded) -> Result<(), PortError> {
        self.settle_for(loaded, Input::Granted(0).cause(), None).await.map(drop)
    }

    /// project and service of an event; every event of this engine has both.
    fn scope(&self, event: &CloudEvent) -> Result<(ProjectName, ServiceName), String> {
        let field = |name: &'static str| event.text(name).ok_or_else(|| format!("data.{name} is missing: name the {name}"));
        let project = ProjectName::new(field("project")?).map_err(|error| format!("data.project: {error}"))?;
        let service = ServiceName::new(field("service")?).map_err(|error| format!("data.service: {error}"))?;
        match self.oversize(event) {
            Some(reason) => Err(reason),
            None => Ok((project, service)),
        }
    }

    async fn found(&self, to: &Address, service: &ServiceName) -> Result<Found, PortError> {
        let project = &to.project;
        let (of_context, of_execution) = (keys::context(project, &to.context), keys::execution(to));
        let (tombstone, of_project) = (keys::tombstone(project, to.execution), keys::project(project));
        let of_service = keys::service(project, service.as_str());
        let wanted = [of_context.clone(), of_execution.clone(), tombstone.clone(), of_project.clone(), of_service.clone()];
        let mut items: HashMap<Key, Item> = self.read(&wanted).await?;
        Ok(Found {
            context: codec::context(items.get(&of_context)),
            present: items.remove(&of_execution),
            expired: items.contains_key(&tombstone),
            project: self.project(project, items.get(&of_project)).await?,
            service_known: items.contains_key(&of_service),
        })
    }

    /// Creates the execution: on a free lane with its first task sent, else wanting its lane. `false`: something moved; look again.
    async fn begin(&self, birth: &Birth, found: &Found, recorded: Vec<Item>) -> Result<bool, PortError> {
        let mut items = recorded;
        if !found.service_known && found.project.exists {
            items.push(Item::new(keys::service(&birth.project, birth.service.as_str())).with("at", birth.accepted.0));
        }
        let now = self.ports.now();
        // The revision that is fixed for it, which need not be the one in force.
        let shipyard = self.shipyard(&birth.project, &birth.revision).await?;
        let (transition, sequence) = match find(found, &shipyard, birth) {
            Ok(sequence) => (born(birth, &found.context.flags, &sequence, now), sequence),
            Err(message) => (never_started(birth, &message, now), Sequence::none()),
        };
        let x = &transition.next;
        if x.lane == Lane::Wants
            && let Some(lane) = self.take_if_free(x).await?
            && let Some(started) = start(x, &sequence, found, birth, now)
        {
            return self.begin_on_free_lane(started, &sequence, lane, found, items).await;
        }
        if found.context.version == 0 {
            let service = &birth.service;
            let context = codec::new_context(&birth.project, &birth.context, &birth.sequence, service, birth.accepted);
            // Another trigger of the context may have been first; a pause in it must not be overwritten.
            drop(self.ports.write(&Write::Put(context, Condition::Absent)).await?);
        }
        self.create(&transition, &sequence, items).await?;
        Ok(true)
    }

    async fn begin_on_free_lane(
        &self,
        started: Transition,
        sequence: &Sequence,
        lane: Write,
        found: &Found,
        items: Vec<Item>,
    ) -> Result<bool, PortError> {
        let x = &started.next;
        let mut items = items;
        items.extend(self.record_items(x, started.record.as_ref()));
        table::record(&self.ports, items, vec![]).await?;
        let frame = Frame { tasks: &sequence.tasks, retention: self.limits.retention, now: self.ports.now() };
        let of_context = keys::context(&x.project, &x.context);
        let mut writes = vec![frame.create(x)];
        if x.lane == Lane::Holds {
            writes.push(lane);
        }
        // The flags that were read must still hold: a pause or an abort in between covers this execution.
        writes.push(match found.context.version {
            0 => Write::Put(codec::new_context(&x.project, &x.context, &x.sequence, &x.service, x.accepted), Condition::Absent),
            version => Write::Check(of_context, Condition::Version(version)),
        });
        if self.ports.transact(&writes).await? != Transacted::Done {
            return Ok(false);
        }
        let effects = fresh(None, x, started.record.as_ref(), |_| false);
        self.perform(x, started.record.as_ref(), &effects).await?;
        Ok(true)
    }
}

fn revision_id(found: &Found) -> Option<String> {
    Some(found.project.revision.clone()).filter(|revision| !revision.is_empty())
}

/// The sequence to run, or why there is none, in the reference's words where clients know them.
fn find(found: &Found, shipyard: &Shipyard, birth: &Birth) -> Result<Sequence, String> {
    let because = |why: String| format!("Unable to start sequence {}: {why}", birth.sequence);
    if !found.project.exists {
        return Err(because(format!("no project named {} exists", birth.project)));
    }
    if birth.revision.is_empty() {
        return Err(because(format!("project {} has no shipyard", birth.project)));
    }
    let stage = shipyard.stage(&birth.stage);
    let stage = stage.ok_or_else(|| because(format!("no stage with name {} found", birth.stage)))?;
    let missing = || because(format!("no task sequence with name {} found in stage {}", birth.sequence, birth.stage));
    stage.sequence(&birth.sequence).ok_or_else(missing)
}

/// The start as a transition, unless it would end the execution or set others off at once: then the ordinary path does it.
fn start(x: &Execution, sequence: &Sequence, found: &Found, birth: &Birth, now: Timestamp) -> Option<Transition> {
    let base: Object = first_payload(&birth.data, x);
    let facts = Facts {
        now,
        flags: &found.context.flags,
        sequence,
        current: (&found.project.revision, &found.project.shipyard),
        base: &base,
        events: &[],
        policy: found.project.policy,
    };
    match decide(x, Input::Granted(x.ask), &facts) {
        Decision::Commit(started) => {
            let plain = started.next.outcome.is_none() && started.record.as_ref().is_none_or(|record| record.follow_ups.is_empty());
            plain.then_some(*started)
        }
        _ => None,
    }
}
