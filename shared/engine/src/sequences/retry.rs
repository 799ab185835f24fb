//! Retry: an ended execution is repeated from a task on, with the payload that this task got. The retry is an execution of its own,
//! in the same context, and keeps the definition that the first one had.
//!
//! The API finds what to repeat and hands the command in; the engine starts the execution as it starts any other. Its id follows
//! from the execution it repeats, so each is repeated at most once, and a request that is sent twice is one retry.

use super::birth::{Origin, Start};
use super::load::payload;
use super::message::{Address, Message};
use super::{Loaded, Sequences, keys};
use crate::item::Key;
use crate::ports::{PortError, Ports, Query};
use crate::projects::stage_of;
use crate::protocol::{Handled, record, run};
use crate::refusal::Refusal;
use crate::table;
use keelway_domain::cause::Cause;
use keelway_domain::event::{Object, Status, TaskResult};
use keelway_domain::ids::{ExecutionId, RecordId};
use keelway_domain::names::{Context, ProjectName, StageName, TaskName};
use keelway_domain::sequences::{Class, End, Execution, is_separate};
use keelway_domain::shipyard::{APPROVAL, Sequence, Shipyard};

/// Executions of a context among which the one to repeat is looked for: as many as operators can allow.
const EXECUTIONS: usize = 100_000;

/// Where the retry of an execution is or would be; `None`: its definition cannot be repeated.
pub(crate) fn address(old: &Execution) -> Option<Address> {
    let (stage, name) = old.stage_name().zip(old.sequence_name())?;
    Some(Address { execution: ExecutionId::of_follow_up(old.id, "retry", &stage, &name), ..Address::of(old) })
}

/// What is to be repeated.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted<'a> {
    /// The execution's id; absent: the one of the context that failed last.
    pub execution: Option<&'a str>,
    /// Only executions in this stage.
    pub stage: Option<&'a str>,
    /// The task to begin with; absent: the one that failed.
    pub from: Option<&'a str>,
}

/// A retry that can be handed in.
#[derive(Debug, Clone, PartialEq)]
pub struct Retried {
    /// The execution that has ended.
    pub old: Box<Execution>,
    /// The one that repeats it.
    pub to: Address,
    /// The task it begins with.
    pub task: TaskName,
    /// Its index.
    pub from: u16,
    /// The approval that it would begin behind: it reaches one execution, so somebody who may give it has to ask.
    pub behind: Option<Behind>,
    /// The sequence otherwise follows the end of another one.
    pub follow_up: bool,
}

/// An approval that came before a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Behind {
    /// Its stage.
    pub stage: StageName,
    /// Nobody gives it to what is their own ([`is_separate`]), so nobody begins behind it by themselves.
    pub separate: bool,
}

impl<P: Ports> Sequences<P> {
    /// Hands in a retry of an ended execution, for somebody who may begin it behind an approval.
    ///
    /// # Errors
    /// As [`Self::to_retry`].
    pub async fn retry(&self, project: &ProjectName, context: &Context, wanted: Wanted<'_>) -> Result<Retried, Refusal> {
        let retried = self.to_retry(project, context, wanted).await?;
        self.send_retry(&retried, "").await?;
        Ok(retried)
    }

    /// Hands in a retry for somebody.
    ///
    /// # Errors
    /// A port fails.
    pub async fn send_retry(&self, retried: &Retried, by: &str) -> Result<(), PortError> {
        let (of, by) = (retried.old.id, by.to_owned());
        let letter = Message::Retry { to: retried.to.clone(), of, from: retried.from, by }.letter();
        table::send_all(&self.ports, &[letter]).await
    }

    /// What a retry of an ended execution would be.
    ///
    /// # Errors
    /// Unknown context, execution, stage or task; nothing that failed, or more than one; an execution that is open, never started,
    /// or has been repeated from another task; a payload that has expired.
    pub async fn to_retry(&self, project: &ProjectName, context: &Context, wanted: Wanted<'_>) -> Result<Retried, Refusal> {
        let known = self.projects().get(project).await?;
        if let Some(stage) = wanted.stage {
            stage_of(&known.shipyard, stage)?;
        }
        let query = Query::table(keys::context_partition(project, context), 100).prefix(keys::EXECUTION);
        let (items, _) = table::all(&self.ports, query, EXECUTIONS).await?;
        let all = items.iter().map(|item| Ok(Loaded::read(item)?.x)).collect::<Result<Vec<Execution>, PortError>>()?;
        let old = pick(&all, (project, context), wanted)?;
        stage_of(&known.shipyard, &old.stage)?;
        let sequence = self.sequence(&old).await?;
        let from = first_task(&old, &sequence, wanted.from)?;
        let conflict = |message: String| Err(Refusal::Conflict(message));
        let task = sequence.tasks.get(usize::from(from)).map(|task| task.name.clone());
        let Some((to, task)) = address(&old).zip(task) else {
            return conflict(format!("execution {} has no definition that could be repeated: trigger its sequence again", old.id));
        };
        if let Some(again) = all.iter().find(|x| x.id == to.execution) {
            let began = began_with(again);
            if wanted.from.is_some() && began != from {
                let task = sequence.tasks.get(usize::from(began)).map(|task| task.name.as_str()).unwrap_or_default();
                return conflict(format!(
                    "execution {} is repeated already, from task {task} on: retry execution {}",
                    old.id, again.id
                ));
            }
        } else if self.payload_before(&old, from).await?.is_none() {
            return conflict(format!(
                "the payload of task {task} is not kept: it has expired, or the engine decided the task together with the one before \
                 it; name another task, or trigger the sequence again"
            ));
        }
        let behind = self.behind(&all, (&old, &sequence), from).await?;
        let follow_up = follows(&known.shipyard, &old) || sequence.is_follow_up();
        Ok(Retried { old: Box::new(old), to, task, from, behind, follow_up })
    }

