//! The state of one execution of a sequence, and of the context it belongs to.

use super::Bare;
use super::freeze::Held;
use crate::event::{CloudEvent, Kind, Object, Status, TaskResult};
use crate::ids::{ExecutionId, RecordId, hash64};
use crate::json::canonical;
use crate::names::{Context, ProjectName, SequenceName, ServiceName, StageName, TaskName};
use crate::shipyard::APPROVAL;
use crate::time::{Span, Timestamp};

/// At most this many reactions (`.started` and `.finished`) to one task are kept: 64 executors, each with both.
pub const MAX_REACTIONS: usize = 128;
/// At most this many executors may answer one task.
pub const MAX_EXECUTORS: usize = 64;

/// One execution of a sequence.
#[derive(Debug, Clone, PartialEq)]
pub struct Execution {
    /// Its id, derived from what caused it.
    pub id: ExecutionId,
    /// Scope: the project.
    pub project: ProjectName,
    /// Scope: the context.
    pub context: Context,
    /// Scope: the stage.
    pub stage: String,
    /// Scope: the service.
    pub service: ServiceName,
    /// The sequence's name.
    pub sequence: String,
    /// The shipyard revision it was accepted with; empty if there was none.
    pub revision: String,
    /// The configuration that its executors should use.
    pub git_commit_id: Option<String>,
    /// Who triggered the outside event at its root, or repeated what it follows; empty: that is not known.
    pub authors: Vec<String>,
    /// The `.triggered` event that started it: its `.started` and `.finished` answer this id.
    pub trigger_id: String,
    /// When the outside event at its root was accepted; the queue is ordered by this time.
    pub accepted: Timestamp,
    /// When it was itself caused: when its trigger was accepted, or its parent's transition was committed.
    pub caused: Timestamp,
    /// Its part of the queue.
    pub class: Class,
    /// Its number among those that one commit caused, in the shipyard's order.
    pub place: u16,
    /// Its sequence's `supersede`.
    pub supersede: bool,
    /// The execution that caused it or, of one triggered from outside, the ended one that it repeats.
    pub parent: Option<ExecutionId>,
    /// The context's abort counter when the root was accepted.
    pub epoch: u32,
    /// Sort key of the item that holds its first payload: the trigger event, or the parent's record.
    pub payload: String,
    /// Its relation to its lane.
    pub lane: Lane,
    /// Number of its present or last request for the lane.
    pub ask: u32,
    /// Held back by a pause.
    pub paused: bool,
    /// Held back by the windows of its stage, while it waits in the queue; only before it begins.
    pub held: Option<Held>,
    /// How many tasks it has completed: the index of the present one.
    pub task: u16,
    /// The present task, while it is triggered and not completed.
    pub open: Option<TaskName>,
    /// The record of the last transition that had one; `None` before the first task.
    pub record: Option<RecordId>,
    /// When the open task was triggered.
    pub sent: Option<Timestamp>,
    /// When the present task may be triggered (`triggeredAfter`).
    pub due: Option<Timestamp>,
    /// When the first task was triggered, moved on by the time spent paused: the sequence's timeout counts from here.
    pub began: Option<Timestamp>,
    /// When the present pause began.
    pub paused_at: Option<Timestamp>,
    /// Answers to the open task.
    pub reactions: Vec<Reaction>,
    /// Those of them that are stored only here.
    pub bare: Vec<Bare>,
    /// The open task's first `.started` changes only the two lists above: it does not bring a deadline forward.
    pub quick: bool,
    /// The results of the completed tasks.
    pub results: Vec<TaskResult>,
    /// The message by which the sweep had the open task's trigger repeated ([`crate::cause::Cause::id`]); once per task.
    pub repeated: Option<u64>,
    /// The one pending wake-up; in the past = none.
    pub wake: Option<Timestamp>,
    /// The wake-up that set the pending one ([`crate::cause::Cause::id`]); `None`: another message did.
    pub armed_by: Option<u64>,
    /// How it ended. Once set, nothing above changes any more.
    pub outcome: Option<Outcome>,
    /// What the views show.
    pub view: View,
}

