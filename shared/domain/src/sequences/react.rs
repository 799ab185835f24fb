//! Answers to the open task: which of them count, when the task is complete, and how the answers are aggregated.

use super::Bare;
use super::advance::{Step, scope};
use super::approval::{check_decision, own};
use super::deadline::hasten;
use super::facts::{Decision, Facts, Transition, task};
use super::show;
use super::state::{EventRef, Execution, Lane, MAX_EXECUTORS, Reaction, ReactionKind, content, of_started};
use crate::access::known;
use crate::event::{APPROVAL_SOURCE, CloudEvent, EventType, Kind, Object, Status, TaskResult};
use crate::ids::RecordId;
use crate::payload::merge;
use crate::shipyard::{APPROVAL, Task};
use crate::time::Timestamp;
use serde_json::{Value, json};

/// Members of an answer's data that are not merged into the payload: the scope comes from the execution, and the result is
/// aggregated.
const NOT_MERGED: [&str; 6] = ["project", "stage", "service", "status", "result", "message"];

type Answer<'a> = (ReactionKind, &'a CloudEvent, Timestamp);

/// The earlier reactions whose events a decision needs, as (accepted at, content hash). Empty, unless this reaction completes the
/// task.
pub fn events_needed(x: &Execution, kind: ReactionKind) -> Vec<(Timestamp, u64)> {
    let more = |k: ReactionKind| x.count(k) + usize::from(kind == k);
    if !complete_with(more(ReactionKind::Started), more(ReactionKind::Finished)) {
        return vec![];
    }
    x.reactions.iter().filter(|reaction| reaction.has_data).map(|reaction| (reaction.at, reaction.content)).collect()
}

/// Whether a task is complete: at least as many `.finished` as `.started`, and at least one.
fn complete_with(started: usize, finished: usize) -> bool {
    started > 0 && finished >= started
}

pub(super) fn executor(x: &Execution, trigger: RecordId, answer: Answer<'_>, facts: &Facts<'_>) -> Decision {
    if let Some(decided) = not_open(x, trigger) {
        return decided;
    }
    let Some(task) = task(x, facts) else { return Decision::Settle };
    let (kind, event, at) = answer;
    if let Some((field, message)) = mismatch(x, kind.into(), event) {
        return Decision::Invalid(format!("{field}: {message}"));
    }
    match kind {
        _ if !x.waits_for_approval() => {}
        // A person's tool may send `.started` when somebody looks at the approval. The engine's own `.started` stands for all of
        // them.
        ReactionKind::Started => return Decision::Noted,
        ReactionKind::Finished => {
            return Decision::Invalid("an approval is decided through the API: keelway approve, keelway decline".into());
        }
    }
    let reaction = Reaction::of(event, kind, task.name.as_str(), at);
    if let Some(present) = x.reactions.iter().find(|present| present.identity == reaction.identity) {
        return if (present.content, present.at) == (reaction.content, reaction.at) {
            Decision::Settle
        } else if present.content == reaction.content {
            Decision::Duplicate
        } else {
            Decision::Invalid(format!(
                "source {:?} has sent another event with id {:?}: the first one stands",
                event.source, event.id
            ))
        };
    }
    if x.count(kind) >= MAX_EXECUTORS {
        return Decision::Invalid(format!("task {} has {MAX_EXECUTORS} executors already: no more are counted", task.name));
    }
    let mut step = Step::new(x, facts);
    step.record.absorbed.push(reaction.content);
    see(&mut step.next, event, reaction.result, task.name.as_str(), kind);
    step.next.reactions.push(reaction);
    step.next.bare.extend((kind == ReactionKind::Started).then(|| Bare::of(event, &task.name, at)).flatten());
    step.next.quick = false;
    let (started, finished) = (step.next.count(ReactionKind::Started), step.next.count(ReactionKind::Finished));
    show::answered(&mut step.next, started, event);
    if complete_with(started, finished) {
        step.last = Some(event.clone());
        step.answer = Bare::completing(x, &task.name, &trigger, answer);
        complete(step)
    } else {
        hasten(&mut step.next, facts);
        Transition::plain(step.next)
    }
}

