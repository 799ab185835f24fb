//! The strategy `sequence`: a sequence of a shipyard carries out the promotion.
//!
//! The id and context of the trigger are derived from the identity of the promotion. So an earlier trigger is found, and a trigger
//! that arrives twice starts the sequence once.

use crate::border;
use crate::keptn::preflight::Preflight;
use crate::ports::{PortError, Ports};
use crate::promotions::attempts::Task;
use crate::protocol::{Inbox, Loaded};
use crate::refusal::Refusal;
use crate::sequences::{Address, Sequences, keys};
use crate::table;
use keelway_domain::border::{Act, NoConsent, Reached};
use keelway_domain::condition::Condition;
use keelway_domain::event::{CloudEvent, Object, PROMOTION, TaskResult};
use keelway_domain::ids::{ExecutionId, SubjectId, context_of, event_id};
use keelway_domain::names::{Context, ProjectName, SequenceName, ServiceName};
use keelway_domain::promotions::definition::Sequence;
use keelway_domain::promotions::{AttemptResult, Closed, Made, Retry, SOURCE, Seen};
use keelway_domain::sequences::{End, Execution};
use keelway_domain::time::Span;
use serde_json::json;

/// How long an attempt waits for its sequence to be accepted.
const PATIENCE: Span = Span::seconds(10);
/// How often it looks.
const LOOK: Span = Span(200);

/// Triggers the sequence, unless it was triggered before.
///
/// # Errors
/// A port fails.
pub async fn carry_out<P: Ports>(engine: &Sequences<P>, task: &Task, sequence: &Sequence) -> Result<AttemptResult, PortError> {
    let Some(to) = address(task, sequence) else { return Ok(refused(unusable(task, sequence))) };
    let made = AttemptResult::Created(Made::Sequence { context: to.context.to_string() });
    if execution(engine, &to).await?.is_some() {
        return Ok(made);
    }
    let event = match let_in(engine, task, sequence).await? {
        Ok(stage) => trigger(task, sequence, &stage),
        // A person orders another attempt when the consent was given.
        Err(no) => return Ok(AttemptResult::Failed { why: Condition::new("NoConsent", no.to_string()), retry: Retry::Never }),
    };
    match engine.preflight(&event).await {
        Ok(Preflight::Publish { .. }) => table::publish(engine.ports(), std::slice::from_ref(&event)).await?,
        Ok(Preflight::Known | Preflight::Answer { .. } | Preflight::Decision(..)) => return Ok(made),
        Err(Refusal::Port(error)) => return Err(error),
        Err(refusal) => return Ok(refused(refusal.to_string())),
    }
    let until = engine.ports().now() + PATIENCE;
    while engine.ports().now() < until {
        if execution(engine, &to).await?.is_some() {
            return Ok(made);
        }
        engine.ports().pause(LOOK).await;
    }
    let message = format!("{} was triggered, but the sequence has not begun yet", event.ty);
    Ok(AttemptResult::Failed { why: Condition::new("SequenceNotAccepted", message), retry: Retry::Backoff })
}

/// The state of the sequence. `None`: it continues.
///
/// # Errors
/// A port fails.
pub async fn follow<P: Ports>(engine: &Sequences<P>, task: &Task, sequence: &Sequence) -> Result<Option<Seen>, PortError> {
    let Some(to) = address(task, sequence) else { return Ok(None) };
    let x = execution(engine, &to).await?;
    Ok(x.as_ref().and_then(|x| x.outcome.as_ref()).map(|outcome| {
        let ty = ty(place(task, sequence).1, sequence);
        let tell = |how: &str| format!("{} {how} (context {})", ty.trim_end_matches(".triggered"), to.context);
        match (outcome.end, outcome.result) {
            (End::Aborted, _) => Seen::Closed(tell("was aborted")),
            (End::TimedOut, _) => Seen::Failed(tell("timed out")),
            (_, TaskResult::Pass) => Seen::Succeeded(tell("passed")),
            (_, TaskResult::Warning) => Seen::Succeeded(tell("passed with a warning")),
            (_, TaskResult::Fail) => Seen::Failed(tell("failed")),
        }
    }))
}

