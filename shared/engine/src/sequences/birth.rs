//! The beginning of an execution: if the lane is free, its first task is sent, otherwise it waits for the lane.

use super::codec::{self, LoadedContext};
use super::history::Verdict as Recorded;
use super::lane::{Found, entry_item};
use super::load::Project;
use super::message::Address;
use super::{Loaded, Sequences, keys};
use crate::item::{Item, Key};
use crate::ports::{Condition, PortError, Ports, Write};
use crate::projects;
use crate::protocol::{Change, Effect, Handled, Handler, Verdict};
use crate::table::Items;
use keelway_domain::cause::Cause;
use keelway_domain::event::{CloudEvent, Object};
use keelway_domain::ids::{RecordId, event_id};
use keelway_domain::names::{SequenceName, ServiceName, StageName};
use keelway_domain::sequences::{
    Birth, Class, Decision, Done, Duty, End, Entrance, Execution, Facts, FollowUp, Input, Lane, Record, Remediation, Transition,
    born, decide, first_payload, never_started,
};
use keelway_domain::shipyard::{Sequence, Shipyard};
use keelway_domain::time::{Span, Timestamp};

/// The most labels that are kept for lists, in bytes of JSON: the context's item is read for every line of a list.
const MAX_LABELS: usize = 1024;

/// A start on its way through the protocol.
pub(super) struct Start<'a> {
    pub to: Address,
    pub service: ServiceName,
    /// When the outside event at the root was accepted.
    pub accepted: Timestamp,
    pub cause: Cause,
    pub origin: Origin<'a>,
}

/// What starts an execution.
pub(super) enum Origin<'a> {
    /// A trigger from outside; it names a stage and a sequence that need not exist.
    Outside { event: &'a CloudEvent, stage: &'a str, sequence: &'a str, recorded: Item },
    /// A transition of another execution.
    FollowUp { parent: &'a Execution, record: (&'a RecordId, &'a Record), follow_up: &'a FollowUp },
    /// An ended execution, to be repeated by somebody from this task on with the payload of the item under this sort key.
    Retry { old: &'a Execution, from: u16, by: &'a str, payload: String, data: Object },
    /// A domain event, recorded under this sort key.
    Event { event: &'a CloudEvent, sort: &'a str, stage: &'a StageName, sequence: &'a SequenceName, revision: &'a str },
}

/// What is known before an execution is created.
struct Ground {
    context: LoadedContext,
    project: Project,
    service_known: bool,
}

impl<P: Ports> Handler<Execution, Sequences<P>> for Start<'_> {
    fn key(&self) -> Key {
        keys::execution(&self.to)
    }

    fn reads(&self) -> Vec<Key> {
        let project = &self.to.project;
        vec![
            keys::context(project, &self.to.context),
            keys::tombstone(project, self.to.execution),
            projects::keys::project(project),
            projects::keys::service(project, self.service.as_str()),
        ]
    }

    async fn decide(&self, engine: &Sequences<P>, found: Option<&Loaded>, items: &Items) -> Result<Verdict<Execution>, PortError> {
        let (project, id) = (&self.to.project, self.to.execution);
        if let Some(loaded) = found {
            return self.again(engine, &loaded.x).await;
        }
        if items.contains_key(&keys::tombstone(project, id)) {
            return self.long_ago(engine).await.map(Verdict::Done);
        }
        let ground = Ground {
            context: codec::context(items.get(&keys::context(project, &self.to.context))),
            project: engine.project(project, items.get(&projects::keys::project(project))).await?,
            service_known: items.contains_key(&projects::keys::service(project, self.service.as_str())),
        };
        self.begin(engine, &ground).await
    }
}

