//! Checks of a client's event before it is put on the bus, so that the client learns at once what cannot work. The engine decides
//! again when it handles the event: the state may have changed by then.

use crate::ports::{Consistency, PortError, Ports};
use crate::projects::{self, Project, sequence_of};
use crate::protocol::record;
use crate::refusal::Refusal;
use crate::sequences::commands::unknown_approval;
use crate::sequences::domain_event::other_content;
use crate::sequences::{Address, Loaded, Sequences, keys};
use crate::table::{self, Items};
use keelway_domain::event::{CloudEvent, EventType, Kind};
use keelway_domain::ids::{ExecutionId, RecordId};
use keelway_domain::names::{ProjectName, ServiceName};
use keelway_domain::sequences::{
    End, Execution, Policy, ReactionKind, Standing, content, deadline, domain_event_starts, identity, mismatch, standing,
};
use keelway_domain::shipyard::APPROVAL;

/// What to do with a client's event.
#[derive(Debug, Clone, PartialEq)]
pub enum Preflight {
    /// Put it on the bus.
    Publish {
        /// It starts by hand what otherwise follows the end of another sequence.
        follow_up: bool,
    },
    /// It answers a task: pass it to [`Sequences::take`].
    Answer {
        /// Of an answer that does not count as it is: why, and when it will.
        note: Option<String>,
        /// It was taken before; if that was not completed, it is now.
        known: bool,
        /// What was read to check it, which may be old.
        read: Items,
    },
    /// The same event was accepted before: give the same answer, and do nothing.
    Known,
    /// It decides an approval: pass it to [`Sequences::decide`].
    Decision(Address, RecordId),
}

impl Preflight {
    const PUBLISH: Self = Self::Publish { follow_up: false };
}

impl<P: Ports> Sequences<P> {
    /// Whether a sequence of a shipyard otherwise follows the end of another one; one that is not there does not.
    ///
    /// # Errors
    /// A port fails.
    pub async fn is_follow_up(&self, project: &str, (stage, sequence): (&str, &str)) -> Result<bool, PortError> {
        match self.projects().find(project).await {
            Ok(known) => Ok(sequence_of(&known.shipyard, stage, sequence).is_ok_and(|sequence| sequence.is_follow_up())),
            Err(Refusal::Port(error)) => Err(error),
            Err(_) => Ok(false),
        }
    }

    /// Checks a client's well-formed event: does what it names exist, does an answer fit the task it answers, and was the event
    /// accepted before?
    ///
    /// # Errors
    /// Unknown project, stage, sequence or task trigger; an answer of another type, stage or service than its trigger's; an event
    /// that triggers nothing; the same source and id with other content.
    pub async fn preflight(&self, event: &CloudEvent) -> Result<Preflight, Refusal> {
        let ty = EventType::parse(&event.ty);
        if matches!(&ty, EventType::Other(name) if Self::is_history(name)) || Self::is_about_values(event) {
            if let Some(project) = event.text("project") {
                self.projects().find(project).await?;
            }
            return Ok(Preflight::PUBLISH);
        }
        if let EventType::Task(task, kind) = &ty {
            return self.answer_fits(event, (task.as_str(), *kind)).await;
        }
        let project = self.projects().find(event.text("project").unwrap_or_default()).await?;
        let name = &project.settings.name;
        match &ty {
            EventType::Sequence(stage, sequence, Kind::Triggered) => {
                service(event)?;
                if project.revision.is_none() {
                    let hint = format!("project {name} has no shipyard yet: apply one");
                    return Err(Refusal::Unknown { kind: "stage", name: stage.to_string(), hint });
                }
                let follow_up = sequence_of(&project.shipyard, stage.as_str(), sequence.as_str())?.is_follow_up();
                Ok(match self.trigger_taken(name, event).await? {
                    Preflight::Publish { .. } => Preflight::Publish { follow_up },
                    taken => taken,
                })
            }
            EventType::Other(_) => {
                service(event)?;
                match self.domain_event_known(name, event).await? {
                    Some(true) => return Ok(Preflight::Known),
                    Some(false) => return Err(Refusal::Conflict(other_content(event))),
                    None => {}
                }
                if domain_event_starts(&project.shipyard, &event.ty, &event.data).is_empty() {
                    let message = format!(
                        "unknown event type {:?}: no sequence of project {name} is triggered on it; name it in a sequence's triggeredOn, or \
                         send sh.keptn.event.<stage>.<sequence>.triggered",
                        event.ty
                    );
                    return Err(Refusal::Invalid { field: "type", message });
                }
                Ok(Preflight::PUBLISH)
            }
            EventType::Sequence(..) | EventType::Task(..) => Ok(Preflight::PUBLISH),
        }
    }

    /// Whether this trigger has started its execution already.
    async fn trigger_taken(&self, project: &ProjectName, event: &CloudEvent) -> Result<Preflight, Refusal> {
        let id = ExecutionId::of_trigger(project, &event.context, &event.source, &event.id);
        let to = Address { project: project.clone(), context: event.context.clone(), execution: id };
        let (of_execution, of_tombstone) = (keys::execution(&to), keys::tombstone(project, id));
        let items = self.read(&[of_execution.clone(), of_tombstone.clone()]).await?;
        match items.get(&of_execution).map(Loaded::read).transpose()? {
            Some(loaded) if !Self::started_by(&loaded.x, event) => Err(Refusal::Conflict(other_content(event))),
            Some(_) => Ok(Preflight::Known),
            None if items.contains_key(&of_tombstone) => Ok(Preflight::Known),
            None => Ok(Preflight::PUBLISH),
        }
    }