/// Aborts the sequence unless it has ended, even if its trigger has not arrived yet. A sequence in a project that no longer
/// consents is left to that project.
///
/// # Errors
/// A port fails.
pub async fn take_back<P: Ports>(engine: &Sequences<P>, task: &Task, sequence: &Sequence) -> Result<Closed, PortError> {
    if let Some(Seen::Succeeded(how)) = follow(engine, task, sequence).await? {
        return Ok(Closed::Merged(how));
    }
    let Some(to) = address(task, sequence) else { return Ok(Closed::Closed) };
    if let Err(no) = let_in(engine, task, sequence).await? {
        tracing::warn!(pipeline = %task.of, context = %to.context, reason = %no, "a sequence is not aborted");
        return Ok(Closed::Closed);
    }
    let (Ok(name), Ok(service)) = (SequenceName::new(&sequence.name), ServiceName::new(&sequence.service)) else {
        return Ok(Closed::Closed);
    };
    match engine.abort_trigger((&to.project, &to.context), &name, &service).await {
        Err(Refusal::Port(error)) => Err(error),
        // The project does not exist, so nothing begins in it.
        Ok(()) | Err(_) => Ok(Closed::Closed),
    }
}

async fn execution<P: Ports>(engine: &Sequences<P>, to: &Address) -> Result<Option<Execution>, PortError> {
    let item = engine.ports().get(&keys::execution(to)).await?;
    Ok(item.as_ref().map(Loaded::<Execution>::read).transpose()?.map(|loaded| loaded.x))
}

fn refused(message: String) -> AttemptResult {
    AttemptResult::Failed { why: Condition::new("TriggerRefused", message), retry: Retry::Backoff }
}

fn place<'a>(task: &'a Task, sequence: &'a Sequence) -> (&'a str, &'a str) {
    sequence.place(&task.of.namespace, &task.attempt.environment)
}

fn unusable(task: &Task, sequence: &Sequence) -> String {
    format!("{:?} cannot be the name of a project: name it in strategy.sequence.project", place(task, sequence).0)
}

/// The stage, if its project lets the pipeline's namespace trigger sequences there.
async fn let_in<P: Ports>(
    engine: &Sequences<P>,
    task: &Task,
    sequence: &Sequence,
) -> Result<Result<Reached, NoConsent>, PortError> {
    border::let_in(engine.ports(), &task.of.namespace, Act::Trigger, place(task, sequence)).await
}

/// The context and the id of the event, which follow from the promotion.
fn identity(task: &Task) -> (Context, String) {
    let promotion = SubjectId(task.identity());
    let context = Context::of(&context_of(SOURCE, &promotion.to_string()).to_string());
    (context, event_id(promotion, "trigger").to_string())
}

/// The execution that the event starts.
fn address(task: &Task, sequence: &Sequence) -> Option<Address> {
    let (context, id) = identity(task);
    let project = ProjectName::new(place(task, sequence).0).ok()?;
    let execution = ExecutionId::of_trigger(&project, &context, SOURCE, &id);
    Some(Address { project, context, execution })
}

fn ty(stage: &str, sequence: &Sequence) -> String {
    format!("sh.keptn.event.{stage}.{}.triggered", sequence.name)
}

/// The event that triggers the sequence in a stage.
fn trigger(task: &Task, sequence: &Sequence, stage: &Reached) -> CloudEvent {
    let (context, id) = identity(task);
    let attempt = &task.attempt;
    let data = json!({
        "project": stage.namespace(),
        "stage": stage.name(),
        "service": sequence.service,
        "configurationChange": {"values": {"image": attempt.revision}},
        PROMOTION: {
            "namespace": task.of.namespace,
            "pipeline": task.of.name,
            "environment": attempt.environment,
            "revision": attempt.revision,
            "run": attempt.run,
        },
    });
    CloudEvent {
        id,
        source: SOURCE.into(),
        ty: ty(stage.name(), sequence),
        time: task.since,
        context,
        authors: task.authors.clone(),
        triggered_id: None,
        git_commit_id: None,
        data: data.as_object().cloned().unwrap_or_else(Object::new),
    }
}