impl Start<'_> {
    /// The execution exists: a redelivery completes what it began, a copy of the trigger does nothing.
    async fn again<P: Ports>(&self, engine: &Sequences<P>, x: &Execution) -> Result<Verdict<Execution>, PortError> {
        match &self.origin {
            Origin::Outside { event, .. } if !Sequences::<P>::started_by(x, event) => {
                let reason =
                    format!("source {:?} has sent another event with id {:?}: the first one stands", event.source, event.id);
                engine.refuse(event, self.accepted, &reason).await.map(Verdict::Done)
            }
            Origin::Outside { .. } if x.accepted != self.accepted => Ok(Verdict::Done(Handled::Settled)),
            _ => Ok(Verdict::Settle),
        }
    }

    /// The execution existed, and its history has expired.
    async fn long_ago<P: Ports>(&self, engine: &Sequences<P>) -> Result<Handled, PortError> {
        let Origin::Outside { event, .. } = &self.origin else { return Ok(Handled::Settled) };
        engine.keep(&self.to.project, event, self.accepted, Recorded::Stale).await?;
        Ok(Handled::Stale)
    }

    async fn begin<P: Ports>(&self, engine: &Sequences<P>, ground: &Ground) -> Result<Verdict<Execution>, PortError> {
        let birth = self.birth(ground);
        let mut recorded = match &self.origin {
            Origin::Outside { recorded, .. } => vec![recorded.clone()],
            Origin::FollowUp { .. } | Origin::Event { .. } | Origin::Retry { .. } => vec![],
        };
        if !ground.service_known && ground.project.exists {
            recorded.push(Item::new(projects::keys::service(&birth.project, birth.service.as_str())).with("at", birth.accepted.0));
        }
        let now = engine.ports.now();
        // The execution's fixed revision, which may differ from the one in force.
        let shipyard = engine.projects().shipyard(&birth.project, &birth.revision).await?;
        let (transition, sequence) = match find(ground, &shipyard, &birth, engine.limits.max_executions) {
            Ok(sequence) => {
                let (flags, shipyard) = (&ground.context.flags, &ground.project.shipyard);
                (born(&birth, &Entrance { sequence: &sequence, shipyard, flags, now }), sequence)
            }
            Err(message) => (never_started(&birth, &message, now), Sequence::none()),
        };
        let remediation = engine.remediation_of(&transition.next, &sequence).await?;
        let labels = labels(&birth.data);
        let counted = context_write(ground, (&transition.next, labels), now, engine.limits.retention);
        let wants = transition.next.lane == Lane::Wants && transition.next.held.is_none();
        let lane = if wants { engine.find_lane(&transition.next).await? } else { Found::Unclear };
        if let Found::Free(lock) = &lane
            && let Some(started) = start(&transition.next, (&sequence, remediation.as_ref()), ground, &birth, now)
        {
            let mut change = Change::new(None, started.next, started.record);
            change.items = recorded;
            change.with.extend((change.next.lane == Lane::Holds).then(|| lock.clone()));
            change.with.extend(counted);
            return Ok(Verdict::Commit(Box::new(change)));
        }
        let look = match lane {
            Found::Held(look) => Some(look),
            Found::Free(_) | Found::Unclear => None,
        };
        Ok(Verdict::Commit(Box::new(self.wait(transition, recorded, counted, look))))
    }

    /// The execution without a start. If it wants its lane, it enters the queue in the same transaction; `look`: what to do then,
    /// if the lane's holder is known. The flags may change in the meantime: the execution checks them again when it is granted the
    /// lane.
    fn wait(&self, transition: Transition, recorded: Vec<Item>, context: Option<Write>, look: Option<Duty>) -> Change<Execution> {
        let mut change = Change::new(None, transition.next, transition.record);
        change.items = recorded;
        change.with.extend(context);
        if change.next.lane == Lane::Wants {
            change.with.push(Write::Put(entry_item(&change.next), Condition::Always));
            // Its commit puts it into the queue. An execution that is held back enables no other one, so it does not look at the
            // lane now. It drives the lane when it is let through.
            let held = change.next.held.is_some();
            change.effects.retain(|effect| !held || *effect != Effect::Duty(Duty::Ask));
            let asks = |effect: &mut Effect<Duty>| {
                if *effect == Effect::Duty(Duty::Ask) {
                    *effect = Effect::Duty(look.clone().unwrap_or(Duty::Drive));
                }
            };
            change.effects.iter_mut().for_each(asks);
        }
        change
    }

    fn birth(&self, ground: &Ground) -> Birth {
        let in_force = || Some(ground.project.revision.clone()).filter(|revision| !revision.is_empty());
        let (event, stage, sequence, payload, revision) = match &self.origin {
            Origin::Outside { event, stage, sequence, recorded } => {
                (event, (*stage).to_owned(), (*sequence).to_owned(), recorded.key.sk.clone(), ground.project.revision.clone())
            }
            Origin::Event { event, sort, stage, sequence, revision } => {
                (event, stage.to_string(), sequence.to_string(), (*sort).to_owned(), (*revision).to_owned())
            }
            Origin::FollowUp { parent, record, follow_up } => return birth_of(parent, *record, follow_up, self.cause),
            Origin::Retry { old, from, by, payload, data } => {
                let epoch = ground.context.flags.epoch;
                let birth = self.repeated(old, *from, (payload, data), epoch);
                return Birth { authors: with(&old.authors, by), ..birth };
            }
        };
        Birth {
            id: self.to.execution,
            project: self.to.project.clone(),
            context: self.to.context.clone(),
            stage,
            service: self.service.clone(),
            sequence,
            revision,
            git_commit_id: event.git_commit_id.clone().or_else(in_force),
            authors: event.authors.clone(),
            trigger_id: event.id.clone(),
            accepted: self.accepted,
            caused: self.accepted,
            class: Class::Outside,
            place: 0,
            parent: None,
            epoch: ground.context.flags.epoch,
            payload,
            data: event.data.clone(),
            done: Done::default(),
            cause: self.cause,
        }
    }

    /// A retry keeps the definition and the configuration of the execution that it repeats.
    fn repeated(&self, old: &Execution, from: u16, (payload, data): (&str, &Object), epoch: u32) -> Birth {
        Birth {
            id: self.to.execution,
            project: old.project.clone(),
            context: old.context.clone(),
            stage: old.stage.clone(),
            service: old.service.clone(),
            sequence: old.sequence.clone(),
            revision: old.revision.clone(),
            git_commit_id: old.git_commit_id.clone(),
            authors: old.authors.clone(),
            trigger_id: event_id(self.to.execution, "triggered").to_string(),
            accepted: self.accepted,
            caused: self.accepted,
            class: Class::Outside,
            place: 0,
            parent: Some(old.id),
            epoch,
            payload: payload.to_owned(),
            data: data.clone(),
            done: Done::of(old, from),
            cause: self.cause,
        }
    }
}

