//! The state of an execution of a sequence.

#![expect(missing_docs, reason = "names that say what they are need no documentation")]

use super::Bare;
use super::freeze::Held;
use crate::event::{CloudEvent, Kind, Object, Status, TaskResult};
use crate::ids::{ExecutionId, RecordId, hash64};
use crate::json::canonical;
use crate::names::{Context, ProjectName, SequenceName, ServiceName, StageName, TaskName};
use crate::shipyard::APPROVAL;
use crate::time::{Span, Timestamp};

/// The most reactions (`.started` and `.finished`) to one task that are kept: two for each of 64 executors.
pub const MAX_REACTIONS: usize = 128;
/// The most executors that may answer one task.
pub const MAX_EXECUTORS: usize = 64;

/// The state of an execution.
#[derive(Debug, Clone, PartialEq)]
pub struct Execution {
    /// Its id, derived from what caused it.
    pub id: ExecutionId,
    /// The project of the scope.
    pub project: ProjectName,
    /// The context of the scope.
    pub context: Context,
    /// The stage of the scope.
    pub stage: String,
    /// The service of the scope.
    pub service: ServiceName,
    /// The name of the sequence.
    pub sequence: String,
    /// The shipyard revision it was accepted with; empty if there was none.
    pub revision: String,
    /// The configuration that its executors should use.
    pub git_commit_id: Option<String>,
    /// The identities of those who triggered the outside event at its root, or who ordered the retry. Empty: they are not known.
    pub authors: Vec<String>,
    /// The `.triggered` event that started it: its `.started` and `.finished` answer this id.
    pub trigger_id: String,
    /// When the outside event at its root was accepted; the queue is ordered by this time.
    pub accepted: Timestamp,
    /// When it was itself caused: when its trigger was accepted, or its parent's transition was committed.
    pub caused: Timestamp,
    /// Its class in the lane's queue.
    pub class: Class,
    /// Its number among the executions that one commit has caused, in the shipyard's order.
    pub place: u16,
    /// The `supersede` of its sequence.
    pub supersede: bool,
    /// The execution that caused it or, for a retry, the ended execution that it repeats.
    pub parent: Option<ExecutionId>,
    /// The context's abort counter when the root was accepted.
    pub epoch: u32,
    /// The sort key of the item with its first payload: the trigger event, or the parent's record.
    pub payload: String,
    /// Its relation to its lane.
    pub lane: Lane,
    /// The number of its present or last request for the lane.
    pub ask: u32,
    /// Whether a pause holds it back.
    pub paused: bool,
    /// Why the windows of its stage hold it back, while it waits in the queue. `None` once it has begun.
    pub held: Option<Held>,
    /// The number of completed tasks, which is the index of the present one.
    pub task: u16,
    /// The present task, if it was triggered and is not complete.
    pub open: Option<TaskName>,
    /// The last transition record. `None` before the first task.
    pub record: Option<RecordId>,
    /// When the open task was triggered.
    pub sent: Option<Timestamp>,
    /// When the present task may be triggered (`triggeredAfter`).
    pub due: Option<Timestamp>,
    /// When the first task was triggered, moved by the time spent paused. The timeout of the sequence counts from here.
    pub began: Option<Timestamp>,
    /// When the present pause began.
    pub paused_at: Option<Timestamp>,
    /// Answers to the open task.
    pub reactions: Vec<Reaction>,
    /// The reactions that are stored only here, in short form.
    pub bare: Vec<Bare>,
    /// Whether the first `.started` of the open task changes only the two lists above, because it causes no earlier deadline.
    pub quick: bool,
    /// Whether the open task is in the index for those who ask what is open.
    pub listed: bool,
    /// The results of the completed tasks.
    pub results: Vec<TaskResult>,
    /// The message by which the sweep had the open task's trigger repeated ([`crate::cause::Cause::id`]). Once for each task.
    pub repeated: Option<u64>,
    /// The one pending wake-up. A time in the past: none.
    pub wake: Option<Timestamp>,
    /// The wake-up that planned the pending one ([`crate::cause::Cause::id`]). `None`: another message did.
    pub armed_by: Option<u64>,
    /// How it ended. It does not change any more once this is set.
    pub outcome: Option<Outcome>,
    /// The part of the state that only the views read.
    pub view: View,
}

/// The prefix of the sort keys of transition records, which those of received events do not have.
pub const RECORDS: &str = "T#";

/// Where the payload so far is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gathered<'a> {
    /// In the execution's record.
    Record(RecordId),
    /// In the item with this sort key: the trigger event, or the parent's record.
    Payload(&'a str),
}

/// The relation of an execution to its lane (project, stage, service).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lane {
    /// It holds the lane: no other execution runs there.
    Holds,
    /// It is in the queue, or about to enter it.
    Wants,
    /// Neither: it waits for a person, is paused, or has ended.
    None,
}

