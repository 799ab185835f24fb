//! The table keys of everything about sequences. One partition per context (its history), one per lane (lock and queue);
//! the id of a task's trigger leads to both the execution and its record, so handling an event needs no index.

use super::Address;
use crate::item::Key;
pub use crate::keys::{MAIN, RECORD, hash, ms, record_id, record_sort};
use crate::keys::{open_work, shard_of};
use crate::partition::{Kind, Partition};
use keelway_domain::ids::{ExecutionId, RecordId};
use keelway_domain::names::{Context, ProjectName};
use keelway_domain::sequences::{Class, Execution};
use keelway_domain::time::Timestamp;
use std::fmt::Display;

/// What the sort keys of recorded events begin with.
pub const EVENT: &str = "E#";
/// What the sort keys of requests in a lane's queue begin with.
pub const QUEUED: &str = "Q#";

pub(super) static CONTEXTS: Partition = Partition::new(
    "C#",
    "<project>#<context>",
    &[
        Kind::main("context (flags: paused, aborted; number of executions)").state(),
        Kind::of(EXECUTION, "<execution>", "execution").state(),
        Kind::of(EVENT, "<accepted>#<content>", "event as received"),
        Kind::records(),
    ],
);
static LANES: Partition = Partition::new(
    "K#",
    "<project>#<stage>#<service>",
    &[
        Kind::main("lane: the lock, and what runs there").state(),
        Kind::of(QUEUED, "<class>#<accepted>#<execution>#<ask>", "execution that waits for the lane").state(),
    ],
);
static TOMBSTONES: Partition = Partition::new("Z#", "<project>#<execution>", &[Kind::main("tombstone of an execution")]);
static ACCEPTED: Partition = Partition::new("Y#", "<project>#<what it starts>", &[Kind::main("domain event that was accepted")]);
/// The partitions of sequences.
pub static PARTITIONS: &[&Partition] = &[&CONTEXTS, &LANES, &TOMBSTONES, &ACCEPTED];

/// The partition of a context.
pub fn context_partition(project: &ProjectName, context: &Context) -> String {
    CONTEXTS.named(format_args!("{project}#{context}"))
}

/// The context item: its flags, and what the list of sequences shows.
pub fn context(project: &ProjectName, context: &Context) -> Key {
    Key::new(context_partition(project, context), MAIN)
}

/// What the sort keys of executions begin with.
pub const EXECUTION: &str = "X#";

/// An execution.
pub fn execution(to: &Address) -> Key {
    Key::new(context_partition(&to.project, &to.context), format!("{EXECUTION}{}", to.execution))
}

/// The sort key of a recorded event: by acceptance, then content.
pub fn event_sort(at: Timestamp, content: u64) -> String {
    format!("{EVENT}{}#{}", ms(at), hash(content))
}

/// When a recorded event was accepted, by its sort key.
pub fn event_time(sort: &str) -> Option<Timestamp> {
    sort.strip_prefix(EVENT)?.split('#').next()?.parse().ok().map(Timestamp)
}

/// The content hash in the sort key of a recorded event.
pub fn event_content(sort: &str) -> Option<u64> {
    let text = sort.strip_prefix(EVENT)?.split('#').nth(1)?;
    ExecutionId::parse(text).map(|id| id.0)
}

/// A transition record.
pub fn record(project: &ProjectName, context: &Context, id: &RecordId) -> Key {
    Key::new(context_partition(project, context), record_sort(id))
}

/// A lane: at most one execution of a (project, stage, service) holds it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LaneKey(pub String);

impl LaneKey {
    /// The lane an execution runs on.
    pub fn of(x: &Execution) -> Self {
        Self::at(&x.project, &x.stage, &x.service)
    }
    /// The lane of a service in a stage.
    pub fn at(project: &ProjectName, stage: impl Display, service: impl Display) -> Self {
        Self(LANES.named(format_args!("{project}#{stage}#{service}")))
    }
    /// The lock.
    pub fn lock(&self) -> Key {
        Key::new(self.0.clone(), MAIN)
    }
    /// The queue entry of an execution's request. Follow-ups of one root stand in the order in which they were caused, and those of
    /// one commit in the shipyard's.
    pub fn entry(&self, x: &Execution, ask: u32) -> Key {
        let place = match x.class {
            Class::FollowUp => format!("0#{}.{}.{:03}", ms(x.accepted), ms(x.caused), x.place),
            Class::Outside => format!("1#{}", ms(x.accepted)),
        };
        Key::new(self.0.clone(), format!("{QUEUED}{place}#{}#{ask:06}", x.id))
    }
}

/// The tombstone of an execution, which never expires: however old its trigger is, it starts nothing a second time.
pub fn tombstone(project: &ProjectName, execution: ExecutionId) -> Key {
    Key::new(TOMBSTONES.named(format_args!("{project}#{execution}")), MAIN)
}

/// What is remembered for ever of a domain event that was accepted, by the id of the root of what it started.
pub fn domain_event(project: &ProjectName, root: ExecutionId) -> Key {
    Key::new(ACCEPTED.named(format_args!("{project}#{root}")), MAIN)
}

/// Number of index partitions over which the open tasks of a name are spread: what an executor asks for that serves every project.
pub const TASK_SHARDS: u32 = 4;

/// The shard that holds all open tasks of a project.
pub fn task_shard(project: &ProjectName) -> u32 {
    shard_of(project.as_str()) % TASK_SHARDS
}

/// Index partition: open tasks of a name. The name comes last.
pub fn open_tasks(project: &ProjectName, task: &str) -> String {
    open_tasks_in(task_shard(project), task)
}

/// Index partition: a shard of the open tasks of a name.
pub fn open_tasks_in(shard: u32, task: &str) -> String {
    format!("O#{shard}#{task}")
}

/// Index sort key of an open task: oldest first, whatever project it belongs to.
pub fn open_task_sort(x: &Execution, sent: Timestamp, id: &RecordId) -> String {
    format!("{}#{}#{}#{}#{}#{:03}#{}", ms(sent), x.project, x.stage, x.service, id.subject, id.number, id.hash)
}

/// Index partition: a shard of the open executions; it holds all of a project.
pub fn open_executions(project: &ProjectName) -> String {
    open_work(super::NAME, shard_of(project.as_str()))
}

/// What the index sort keys of a project's open executions begin with.
pub fn open_in(project: &ProjectName) -> String {
    format!("{project}#")
}

/// Index partition: contexts of a project by age.
pub fn contexts(project: &ProjectName) -> String {
    format!("P#{project}")
}

/// Index sort key of a context.
pub fn by_age(at: Timestamp, context: &Context) -> String {
    format!("{}#{context}", ms(at))
}

/// Where a time begins in an index by age.
pub fn age_bound(at: Timestamp) -> String {
    ms(at)
}
