//! What people and their tools send to the engine through the API: decisions on approvals, control of a context. `preflight` checks
//! their events.
//!
//! Decisions go to the queue. Control is desired state: one conditional write, then a message to the executions concerned.

use super::codec::{self, LoadedContext};
use super::message::{Address, Message};
use super::{Loaded, Sequences, keys};
use crate::item::Item;
use crate::ports::{Condition, PortError, Ports, Query, Write, Written};
use crate::projects::stage_of;
use crate::protocol::change::{Step, change};
use crate::protocol::{VISIBLE, record};
use crate::refusal::Refusal;
use crate::table;
use keelway_domain::access::is_same;
use keelway_domain::event::{CloudEvent, EventType, Kind, TaskResult};
use keelway_domain::ids::{RecordId, event_id};
use keelway_domain::names::{Context, ProjectName, SequenceName, ServiceName};
use keelway_domain::record::Answers;
use keelway_domain::sequences::{End, Execution, Flags, own};
use keelway_domain::shipyard::APPROVAL;
use keelway_domain::time::Timestamp;
use serde_json::{Value, json};

/// The `source` of decisions that come without an event of their own.
pub const DECISION_SOURCE: &str = "https://keelway.dev/api";

/// The state of an approval.
#[derive(Debug, Clone, PartialEq)]
pub enum Approval {
    /// Not decided yet; the execution that waits.
    Open(Box<Execution>),
    /// It was decided.
    Decided {
        /// How.
        result: TaskResult,
        /// By whom, if given; otherwise by which source.
        by: String,
        /// When.
        at: Timestamp,
    },
    /// It ended without a decision, for this reason.
    Closed(&'static str),
}

/// A person's decision.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verdict {
    /// Go on.
    pub approve: bool,
    /// Why; shown with the sequence's end if it ends there.
    pub message: Option<String>,
    /// Who.
    pub by: Option<String>,
}

/// What to do with a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// Hold back what would be triggered next.
    Pause,
    /// Go on.
    Resume,
    /// End everything that was accepted before.
    Abort,
}

impl Control {
    /// Reads `pause`, `resume`, `abort`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "pause" => Some(Self::Pause),
            "resume" => Some(Self::Resume),
            "abort" => Some(Self::Abort),
            _ => None,
        }
    }
}

impl<P: Ports> Sequences<P> {
    /// The state of an approval, by the id of its `.triggered` event.
    ///
    /// # Errors
    /// An approval that never existed, or whose history has expired.
    pub async fn approval(&self, to: &Address, trigger: RecordId) -> Result<Approval, Refusal> {
        let unknown = || unknown_approval(&to.project, &trigger.uuid().to_string());
        let items = self.read(&[keys::execution(to)]).await?;
        let item = items.values().next().ok_or_else(unknown)?;
        let x = Loaded::read(item)?.x;
        if x.is_open() && x.record == Some(trigger) {
            return if x.waits_for_approval() { Ok(Approval::Open(Box::new(x))) } else { Err(unknown()) };
        }
        let (id, record) = record::follower(&self.ports, &x, trigger).await?.ok_or_else(unknown)?;
        let answer = Answers::Event(trigger.uuid().to_string());
        let finished = EventType::task(APPROVAL, Kind::Finished);
        let decision = record
            .events
            .iter()
            .zip(record.events(&id, &x.context))
            .find(|(draft, _)| draft.answers == answer && draft.ty == finished);
        match decision {
            Some((_, event)) => Ok(Approval::Decided {
                result: TaskResult::of(event.text("result")),
                by: decided_by(&event).unwrap_or(&event.source).to_owned(),
                at: event.time,
            }),
            None => Ok(Approval::Closed(match x.outcome.map(|outcome| outcome.end) {
                Some(End::Aborted) => "the sequence was aborted",
                Some(End::TimedOut) => "the sequence timed out",
                _ => return Err(unknown()),
            })),
        }
    }

    /// Why somebody may not approve what waits for it, because it is their own. The definition is read only if it depends on that.
    ///
    /// # Errors
    /// A port fails.
    pub async fn own_approval(&self, x: &Execution, who: &str) -> Result<Option<String>, PortError> {
        if !x.authors.is_empty() && !x.authors.iter().any(|author| is_same(author, who)) {
            return Ok(None);
        }
        let sequence = self.sequence(x).await?;
        Ok(sequence.tasks.get(usize::from(x.task)).and_then(|task| own(task, &x.authors, who)))
    }