/// The class of an execution in a lane's queue. Follow-ups come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Caused by an execution's end.
    FollowUp,
    /// Triggered from outside.
    Outside,
}

/// An executor's answer to the open task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reaction {
    pub kind: ReactionKind,
    /// The result of a `.finished`. Without meaning for a `.started`.
    pub result: TaskResult,
    pub status: Status,
    /// Whether its data adds something to the payload.
    pub has_data: bool,
    /// A hash of source and id. An identity counts once.
    pub identity: u64,
    /// A hash of source, id, type and data. The same content again is a duplicate; other content with the same identity is refused.
    pub content: u64,
    /// When it was accepted.
    pub at: Timestamp,
}

/// The two kinds of answers that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ReactionKind {
    Started,
    Finished,
}

impl From<ReactionKind> for Kind {
    fn from(kind: ReactionKind) -> Self {
        match kind {
            ReactionKind::Started => Self::Started,
            ReactionKind::Finished => Self::Finished,
        }
    }
}

impl Reaction {
    /// The reaction to an event. `at`: when it was accepted.
    pub fn of(event: &CloudEvent, kind: ReactionKind, task: &str, at: Timestamp) -> Self {
        let has_data = match kind {
            ReactionKind::Finished => true,
            ReactionKind::Started => !of_started(event, task).is_empty(),
        };
        Self {
            kind,
            result: TaskResult::of(event.text("result")),
            status: Status::of(event.text("status")),
            has_data,
            identity: identity(event),
            content: content(event),
            at,
        }
    }
}

/// The part of a `.started` that is merged into the payload: `data.<task>` and the labels, if they are objects and not empty.
/// Nothing else may count: a short event is stored whole, and a long one is read again only if it adds something.
pub(super) fn of_started(event: &CloudEvent, task: &str) -> Object {
    let member = |name: &str| {
        let value = event.data.get(name).filter(|value| value.as_object().is_some_and(|object| !object.is_empty()));
        value.map(|value| (name.to_owned(), value.clone()))
    };
    [task, "labels"].into_iter().filter_map(member).collect()
}

/// The hash of an event's source and id.
pub fn identity(event: &CloudEvent) -> u64 {
    hash64(&[event.source.as_bytes(), event.id.as_bytes()])
}

/// The hash of an event's source, id, type and data. Its time is left out, because a client that repeats an event may change it.
pub fn content(event: &CloudEvent) -> u64 {
    let data = canonical(&serde_json::Value::Object(event.data.clone()));
    hash64(&[event.source.as_bytes(), event.id.as_bytes(), event.ty.as_bytes(), data.as_bytes()])
}

/// How an execution ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Outcome {
    /// The kind of end.
    pub end: End,
    /// The `result` of its `.finished`.
    pub result: TaskResult,
    /// The `status` of its `.finished`.
    pub status: Status,
    pub at: Timestamp,
}

/// The kind of an execution's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum End {
    /// All tasks were completed, or one of them failed.
    Normal,
    /// A deadline passed.
    TimedOut,
    /// It was aborted.
    Aborted,
    /// It could not start, because stage, sequence or shipyard do not exist.
    NeverStarted,
}

/// What the views show of an execution. It is stored in the state, so that lists need no other reads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct View {
    /// The image under delivery (`configurationChange.values.image`).
    pub image: Option<String>,
    /// The last task event.
    pub latest: Option<EventRef>,
    /// The last event with result `fail` or status `errored`.
    pub latest_failed: Option<EventRef>,
    /// Result and score of the last `evaluation.finished`.
    pub evaluation: Option<(TaskResult, String)>,
    /// The problem a remediation is about (`problem.problemTitle`).
    pub problem: Option<String>,
    /// The times of the complete tasks, in order. Executions that began under an older version lack the first ones.
    pub times: Vec<TaskTimes>,
    /// Why it did not simply pass: the message of the last task that was not a `pass`, or of the end.
    pub message: Option<String>,
    /// Which approval was decided last (the index of its task), and by whom.
    pub decided: Option<(u16, String)>,
    /// Who let it begin although the stage was closed, and why.
    pub overridden: Option<(String, String)>,
    /// The last deployment in its stage.
    pub deployed: Option<Deployed>,
    /// Who answered the open task with `.finished` before there was a `.started`.
    pub answered: Option<String>,
    /// The number of executors that had sent `.started` and no `.finished` when the task was aborted or timed out. They may still
    /// work.
    pub left: u32,
}

/// The times of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TaskTimes {
    /// The time of its `.triggered`.
    pub sent: Timestamp,
    /// The time of its first `.started`, or `sent` if there was none.
    pub started: Timestamp,
    /// The time of its last `.finished`.
    pub done: Timestamp,
}

