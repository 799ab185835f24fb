//! Checks whether a sequence waits for a task. The id of the task's trigger leads to the execution, which is in the same table. The
//! event alone does not suffice: it may be late, replayed, or sent again by a person.

use super::{Address, codec, keys};
use crate::item::{Item, Key};
use crate::ports::{PortError, Write};
use crate::protocol::Loaded;
use keelway_domain::ids::RecordId;
use keelway_domain::names::{Context, ProjectName};
use keelway_domain::sequences::Execution;

/// A task that a sequence may wait for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Awaited {
    to: Address,
    trigger: RecordId,
    task: String,
}

impl Awaited {
    /// The task of this name in a context of a project, by the id of its trigger. `None`: the sequences engine did not make the
    /// trigger.
    pub fn of((project, context): (&str, &str), task: &str, triggered: &str) -> Option<Self> {
        let trigger = RecordId::from_uuid(triggered)?;
        let (project, context) = (ProjectName::new(project).ok()?, Context::new(context).ok()?);
        Some(Self { to: Address { project, context, execution: trigger.subject }, trigger, task: task.to_owned() })
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