/// What the sort keys of transition records begin with, unlike those of events that came from outside.
pub const RECORDS: &str = "T#";

/// The location of the payload that an execution has gathered so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gathered<'a> {
    /// In its record.
    Record(RecordId),
    /// In the item with this sort key: the trigger event, or the parent's record.
    Payload(&'a str),
}

/// Its relation to its lane (project, stage, service).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lane {
    /// It has the lane: no other execution runs there.
    Holds,
    /// It is in the queue (or about to enter it).
    Wants,
    /// Neither: it waits for a person, is paused, or has ended.
    None,
}

/// Which part of a lane's queue: follow-ups go first.
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
    /// `.started` or `.finished`.
    pub kind: ReactionKind,
    /// Its result; of a `.started`, meaningless.
    pub result: TaskResult,
    /// Its status.
    pub status: Status,
    /// Its data adds something to the payload.
    pub has_data: bool,
    /// Hash of source and id: counted once.
    pub identity: u64,
    /// Hash of source, id, type and data: the same again is a duplicate, another one under the same identity is refused.
    pub content: u64,
    /// When it was accepted.
    pub at: Timestamp,
}

/// The two reactions that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ReactionKind {
    /// `.started`
    Started,
    /// `.finished`
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
    /// The reaction that an event is; `at` is when it was accepted.
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

/// What a `.started` adds to the payload: `data.<task>` and the labels, as far as they are objects and not empty. Nothing else may
/// count, because a short event is kept whole and a long one is read again only if it adds something.
pub(super) fn of_started(event: &CloudEvent, task: &str) -> Object {
    let member = |name: &str| {
        let value = event.data.get(name).filter(|value| value.as_object().is_some_and(|object| !object.is_empty()));
        value.map(|value| (name.to_owned(), value.clone()))
    };
    [task, "labels"].into_iter().filter_map(member).collect()
}

/// Hash of an event's identity: source and id.
pub fn identity(event: &CloudEvent) -> u64 {
    hash64(&[event.source.as_bytes(), event.id.as_bytes()])
}

/// Hash of an event's content: source, id, type and data. Its time is left out: a client that sends it again may change the time.
pub fn content(event: &CloudEvent) -> u64 {
    let data = canonical(&serde_json::Value::Object(event.data.clone()));
    hash64(&[event.source.as_bytes(), event.id.as_bytes(), event.ty.as_bytes(), data.as_bytes()])
}

/// How an execution ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Outcome {
    /// Why it ended.
    pub end: End,
    /// `result` of its `.finished`.
    pub result: TaskResult,
    /// `status` of its `.finished`.
    pub status: Status,
    /// When.
    pub at: Timestamp,
}

/// Why an execution ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum End {
    /// Its tasks were done, or one of them failed.
    Normal,
    /// A deadline passed.
    TimedOut,
    /// It was aborted.
    Aborted,
    /// It could not start: no such stage, sequence or shipyard.
    NeverStarted,
}

/// What the views show of an execution, stored with its state so that a list needs no other reads.
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
    /// Of each task that is complete, in their order. Executions that began under an older version lack the first ones.
    pub times: Vec<TaskTimes>,
    /// Why it did not simply pass: the message of the last task whose result was not `pass`, or of the end.
    pub message: Option<String>,
    /// Who decided the last approval, and which task it was.
    pub decided: Option<(u16, String)>,
    /// Who let it begin although its stage was closed, and why.
    pub overridden: Option<(String, String)>,
    /// What it last put into its stage.
    pub deployed: Option<Deployed>,
    /// Who answered the open task with `.finished` before anybody said `.started`.
    pub answered: Option<String>,
    /// How many executors had said `.started`, and no `.finished`, when the task was aborted or timed out: they may still work.
    pub left: u32,
}

/// When a task was triggered, first answered with `.started`, and complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TaskTimes {
    /// Its `.triggered`.
    pub sent: Timestamp,
    /// Its first `.started`; as `sent` where there was none.
    pub started: Timestamp,
    /// Its last `.finished`.
    pub done: Timestamp,
}