/// What runs in a stage after a `deployment` or a `rollback`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deployed {
    /// The image. `None`: a rollback that did not name it.
    pub image: Option<String>,
    /// When it was deployed.
    pub at: Timestamp,
}

/// A short reference to an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRef {
    /// The type without the common prefix.
    pub ty: String,
    /// The id. Empty for the trigger of the present task, whose id is the address of the record.
    pub id: String,
    pub time: Timestamp,
}

impl EventRef {
    /// The reference to an event.
    pub fn of(event: &CloudEvent) -> Self {
        let ty = event.ty.strip_prefix(crate::event::PREFIX).unwrap_or(&event.ty);
        Self { ty: ty.to_owned(), id: event.id.clone(), time: event.time }
    }
}

/// The phase of an execution. It is derived from the state, never stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// It waits for its lane.
    Queued,
    /// It waits in the lane's queue for a window of its stage.
    Frozen,
    /// It holds the lane and waits for `triggeredAfter`.
    Delayed,
    /// A task is open.
    Running,
    /// A task is open, and the execution waits for the lane that it gave back during a pause.
    RunningQueued,
    /// It waits for a person.
    WaitingForApproval,
    /// It is paused between tasks.
    Paused,
    /// It is paused while a task is open.
    PausedRunning,
    /// It is paused while it waits for a person.
    PausedWaitingForApproval,
    /// It has ended.
    Ended,
}

impl Execution {
    /// The phase of the execution.
    pub fn phase(&self) -> Phase {
        let gate = self.waits_for_approval();
        match (self.outcome.is_some(), self.paused, self.is_open(), self.lane) {
            (true, _, _, _) => Phase::Ended,
            (false, true, true, _) if gate => Phase::PausedWaitingForApproval,
            (false, true, true, _) => Phase::PausedRunning,
            (false, true, false, _) => Phase::Paused,
            (false, false, true, _) if gate => Phase::WaitingForApproval,
            (false, false, true, Lane::Wants) => Phase::RunningQueued,
            (false, false, true, _) => Phase::Running,
            (false, false, false, Lane::Holds) => Phase::Delayed,
            (false, false, false, _) if self.held.is_some() => Phase::Frozen,
            (false, false, false, _) => Phase::Queued,
        }
    }

    /// Whether a newer execution of its sequence may replace it: it has not begun.
    pub fn is_replaceable(&self) -> bool {
        self.supersede && self.lane == Lane::Wants && self.began.is_none()
    }

    /// Whether a task is open.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// The ended execution that a retry repeats.
    pub fn retry_of(&self) -> Option<ExecutionId> {
        self.parent.filter(|_| self.class == Class::Outside)
    }

    /// Whether it waits for a person's decision.
    pub fn waits_for_approval(&self) -> bool {
        self.open.as_ref().is_some_and(|task| task.as_str() == APPROVAL)
    }

    /// Where its payload is stored: in its record or, before its first task, in the item of its cause.
    pub fn gathered(&self) -> Gathered<'_> {
        self.record.map_or(Gathered::Payload(&self.payload), Gathered::Record)
    }

    /// Whether the result in its payload is that of a task: one of its own, or one of the execution that it follows. Any other
    /// result comes from the sender of the trigger.
    pub fn has_earned_its_result(&self) -> bool {
        self.task > 0 || self.payload.starts_with(RECORDS)
    }

    /// The stage as a valid name. An execution that was refused for an unknown stage may have any text.
    pub fn stage_name(&self) -> Option<StageName> {
        StageName::new(self.stage.clone()).ok()
    }

    /// The sequence as a valid name.
    pub fn sequence_name(&self) -> Option<SequenceName> {
        SequenceName::new(self.sequence.clone()).ok()
    }

    /// The type of one of the sequence's own events, `sh.keptn.event.<stage>.<sequence>.<kind>`.
    pub fn event_type(&self, kind: Kind) -> String {
        format!("{}{}.{}.{}", crate::event::PREFIX, self.stage, self.sequence, kind.as_str())
    }

    /// The number of distinct answers of that kind to the open task.
    pub fn count(&self, kind: ReactionKind) -> usize {
        self.reactions.iter().filter(|reaction| reaction.kind == kind).count()
    }

    /// The duration so far, for the timeout of the sequence: without pauses, and without a delay before the first task.
    pub fn elapsed(&self, now: Timestamp) -> Option<Span> {
        self.counted_from().map(|began| self.paused_at.unwrap_or(now) - began)
    }

    pub(super) fn counted_from(&self) -> Option<Timestamp> {
        self.began.filter(|_| self.is_open() || !self.results.is_empty())
    }
}