    /// The approval that this task of an execution comes behind: one in its own sequence, or in one of the same stage that passed
    /// and that it followed. What follows a failure, a rollback for example, was not what was approved.
    async fn behind(
        &self,
        all: &[Execution],
        (old, sequence): (&Execution, &Sequence),
        from: u16,
    ) -> Result<Option<Behind>, PortError> {
        // Of several, the strictest counts: nobody is asked, somebody is, or somebody else.
        let asks = |sequence: &Sequence, tasks: usize| {
            let approvals = sequence.tasks.iter().take(tasks).filter(|task| task.name.as_str() == APPROVAL);
            approvals.map(is_separate).max()
        };
        let (mut x, mut asked) = (old, asks(sequence, usize::from(from)));
        while let Some(before) = x.parent.and_then(|id| all.iter().find(|other| other.id == id)).filter(|_| asked != Some(true)) {
            if x.retry_of().is_none() {
                let passed = before.outcome.is_some_and(|outcome| outcome.result != TaskResult::Fail);
                if !passed || before.stage != old.stage {
                    break;
                }
                asked = asked.max(asks(&self.sequence(before).await?, usize::MAX));
            }
            x = before;
        }
        Ok(old.stage_name().zip(asked).map(|(stage, separate)| Behind { stage, separate }))
    }

    /// Whether a retry has become an execution.
    ///
    /// # Errors
    /// A port fails.
    pub async fn has_begun(&self, to: &Address) -> Result<bool, PortError> {
        Ok(self.execution(to).await?.is_some())
    }

    /// The retry's message: it starts the execution.
    pub(crate) async fn start_again(
        &self,
        to: &Address,
        of: ExecutionId,
        (from, by): (u16, &str),
        cause: Cause,
    ) -> Result<Handled, PortError> {
        let of = Address { execution: of, ..to.clone() };
        let Some(loaded) = self.execution(&of).await?.filter(|loaded| loaded.x.outcome.is_some()) else {
            return Ok(Handled::Stale);
        };
        let Some((payload, data)) = self.payload_before(&loaded.x, from).await? else {
            tracing::warn!(execution = %of.execution, from, "the payload that a retry needs is gone");
            return Ok(Handled::Stale);
        };
        let service = loaded.x.service.clone();
        let origin = Origin::Retry { old: &loaded.x, from, by, payload, data };
        run(self, cause, &Start { to: to.clone(), service, accepted: cause.sent, cause, origin }).await
    }

    /// The payload that a task of an ended execution was triggered with, and the sort key of the item that holds it: the record of
    /// the commit that triggered the task; of the first task, the trigger; of what a retry did not repeat, that of the execution
    /// before.
    async fn payload_before(&self, x: &Execution, task: u16) -> Result<Option<(String, Object)>, PortError> {
        let mut x = x.clone();
        loop {
            // What began from outside begins again with its trigger: its own record would make the client's result look like one of
            // a task.
            let mut next = x.record.filter(|_| task > 0 || x.class == Class::FollowUp);
            while let Some(id) = next {
                if id.number == task {
                    return self.payload_at(&x, keys::record_sort(&id)).await;
                }
                let behind = id.number != RecordId::END && id.number < task;
                let record = if behind { None } else { record::read(&self.ports, &x, &id).await? };
                next = record.and_then(|record| record.previous(x.id));
            }
            let Some(old) = x.retry_of().filter(|_| task <= began_with(&x)) else { break };
            let to = Address { execution: old, ..Address::of(&x) };
            let Some(loaded) = self.execution(&to).await? else { return Ok(None) };
            x = loaded.x;
        }
        if task > 0 || x.retry_of().is_some() { Ok(None) } else { self.payload_at(&x, x.payload.clone()).await }
    }

    async fn payload_at(&self, x: &Execution, sort: String) -> Result<Option<(String, Object)>, PortError> {
        let key = Key::new(keys::context_partition(&x.project, &x.context), sort);
        let items = self.read(std::slice::from_ref(&key)).await?;
        Ok(items.get(&key).and_then(payload).map(|data| (key.sk, data)))
    }
}