    /// Submits a decision on an open approval. [`Sequences::approval`] shows the outcome.
    ///
    /// # Errors
    /// A port fails.
    pub async fn decide(&self, x: &Execution, trigger: RecordId, event: &CloudEvent) -> Result<(), PortError> {
        let message = Message::Decide { to: Address::of(x), trigger, event: event.to_json() };
        table::send_all(&self.ports, &[message.letter()]).await
    }

    /// A decision as the event it becomes. The same decision by the same person has the same id.
    pub fn decision_event(&self, x: &Execution, trigger: RecordId, verdict: &Verdict) -> CloudEvent {
        let trigger = trigger.uuid().to_string();
        let said = json!([trigger, verdict.approve, verdict.by, verdict.message]);
        let mut event = CloudEvent {
            id: event_id(x.id, &format!("decision-{said}")).to_string(),
            source: DECISION_SOURCE.into(),
            ty: EventType::task(APPROVAL, Kind::Finished),
            time: self.ports.now(),
            context: x.context.clone(),
            authors: vec![],
            triggered_id: Some(trigger),
            git_commit_id: None,
            data: scope(x),
        };
        let result = if verdict.approve { TaskResult::Pass } else { TaskResult::Fail };
        event.data.insert("result".into(), json!(result.as_str()));
        event.data.insert("status".into(), json!("succeeded"));
        event.data.insert("message".into(), json!(verdict.message.as_deref().unwrap_or_default()));
        if let Some(by) = &verdict.by {
            event.data.insert(APPROVAL.into(), json!({"by": by}));
        }
        event
    }

    /// A client's own `approval.finished`, with the scope of the execution it is about.
    pub fn decision_of(&self, x: &Execution, event: &CloudEvent) -> CloudEvent {
        let mut event = event.clone();
        event.data.extend(scope(x));
        // It is published under the engine's source; whose decision it was stays in its data.
        let by = event.data.entry(APPROVAL).or_insert_with(|| json!({}));
        if let Some(by) = by.as_object_mut() {
            by.entry("by").or_insert_with(|| json!(event.source));
        }
        event
    }

    /// Pauses, resumes or aborts a context, or one stage of it; returns how many executions were open there. This is idempotent; an
    /// abort applies to what was accepted before it, and ends the pause of what it aborts.
    ///
    /// # Errors
    /// Unknown project, context or stage; resuming one stage of a context that is paused as a whole.
    pub async fn control(
        &self,
        project: &ProjectName,
        context: &Context,
        stage: Option<&str>,
        what: Control,
    ) -> Result<usize, Refusal> {
        let known = self.projects().get(project).await?;
        if let Some(stage) = stage {
            stage_of(&known.shipyard, stage)?;
        }
        self.change_flags(project, context, |flags| desired(flags, stage, what)).await?;
        Ok(self.count_open(project, context, stage).await?)
    }

    /// Aborts what one trigger starts, also if it is still on its way: then its context is made now, and the execution ends at its
    /// birth, because that reads the flags and requires in its commit that they still hold.
    ///
    /// # Errors
    /// Unknown project.
    pub async fn abort_trigger(
        &self,
        (project, context): (&ProjectName, &Context),
        sequence: &SequenceName,
        service: &ServiceName,
    ) -> Result<(), Refusal> {
        self.projects().get(project).await?;
        let item = self.context_before_its_trigger(project, context, sequence.as_str(), service);
        let written = self.ports.write(&Write::Put(codec::closed_context(item), Condition::Absent)).await?;
        if written != Written::Done {
            self.control(project, context, None, Control::Abort).await?;
        }
        Ok(())
    }

    /// The item of a context whose trigger is still to come; it expires if none does.
    pub(super) fn context_before_its_trigger(
        &self,
        project: &ProjectName,
        context: &Context,
        sequence: &str,
        service: &ServiceName,
    ) -> Item {
        let now = self.ports.now();
        codec::new_context(project, context, sequence, service, now).with("ttl", (now + self.limits.retention).0 / 1000)
    }