pub(super) fn person(x: &Execution, trigger: RecordId, answer: Answer<'_>, facts: &Facts<'_>) -> Decision {
    if let Some(decided) = not_open(x, trigger) {
        return decided;
    }
    if !x.waits_for_approval() {
        return Decision::Invalid("this task is answered by executors, not by a person".into());
    }
    let (kind, event, at) = answer;
    let wrong = mismatch(x, kind.into(), event).or_else(|| check_decision(event).err());
    if let Some((field, message)) = wrong {
        return Decision::Invalid(format!("{field}: {message}"));
    }
    let by = event.data.get(APPROVAL).and_then(|approval| approval.get("by")).and_then(Value::as_str).unwrap_or_default();
    let approves = TaskResult::of(event.text("result")) != TaskResult::Fail;
    if let Some(why) = task(x, facts).and_then(|task| own(task, &x.authors, known(by))).filter(|_| approves) {
        return Decision::Invalid(why);
    }
    let mut step = Step::new(x, facts);
    step.record.absorbed.push(content(event));
    decided(step, trigger, event, at)
}

/// The time for an approval has passed: the engine declines it.
pub(super) fn nobody_decided(step: Step<'_>, task: &Task) -> Decision {
    let (x, facts) = (step.old, step.facts);
    let Some(trigger) = x.record else { return Decision::Settle };
    let mut data = scope(x);
    let message = format!("declined by the clock: nobody decided within {}", task.timeout.unwrap_or_default());
    for (member, value) in [("status", Status::Succeeded.as_str()), ("result", TaskResult::Fail.as_str()), ("message", &message)] {
        data.insert(member.into(), json!(value));
    }
    data.insert(APPROVAL.into(), json!({"by": "the clock"}));
    let event = CloudEvent {
        id: step.approval_id("finished"),
        source: APPROVAL_SOURCE.into(),
        ty: EventType::task(task.name.as_str(), Kind::Finished),
        time: facts.now,
        context: x.context.clone(),
        authors: vec![],
        triggered_id: Some(trigger.uuid().to_string()),
        git_commit_id: x.git_commit_id.clone(),
        data,
    };
    decided(step, trigger, &event, facts.now)
}

/// Absorbs the decision of an approval, which becomes an event of the commit, because it was not on the bus yet. Its source is the
/// engine's, and the bus's rule keeps such events out of the engine's queue: the engine must never receive its own events as
/// answers.
fn decided(mut step: Step<'_>, trigger: RecordId, event: &CloudEvent, at: Timestamp) -> Decision {
    let reaction = Reaction { status: Status::Succeeded, ..Reaction::of(event, ReactionKind::Finished, APPROVAL, at) };
    see(&mut step.next, event, reaction.result, APPROVAL, ReactionKind::Finished);
    show::decided(&mut step.next, event);
    let mut data = event.data.clone();
    data.insert("status".into(), json!(reaction.status.as_str()));
    step.recorded = true;
    step.record.events.push(crate::record::Draft {
        id: Some(step.approval_id("finished")),
        ty: event.ty.clone(),
        source: APPROVAL_SOURCE.into(),
        time: event.time,
        answers: crate::record::Answers::Event(trigger.uuid().to_string()),
        context: None,
        git_commit_id: step.next.git_commit_id.clone(),
        with_base: false,
        with: vec![],
        without: vec![],
        data,
    });
    step.next.reactions.push(reaction);
    step.last = Some(without_decider(event));
    complete(step)
}

/// The event without the identity of who decided, which is not passed on in the payload.
fn without_decider(event: &CloudEvent) -> CloudEvent {
    let mut event = event.clone();
    if let Some(Value::Object(own)) = event.data.get_mut(APPROVAL) {
        own.remove("by");
        if own.is_empty() {
            event.data.remove(APPROVAL);
        }
    }
    event
}

/// What the trigger in an answer refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The open task.
    Open,
    /// A task that is over.
    Late,
    /// No task of this execution.
    Unknown,
}

/// What a trigger refers to in this execution.
pub fn standing(x: &Execution, trigger: RecordId) -> Standing {
    if x.outcome.is_some() || trigger.number < x.task {
        Standing::Late
    } else if x.is_open() && x.record == Some(trigger) {
        Standing::Open
    } else {
        Standing::Unknown
    }
}

fn not_open(x: &Execution, trigger: RecordId) -> Option<Decision> {
    match standing(x, trigger) {
        Standing::Open => None,
        Standing::Late => Some(Decision::Late),
        Standing::Unknown => Some(Decision::Invalid("triggeredid names no task trigger of this context".into())),
    }
}