/// The execution that a request means.
fn pick(all: &[Execution], (project, context): (&ProjectName, &Context), wanted: Wanted<'_>) -> Result<Execution, Refusal> {
    if all.is_empty() {
        let hint = format!("project {project} has no such context; list them with GET /v1/sequence/{project}");
        return Err(Refusal::Unknown { kind: "context", name: context.to_string(), hint });
    }
    let conflict = |message: String| Err(Refusal::Conflict(message));
    if let Some(id) = wanted.execution {
        let found = all.iter().find(|x| x.id.to_string() == id);
        let hint = || {
            format!("context {context} has no such execution: they are listed by GET /v1/sequence/{project}?keptnContext={context}")
        };
        let unknown = || Refusal::Unknown { kind: "execution", name: id.chars().take(50).collect(), hint: hint() };
        let x = found.ok_or_else(unknown)?;
        return match x.outcome.map(|outcome| outcome.end) {
            None => conflict(format!("execution {id} is open: abort it, or wait for its end")),
            Some(End::NeverStarted) => conflict(format!("execution {id} has never started: trigger the sequence again")),
            Some(_) => Ok(x.clone()),
        };
    }
    let here = |x: &&Execution| wanted.stage.is_none_or(|stage| x.stage == stage);
    let repeated = |x: &Execution| all.iter().any(|other| other.retry_of() == Some(x.id));
    let ended = |x: &&Execution| x.outcome.is_some_and(|outcome| outcome.end != End::NeverStarted) && !repeated(x);
    let candidates: Vec<&Execution> =
        all.iter().filter(here).filter(ended).filter(|x| wanted.from.is_some() || failed(x)).collect();
    let newest = candidates.iter().max_by_key(|x| (x.outcome.map(|outcome| outcome.at), x.caused));
    let Some(newest) = newest else {
        // The same request again, while the retry it made goes on.
        let under_way = |x: &&Execution| all.iter().any(|retry| retry.outcome.is_none() && retry.retry_of() == Some(x.id));
        if let Some(again) = all.iter().filter(here).find(under_way) {
            return Ok(again.clone());
        }
        return match all.iter().filter(here).find(|x| x.outcome.is_none()) {
            Some(open) => {
                conflict(format!("sequence {} in stage {} is still open, and nothing else failed", open.sequence, open.stage))
            }
            None => conflict(
                "nothing failed there that was not repeated: name the task to begin with, and it is repeated anyway".into(),
            ),
        };
    };
    let place = |x: &Execution| format!("{} of {} in stage {}", x.sequence, x.service, x.stage);
    match candidates.iter().find(|x| place(x) != place(newest)) {
        Some(other) => conflict(format!(
            "more than one sequence can be repeated, for example {} and {}: name the execution, or the stage",
            place(newest),
            place(other)
        )),
        None => Ok((*newest).clone()),
    }
}

/// Whether the shipyard in force has its sequence follow the end of another one.
fn follows(shipyard: &Shipyard, x: &Execution) -> bool {
    let sequence = shipyard.stage(&x.stage).and_then(|stage| stage.sequence(&x.sequence));
    sequence.is_some_and(|sequence| sequence.is_follow_up())
}

/// Whether an execution ended in another way than well.
fn failed(x: &Execution) -> bool {
    x.outcome.is_some_and(|outcome| outcome.result == TaskResult::Fail || outcome.status != Status::Succeeded)
}

/// The index of the task that an execution began with; only a retry begins with another one than the first. What follows an
/// execution's end begins with the payload of that end's record, and so does its retry from the first task on.
fn began_with(x: &Execution) -> u16 {
    let record = keys::record_id(&x.payload).filter(|id| x.retry_of().is_some() && id.number != RecordId::END);
    record.map_or(0, |id| id.number)
}

/// The index of the task to begin with: of the last one reached that has this name, else of the one that failed.
fn first_task(x: &Execution, sequence: &Sequence, named: Option<&str>) -> Result<u16, Refusal> {
    let interrupted = x.outcome.is_some_and(|outcome| matches!(outcome.end, End::TimedOut | End::Aborted));
    let last = usize::from(x.task).saturating_sub(usize::from(!interrupted)).min(sequence.tasks.len().saturating_sub(1));
    let index = match named {
        None => last,
        Some(name) => {
            let known = || sequence.tasks.iter().map(|task| task.name.as_str());
            if !known().any(|task| task == name) {
                return Err(Refusal::unknown("task", name, known()));
            }
            let reached = known().take(last + 1).collect::<Vec<_>>().iter().rposition(|task| *task == name);
            let message =
                || format!("task {name} was not reached: begin with {} or one before it", known().nth(last).unwrap_or_default());
            reached.ok_or_else(|| Refusal::Invalid { field: "from", message: message() })?
        }
    };
    Ok(u16::try_from(index).unwrap_or(u16::MAX))
}