/// What runs in a stage since a `deployment` or a `rollback` there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deployed {
    /// The image; `None`: a rollback that did not say what runs now.
    pub image: Option<String>,
    /// Since when.
    pub at: Timestamp,
}

/// A short reference to an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRef {
    /// Its type without the common prefix.
    pub ty: String,
    /// Its id; empty for the present task's trigger, whose id is the record's.
    pub id: String,
    /// Its time.
    pub time: Timestamp,
}

impl EventRef {
    /// Of an event.
    pub fn of(event: &CloudEvent) -> Self {
        let ty = event.ty.strip_prefix(crate::event::PREFIX).unwrap_or(&event.ty);
        Self { ty: ty.to_owned(), id: event.id.clone(), time: event.time }
    }
}

/// The phases an execution goes through; derived from the facts, never stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// Waits for its lane.
    Queued,
    /// Waits in the lane's queue for a window of its stage.
    Frozen,
    /// Holds the lane and waits for `triggeredAfter`.
    Delayed,
    /// A task is open.
    Running,
    /// A task is open, and the execution wants the lane that it gave back (after a resume).
    RunningQueued,
    /// Waits for a person.
    WaitingForApproval,
    /// Held back; no task is open.
    Paused,
    /// Held back while a task is open.
    PausedRunning,
    /// Held back while it waits for a person.
    PausedWaitingForApproval,
    /// Over.
    Ended,
}

impl Execution {
    /// Which phase it is in.
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

    /// Whether a newer execution of its sequence replaces it: as long as it has not begun.
    pub fn is_replaceable(&self) -> bool {
        self.supersede && self.lane == Lane::Wants && self.began.is_none()
    }

    /// Whether a task is open.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// The ended execution that it repeats, if it is a retry.
    pub fn retry_of(&self) -> Option<ExecutionId> {
        self.parent.filter(|_| self.class == Class::Outside)
    }

    /// Whether it waits for a person's decision.
    pub fn waits_for_approval(&self) -> bool {
        self.open.as_ref().is_some_and(|task| task.as_str() == APPROVAL)
    }

    /// Sort key of the item that holds its payload: its record, or, before its first task, the item of its cause.
    pub fn gathered(&self) -> Gathered<'_> {
        self.record.map_or(Gathered::Payload(&self.payload), Gathered::Record)
    }

    /// Whether the result in its payload is that of a task: one of its own, or of the execution that it follows. What it began with
    /// otherwise was sent by whoever triggered it.
    pub fn has_earned_its_result(&self) -> bool {
        self.task > 0 || self.payload.starts_with(RECORDS)
    }

    /// Its stage as a valid name; a start refused for an unknown stage may carry anything.
    pub fn stage_name(&self) -> Option<StageName> {
        StageName::new(self.stage.clone()).ok()
    }

    /// Its sequence as a valid name.
    pub fn sequence_name(&self) -> Option<SequenceName> {
        SequenceName::new(self.sequence.clone()).ok()
    }

    /// The type of one of its own events, `sh.keptn.event.<stage>.<sequence>.<kind>`.
    pub fn event_type(&self, kind: Kind) -> String {
        format!("{}{}.{}.{}", crate::event::PREFIX, self.stage, self.sequence, kind.as_str())
    }

    /// How many distinct answers of that kind the open task has.
    pub fn count(&self, kind: ReactionKind) -> usize {
        self.reactions.iter().filter(|reaction| reaction.kind == kind).count()
    }

    /// How long it has been going on, without pauses and without a delay before its first task: for the sequence's timeout.
    pub fn elapsed(&self, now: Timestamp) -> Option<Span> {
        self.counted_from().map(|began| self.paused_at.unwrap_or(now) - began)
    }

    pub(super) fn counted_from(&self) -> Option<Timestamp> {
        self.began.filter(|_| self.is_open() || !self.results.is_empty())
    }
}