/// Why an answer does not fit the open task: the wrong field, and what to send. It must name the task, stage and service of its
/// trigger, because permissions on event types limit executors to their tasks.
pub fn mismatch(x: &Execution, kind: Kind, event: &CloudEvent) -> Option<(&'static str, String)> {
    let ty = EventType::task(x.open.as_ref()?.as_str(), kind);
    let expected = [("type", ty.as_str()), ("data.stage", x.stage.as_str()), ("data.service", x.service.as_str())];
    let given = [Some(event.ty.as_str()), event.text("stage"), event.text("service")];
    let ((field, _), given) = expected.into_iter().zip(given).find(|((_, value), given)| Some(*value) != *given)?;
    let (given, stage, service) = (given.unwrap_or_default(), x.stage.as_str(), x.service.as_str());
    let wanted = format!("answer it with type {ty:?}, data.stage {stage:?} and data.service {service:?}");
    Some((field, format!("is {given:?}, which does not match the task that triggeredid names: {wanted}")))
}

/// Records an answer for the views.
fn see(next: &mut Execution, event: &CloudEvent, result: TaskResult, task: &str, kind: ReactionKind) {
    let reference = EventRef::of(event);
    if kind == ReactionKind::Finished {
        if result == TaskResult::Fail || event.text("status") == Some("errored") {
            next.view.latest_failed = Some(reference.clone());
        }
        if let Some(evaluation) = event.data.get("evaluation").and_then(Value::as_object).filter(|_| task == "evaluation") {
            let score = evaluation.get("score").map(Value::to_string).unwrap_or_default();
            next.view.evaluation = Some((result, score));
        }
    }
    next.view.latest = Some(reference);
}

/// Completes the open task: aggregates and merges the answers, and continues.
pub(super) fn complete(mut step: Step<'_>) -> Decision {
    let facts = step.facts;
    let Some(task) = task(step.old, facts) else { return Decision::Settle };
    let (result, status) = aggregate(&step.next.reactions);
    let mut events: Vec<&CloudEvent> = facts.events.iter().collect();
    let completing = step.last.take();
    events.extend(completing.as_ref());
    // Ordered by attributes of the events, so that the order of delivery does not matter.
    events.sort_by_key(|event| (event.time, event.source.clone(), event.id.clone()));
    let is_started = |event: &&CloudEvent| event.ty.ends_with(".started");
    for event in events.iter().filter(|event| is_started(event)) {
        absorb(&mut step, &of_started(event, task.name.as_str()));
    }
    for event in events.iter().filter(|event| !is_started(event)) {
        let own: Object = event.data.iter().filter(|(name, _)| !NOT_MERGED.contains(&name.as_str())).map(owned).collect();
        absorb(&mut step, &own);
    }
    step.last = events.iter().rfind(|event| !is_started(event)).map(|event| (*event).clone());
    if step.last.as_ref().is_some_and(|event| event.data.contains_key("message")) {
        step.record.base.insert("message".into(), json!(""));
    }
    let told = step.last.clone();
    show::task_done(&mut step, task, result, told.as_ref());
    step.task_done(task, result, status);
    if step.refuse_if_too_large(task, &Object::new()) {
        return step.commit();
    }
    go_on(step, result, status)
}

fn owned((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
}

fn absorb(step: &mut Step<'_>, data: &Object) {
    for path in merge(&mut step.record.base, data) {
        step.record.notes.push(format!("data.{path} was cut to its newest {} entries", crate::payload::MAX_LIST));
    }
}

fn go_on(mut step: Step<'_>, result: TaskResult, status: Status) -> Decision {
    let last = usize::from(step.next.task) >= step.facts.sequence.tasks.len();
    if result == TaskResult::Fail || status == Status::Errored || last {
        step.end_normally();
    } else if !step.next.paused {
        match step.next.lane {
            Lane::Holds => step.next_task(),
            Lane::Wants => {}
            Lane::None => {
                step.next.lane = Lane::Wants;
                step.next.ask += 1;
            }
        }
        step.arm();
    }
    step.commit()
}

/// The result is the worst one; everything except pass and warning is fail. The status is errored before aborted before succeeded;
/// everything else is unknown, and makes the result fail.
fn aggregate(reactions: &[Reaction]) -> (TaskResult, Status) {
    let finished = || reactions.iter().filter(|reaction| reaction.kind == ReactionKind::Finished);
    let any = |status: Status| finished().any(|reaction| reaction.status == status);
    let result = finished().map(|reaction| reaction.result).max().unwrap_or(TaskResult::Fail);
    if any(Status::Errored) {
        (result, Status::Errored)
    } else if any(Status::Aborted) {
        (result, Status::Aborted)
    } else if any(Status::Unknown) {
        (TaskResult::Fail, Status::Unknown)
    } else {
        (result, Status::Succeeded)
    }
}