/// A person who orders a retry becomes an author, too. If one author is not known, the list is empty, because nobody can be shown
/// to be another person.
fn with(authors: &[String], by: &str) -> Vec<String> {
    if authors.is_empty() || by.is_empty() {
        return vec![];
    }
    let others = authors.iter().map(String::as_str).filter(|author| *author != by);
    others.chain([by]).map(str::to_owned).collect()
}

/// The birth of a follow-up, from the record that names it.
pub(super) fn birth_of(parent: &Execution, (id, record): (&RecordId, &Record), follow_up: &FollowUp, cause: Cause) -> Birth {
    Birth {
        id: follow_up.execution,
        project: parent.project.clone(),
        context: parent.context.clone(),
        stage: follow_up.stage.to_string(),
        service: parent.service.clone(),
        sequence: follow_up.sequence.to_string(),
        revision: follow_up.revision.clone(),
        git_commit_id: Some(follow_up.revision.clone()).filter(|revision| !revision.is_empty()),
        authors: parent.authors.clone(),
        trigger_id: follow_up.trigger_id.clone(),
        accepted: parent.accepted,
        caused: record.at,
        class: Class::FollowUp,
        place: record.sends.iter().take_while(|other| other.execution != follow_up.execution).count() as u16,
        parent: Some(parent.id),
        epoch: parent.epoch,
        payload: keys::record_sort(id),
        data: record.base.clone(),
        done: Done::default(),
        cause,
    }
}