    /// Whether an answer fits the task that its `triggeredid` names, and whether it already counts there.
    async fn answer_fits(&self, event: &CloudEvent, (task, kind): (&str, Kind)) -> Result<Preflight, Refusal> {
        let given = given(event);
        let (named, trigger) = (event.text("project").unwrap_or_default(), RecordId::from_uuid(&given));
        let decides = task == APPROVAL && kind == Kind::Finished;
        let (Ok(project), Some(trigger)) = (ProjectName::new(named), trigger) else {
            self.projects().find(named).await?;
            let message = format!("{given:?} is no task trigger's id: send the id of the .triggered event that this answers");
            return Err(Refusal::Invalid { field: "triggeredid", message });
        };
        let to = Address { project: project.clone(), context: event.context.clone(), execution: trigger.subject };
        let mut wanted = vec![projects::keys::project(&project), keys::execution(&to)];
        // The payload that a `.finished` becomes part of.
        wanted.extend((kind == Kind::Finished).then(|| keys::record(&project, &to.context, &trigger)));
        // Usually an answer fits, and then this shows it for half of the price. What is old may also look like an answer that does
        // not, so everything else is said from what is read anew.
        if !decides && self.checks_with() == Consistency::Eventual {
            let glanced = table::glance(&self.ports, &wanted).await?;
            let fits = self.fits(event, (&to, trigger), (kind, decides), glanced).await;
            if matches!(fits, Ok(Preflight::Answer { note: None, known: false, .. })) {
                return fits;
            }
        }
        let read = self.read(&wanted).await?;
        self.fits(event, (&to, trigger), (kind, decides), read).await
    }

    /// The same by what was `read` about it.
    async fn fits(
        &self,
        event: &CloudEvent,
        (to, trigger): (&Address, RecordId),
        (kind, decides): (Kind, bool),
        read: Items,
    ) -> Result<Preflight, Refusal> {
        let project = &to.project;
        let Some(item) = read.get(&projects::keys::project(project)) else {
            return Err(self.projects().unknown(project.as_str()).await?);
        };
        let known = self.projects().read(project, item).await?;
        let x = match read.get(&keys::execution(to)).map(Loaded::read).transpose()? {
            Some(Loaded { x, .. }) if standing(&x, trigger) != Standing::Unknown => x,
            _ if decides => return Err(unknown_approval(project, &given(event))),
            _ => return Err(unknown_trigger(to, given(event))),
        };
        let open = standing(&x, trigger) == Standing::Open;
        if let Some((field, message)) = mismatch(&x, kind, event).filter(|_| open) {
            return Err(Refusal::Invalid { field, message });
        }
        if decides {
            return Ok(Preflight::Decision(to.clone(), trigger));
        }
        match x.reactions.iter().find(|reaction| open && reaction.identity == identity(event)) {
            Some(present) if present.content != content(event) => Err(Refusal::Conflict(other_content(event))),
            Some(_) => Ok(Preflight::Answer { note: None, known: true, read }),
            None => Ok(Preflight::Answer { note: self.note(&known, &x, (open, kind)).await?, known: false, read }),
        }
    }

    /// What whoever answers a task has to know, if the answer does not count as it is.
    async fn note(&self, known: &Project, x: &Execution, (open, kind): (bool, Kind)) -> Result<Option<String>, Refusal> {
        if !open {
            let why = match x.outcome.map(|outcome| outcome.end) {
                Some(End::Aborted) => "the sequence was aborted",
                Some(End::TimedOut) => "the sequence timed out",
                _ => "the task is over",
            };
            return Ok(Some(format!("{why}: this is recorded and counts no more; end what still works on the task")));
        }
        if kind != Kind::Finished || x.count(ReactionKind::Started) > 0 {
            return Ok(None);
        }
        let policy = Policy {
            start_deadline: known.settings.start_deadline.unwrap_or(self.limits.start_deadline),
            task_timeout: known.settings.task_timeout.unwrap_or(self.limits.task_timeout),
            max_event_bytes: self.limits.max_event_bytes,
            max_record_bytes: record::MAX_BYTES,
            polled: self.limits.polled,
        };
        let until = deadline(x, &self.sequence(x).await?, &policy);
        let until = until.map(|until| format!(", or else at {}", until.rfc3339())).unwrap_or_default();
        Ok(Some(format!("no .started has come for this task: this .finished counts as soon as one comes{until}")))
    }
}

/// The id of a task trigger as a client gives it, as far as an error repeats it.
fn given(event: &CloudEvent) -> String {
    event.triggered_id.as_deref().unwrap_or_default().chars().take(100).collect()
}

fn unknown_trigger(to: &Address, given: String) -> Refusal {
    let Address { project, context, .. } = to;
    let hint = format!(
        "project {project} has no task trigger of this id in context {context}: send triggeredid, shkeptncontext and data.project as the \
         .triggered event has them"
    );
    Refusal::Unknown { kind: "task trigger", name: given, hint }
}

fn service(event: &CloudEvent) -> Result<(), Refusal> {
    let checked = ServiceName::new(event.text("service").unwrap_or_default());
    checked.map(drop).map_err(|error| Refusal::Invalid { field: "data.service", message: error.to_string() })
}
