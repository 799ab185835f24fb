//! Checks whether a sequence waits for a task. The id of the task's trigger leads to the execution, which is in the same table. The
//! event alone does not suffice: it may be late, replayed, or sent again by a person.

use crate::item::{Item, Key};
use crate::ports::{PortError, Write};
use crate::protocol::Loaded;
use crate::sequences::{Address, codec, keys};
use keelway_domain::deployments::{Config, Task};
use keelway_domain::ids::RecordId;
use keelway_domain::names::{Context, ProjectName};
use keelway_domain::sequences::Execution;

/// A task that a sequence may wait for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Awaited {
    to: Address,
    trigger: RecordId,
    task: String,
}

impl Awaited {
    /// `None`: the sequences engine did not make the trigger.
    pub fn of(task: &Task) -> Option<Self> {
        let trigger = RecordId::from_uuid(&task.triggered)?;
        let (project, context) = (ProjectName::new(&*task.place[0]).ok()?, Context::new(&*task.context).ok()?);
        Some(Self { to: Address { project, context, execution: trigger.subject }, trigger, task: task.name.clone() })
    }

    /// The execution.
    pub fn key(&self) -> Key {
        keys::execution(&self.to)
    }

    /// Whether the execution, as it was read, waits for the task.
    pub fn is_open(&self, execution: Option<&Item>) -> Result<bool, PortError> {
        let Some(execution) = execution else { return Ok(false) };
        let x = Loaded::<Execution>::read(execution)?.x;
        let open = x.open.as_ref().is_some_and(|open| open.as_str() == self.task);
        Ok(x.outcome.is_none() && open && x.record == Some(self.trigger))
    }

    /// The check that makes a transaction depend on the task, because the sequence may be aborted between the read and the commit.
    pub fn check(&self) -> Write {
        Write::Check(self.key(), codec::waits_for(&self.to, &self.trigger, &self.task))
    }
}

/// The tasks that a config carries out, or will carry out next.
pub(super) fn tasks(x: &Config) -> impl Iterator<Item = &Task> {
    x.in_flight().into_iter().chain(&x.pending).filter_map(|d| d.task.as_ref())
}