/// The labels that a context is listed by: those of the trigger that began it, unless there is too much of them.
pub(super) fn labels(data: &Object) -> Option<String> {
    let labels = data.get("labels")?.as_object().filter(|labels| !labels.is_empty())?;
    let text = serde_json::json!(labels).to_string();
    (text.len() <= MAX_LABELS).then_some(text)
}

/// The write of the context's item: it is created if necessary, kept from expiring too soon, and counts the execution unless that
/// was refused. The flags that were read must still hold, so that a pause or an abort in between applies to the execution.
fn context_write(ground: &Ground, (x, labels): (&Execution, Option<String>), now: Timestamp, retention: Span) -> Option<Write> {
    let expires = now + retention;
    let key = keys::context(&x.project, &x.context);
    let refused = x.outcome.is_some_and(|outcome| outcome.end == End::NeverStarted);
    Some(match &ground.context {
        LoadedContext { version: 0, .. } => {
            let item = codec::new_context(&x.project, &x.context, &x.sequence, &x.service, x.accepted);
            let item = item.with_some("n", (!refused).then_some(1i64)).with_some("lb", labels);
            Write::Put(item.with("ttl", expires.0 / 1000), Condition::Absent)
        }
        context if context.expires.is_none_or(|at| at < now + Span(retention.0 / 2)) => {
            codec::prolong_context(key, context, u32::from(!refused), expires)
        }
        _ if refused => return None,
        context => codec::count_executions(key, context, 1),
    })
}

/// The sequence to run, or why there is none, in Keptn's words where clients know them.
fn find(ground: &Ground, shipyard: &Shipyard, birth: &Birth, max_executions: u32) -> Result<Sequence, String> {
    let because = |why: String| format!("Unable to start sequence {}: {why}", birth.sequence);
    if !ground.project.exists {
        return Err(because(format!("no project named {} exists", birth.project)));
    }
    if birth.revision.is_empty() {
        return Err(because(format!("project {} has no shipyard", birth.project)));
    }
    if ground.context.executions >= max_executions {
        return Err(because(format!(
            "its context has {} executions already, {max_executions} are allowed (parameter MaxExecutions): sequences may be triggering \
             each other in a loop",
            ground.context.executions
        )));
    }
    let stage = shipyard.stage(&birth.stage);
    let stage = stage.ok_or_else(|| because(format!("no stage with name {} found", birth.stage)))?;
    let missing = || because(format!("no task sequence with name {} found in stage {}", birth.sequence, birth.stage));
    stage.sequence(&birth.sequence).ok_or_else(missing)
}

/// The start as a transition. If it would end the execution or cause others at once, the ordinary path handles it instead.
fn start(
    x: &Execution,
    (sequence, remediation): (&Sequence, Option<&Remediation>),
    ground: &Ground,
    birth: &Birth,
    now: Timestamp,
) -> Option<Transition> {
    let base: Object = first_payload(&birth.data, x);
    let facts = Facts {
        now,
        cause: birth.cause,
        flags: &ground.context.flags,
        sequence,
        current: (&ground.project.revision, &ground.project.shipyard),
        base: &base,
        events: &[],
        remediation,
        policy: ground.project.policy,
    };
    match decide(x, Input::Granted(x.ask), &facts) {
        Decision::Commit(started) => {
            let plain = started.next.outcome.is_none() && started.record.as_ref().is_none_or(|record| record.sends.is_empty());
            plain.then_some(*started)
        }
        _ => None,
    }
}
