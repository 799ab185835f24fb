//! The beginning of an execution: from a trigger, a follow-up or a domain event.

use super::advance::{Step, scope};
use super::facts::{Facts, Policy, Transition};
use super::flags::Flags;
use super::freeze::{Entrance, Passage};
use super::state::{Class, End, Execution, Lane, Outcome, TaskTimes, View};
use crate::cause::Cause;
use crate::event::{Object, Status, TaskResult};
use crate::ids::ExecutionId;
use crate::names::{Context, ProjectName, ServiceName};
use crate::shipyard::{Sequence, Shipyard};
use crate::time::Timestamp;
use serde_json::{Value, json};

/// What is known about an execution when it is caused.
#[derive(Debug, Clone, PartialEq)]
pub struct Birth {
    #[expect(missing_docs, reason = "the name says it")]
    pub id: ExecutionId,
    /// The project of the scope.
    pub project: ProjectName,
    /// The context of the scope.
    pub context: Context,
    /// The stage of the scope. Not validated, because a start may be refused for an invalid stage.
    pub stage: String,
    /// The service of the scope.
    pub service: ServiceName,
    /// The name of the sequence. Not validated, like the stage.
    pub sequence: String,
    /// The shipyard revision that it keeps.
    pub revision: String,
    /// The configuration that its executors should use.
    pub git_commit_id: Option<String>,
    /// The identities of those who triggered it. Empty: they are not known.
    pub authors: Vec<String>,
    /// The id of its `.triggered` event.
    pub trigger_id: String,
    /// When the outside event at its root was accepted.
    pub accepted: Timestamp,
    /// When it was itself caused: when its trigger was accepted, or its parent's transition was committed.
    pub caused: Timestamp,
    /// Its class in the lane's queue.
    pub class: Class,
    /// Its number among those that one commit causes.
    pub place: u16,
    /// The execution that caused it, or that it repeats.
    pub parent: Option<ExecutionId>,
    /// The context's abort counter when its root was accepted.
    pub epoch: u32,
    /// The sort key of the item with its first payload.
    pub payload: String,
    /// Its first payload.
    pub data: Object,
    /// The tasks that a retry does not repeat. Otherwise none.
    pub done: Done,
    /// The message that starts it.
    pub cause: Cause,
}

/// The tasks that a retry does not repeat, because the original execution had completed them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Done {
    /// The number of these tasks.
    pub tasks: u16,
    /// The results of these tasks.
    pub results: Vec<TaskResult>,
    /// The times of these tasks. Executions that began under an older version lack the first ones.
    pub times: Vec<TaskTimes>,
}

impl Done {
    /// The first `tasks` tasks of an execution.
    pub fn of(x: &Execution, tasks: u16) -> Self {
        let kept = usize::from(tasks);
        let missing = x.results.len().saturating_sub(x.view.times.len());
        Self {
            tasks,
            results: x.results.iter().take(kept).copied().collect(),
            times: x.view.times.iter().take(kept.saturating_sub(missing)).copied().collect(),
        }
    }
}

/// The first payload: the trigger's data with the scope of the execution.
pub fn first_payload(data: &Object, x: &Execution) -> Object {
    let mut base = data.clone();
    base.extend(scope(x));
    if base.contains_key("message") {
        base.insert("message".into(), json!(""));
    }
    base
}

/// A new execution. By the context's flags and the windows of its stage, it wants its lane, is held back, or ends before it begins.
pub fn born(birth: &Birth, entrance: &Entrance<'_>) -> Transition {
    let Entrance { sequence, flags, now, .. } = *entrance;
    let mut x = fresh(birth);
    x.supersede = sequence.supersede;
    if flags.aborts(&x.stage, x.epoch) {
        let end = (End::Aborted, Status::Aborted);
        return over(&x, sequence, end, "the sequence was aborted before it started", (birth.cause, now));
    }
    if flags.pauses(&x.stage) {
        x.paused = true;
        x.paused_at = Some(now);
        x.lane = Lane::None;
    } else if let Passage::Held(held) = entrance.passage(&x) {
        x.wake = held.until;
        x.held = Some(held);
    }
    Transition { next: x, record: None }
}

/// An execution that cannot start, with the reason. As in Keptn, an errored `.finished` answers the trigger.
pub fn never_started(birth: &Birth, message: &str, now: Timestamp) -> Transition {
    over(&fresh(birth), &Sequence::none(), (End::NeverStarted, Status::Errored), message, (birth.cause, now))
}

fn over(
    x: &Execution,
    sequence: &Sequence,
    (end, status): (End, Status),
    message: &str,
    (cause, now): (Cause, Timestamp),
) -> Transition {
    let (flags, base, shipyard) = (Flags::default(), Object::new(), Shipyard { stages: vec![] });
    let (start_deadline, task_timeout) = Default::default();
    // It gathers nothing that could be too large.
    let policy = Policy { start_deadline, task_timeout, max_event_bytes: usize::MAX, max_record_bytes: usize::MAX, polled: false };
    let facts = Facts {
        now,
        cause,
        flags: &flags,
        sequence,
        current: ("", &shipyard),
        base: &base,
        events: &[],
        remediation: None,
        policy,
    };
    let mut step = Step::new(x, &facts);
    step.end(Outcome { end, result: TaskResult::Fail, status, at: now }, message);
    step.transition()
}

fn fresh(birth: &Birth) -> Execution {
    let text = |path: [&str; 2]| {
        let value = birth.data.get(path[0])?.get(path[1])?;
        value.as_str().map(str::to_owned)
    };
    let image =
        birth.data.get("configurationChange").and_then(|change| change.get("values")).and_then(|values| values.get("image"));
    let view = View {
        image: image.and_then(Value::as_str).map(str::to_owned),
        problem: text(["problem", "problemTitle"]),
        times: birth.done.times.clone(),
        ..View::default()
    };
    Execution {
        id: birth.id,
        project: birth.project.clone(),
        context: birth.context.clone(),
        stage: birth.stage.clone(),
        service: birth.service.clone(),
        sequence: birth.sequence.clone(),
        revision: birth.revision.clone(),
        git_commit_id: birth.git_commit_id.clone(),
        authors: birth.authors.clone(),
        trigger_id: birth.trigger_id.clone(),
        accepted: birth.accepted,
        caused: birth.caused,
        class: birth.class,
        supersede: false,
        place: birth.place,
        parent: birth.parent,
        epoch: birth.epoch,
        payload: birth.payload.clone(),
        lane: Lane::Wants,
        ask: 0,
        paused: false,
        held: None,
        task: birth.done.tasks,
        open: None,
        record: None,
        sent: None,
        due: None,
        began: None,
        paused_at: None,
        reactions: vec![],
        bare: vec![],
        quick: false,
        listed: false,
        results: birth.done.results.clone(),
        repeated: None,
        wake: None,
        armed_by: None,
        outcome: None,
        view,
    }
}