    /// Changes the flags of a context and tells its executions; what is already so changes nothing.
    ///
    /// # Errors
    /// An unknown context; what `desired` refuses.
    pub(super) async fn change_flags(
        &self,
        project: &ProjectName,
        context: &Context,
        desired: impl Fn(&Flags) -> Result<Flags, Refusal> + Sync,
    ) -> Result<(), Refusal> {
        let key = keys::context(project, context);
        let changed = change(&self.ports, &key, |found| {
            let loaded: LoadedContext = codec::context(found);
            if loaded.version == 0 {
                return Err(unknown_context(project, context));
            }
            let flags = desired(&loaded.flags)?;
            Ok(match flags == loaded.flags {
                true => Step::Leave(()),
                false => Step::Write(codec::update_context(key.clone(), &loaded, &flags), ()),
            })
        });
        changed.await?;
        // Sent even when nothing changed: an earlier request may have stopped before it sent the message.
        let message = Message::Conform { project: project.clone(), context: context.clone(), after: String::new() };
        let letter = message.letter();
        table::send_all(&self.ports, std::slice::from_ref(&letter)).await?;
        // An execution whose start was committed before this may become visible after its context was checked.
        let later = self.ports.now() + VISIBLE;
        Ok(self.ports.send_at(letter.to, &format!("keelway-conform-{}", later.0), &letter.body, later).await?)
    }

    /// How many of a context's first 1,000 executions are open, in one stage or in all.
    async fn count_open(&self, project: &ProjectName, context: &Context, stage: Option<&str>) -> Result<usize, PortError> {
        let query = Query::table(keys::context_partition(project, context), 100).prefix(keys::EXECUTION);
        let (items, _) = table::all(&self.ports, query, 1000).await?;
        let concerned = |x: &Execution| x.outcome.is_none() && stage.is_none_or(|stage| x.stage == stage);
        Ok(items.iter().filter(|item| Loaded::read(item).is_ok_and(|loaded| concerned(&loaded.x))).count())
    }
}

/// The execution that a decision on the approval with that trigger is addressed to.
///
/// # Errors
/// An id that the engine did not make.
pub fn approval_address(project: &ProjectName, context: &Context, trigger: &str) -> Result<(Address, RecordId), Refusal> {
    let id = RecordId::from_uuid(trigger).ok_or_else(|| unknown_approval(project, trigger))?;
    Ok((Address { project: project.clone(), context: context.clone(), execution: id.subject }, id))
}

pub(crate) fn unknown_approval(project: &ProjectName, trigger: &str) -> Refusal {
    let hint = format!("the open ones are listed by GET /v1/event/triggered/approval?project={project}");
    Refusal::Unknown { kind: "approval", name: trigger.chars().take(100).collect(), hint }
}

pub(crate) fn unknown_context(project: &ProjectName, context: &Context) -> Refusal {
    let hint = format!("project {project} has no such context; list them with GET /v1/sequence/{project}");
    Refusal::Unknown { kind: "context", name: context.to_string(), hint }
}

fn decided_by(event: &CloudEvent) -> Option<&str> {
    event.data.get(APPROVAL)?.get("by")?.as_str()
}

fn scope(x: &Execution) -> keelway_domain::event::Object {
    let members = [("project", x.project.as_str()), ("stage", x.stage.as_str()), ("service", x.service.as_str())];
    members.into_iter().map(|(name, value)| (name.to_owned(), Value::from(value))).collect()
}

/// The flags of a context after a control of one stage, or of all.
pub fn desired(flags: &Flags, stage: Option<&str>, what: Control) -> Result<Flags, Refusal> {
    let mut flags = flags.clone();
    match (what, stage) {
        (Control::Pause, None) => flags.paused = true,
        (Control::Pause, Some(stage)) => drop(flags.paused_stages.insert(stage.to_owned())),
        (Control::Resume, None) => {
            flags.paused = false;
            flags.paused_stages.clear();
        }
        (Control::Resume, Some(stage)) if flags.paused => {
            return Err(Refusal::Conflict(format!(
                "the whole context is paused, not only stage {stage}: resume it without a stage"
            )));
        }
        (Control::Resume, Some(stage)) => drop(flags.paused_stages.remove(stage)),
        // What its trigger starts is aborted whenever it comes.
        (Control::Abort, _) if flags.aborted == Flags::ALL => {}
        (Control::Abort, stage) => {
            flags.epoch += 1;
            // What is aborted is over, so its pause is, too: a later trigger of the same context runs.
            match stage {
                Some(stage) => {
                    flags.aborted_stages.insert(stage.to_owned(), flags.epoch);
                    flags.paused_stages.remove(stage);
                }
                None => {
                    flags.aborted = flags.epoch;
                    flags.paused = false;
                    flags.paused_stages.clear();
                }
            }
        }
    }
    Ok(flags)
}
