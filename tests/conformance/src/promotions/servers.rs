//! Who carries out the promotions of a world: the twins, or clients that reach real servers.

use super::reach::Reach;
use keelway_domain::promotions::{AttemptResult, Closed, Seen};
use keelway_engine::ports::PortError;
use keelway_engine::promotions::attempts::{Outside, Sight, Task};
use std::sync::Arc;

/// Clients of real servers: [`Outside`] for callers that are not async. The world stands still until they are done.
pub trait Real: Send + Sync {
    /// As [`Outside::carry_out`].
    ///
    /// # Errors
    /// As there.
    fn carry_out(&self, task: &Task) -> Result<AttemptResult, PortError>;
    /// As [`Outside::take_back`].
    ///
    /// # Errors
    /// As there.
    fn take_back(&self, task: &Task, comment: &str) -> Result<Closed, PortError>;
    /// As [`Outside::look`].
    ///
    /// # Errors
    /// As there.
    fn look(&self, repository: &str, tasks: &[Task], mark: Option<&str>) -> Result<Sight, PortError>;
}

/// Servers of other people.
#[derive(Clone)]
pub enum Servers {
    /// Twins.
    Twin(Reach),
    /// Real ones. None of them runs sequences.
    Real(Arc<dyn Real>),
}

impl Outside for Servers {
    async fn carry_out(&self, task: &Task) -> Result<AttemptResult, PortError> {
        match self {
            Self::Twin(twin) => twin.carry_out(task).await,
            Self::Real(real) => real.carry_out(task),
        }
    }
    async fn take_back(&self, task: &Task, comment: &str) -> Result<Closed, PortError> {
        match self {
            Self::Twin(twin) => twin.take_back(task, comment).await,
            Self::Real(real) => real.take_back(task, comment),
        }
    }
    async fn follow(&self, task: &Task) -> Result<Option<Seen>, PortError> {
        match self {
            Self::Twin(twin) => twin.follow(task).await,
            Self::Real(_) => Ok(None),
        }
    }
    async fn look(&self, repository: &str, tasks: &[Task], mark: Option<&str>) -> Result<Sight, PortError> {
        match self {
            Self::Twin(twin) => twin.look(repository, tasks, mark).await,
            Self::Real(real) => real.look(repository, tasks, mark),
        }
    }
}
