//! The sequences engine: Keptn Shipyards. An execution of a sequence is the subject of its messages.
//!
//! [`Sequences::handle`](crate::protocol::Inbox::handle) is the entry point, and [`dispatch`](crate::dispatch) says which input
//! goes where. Each kind of input has a file: `accept` and `birth` for inputs that start executions, `answer` for answers to tasks,
//! `turn` for grants, wake-ups and flags. `duty` performs the duties of this engine, `lane` drives lanes. The protocol handles a
//! message before and after its decision ([`crate::protocol::run`]).
//!
//! Beside it are [`projects`](crate::projects) and [`resources`](crate::resources), which it reads; and, of which it knows nothing,
//! [`schedules`](crate::schedules), [`views`](crate::views) and [`keptn`](crate::keptn), the other services of Keptn.

mod accept;
mod answer;
mod at_once;
pub(crate) mod awaited;
mod birth;
mod change;
pub mod codec;
pub mod commands;
mod control;
pub(crate) mod domain_event;
mod duty;
pub mod freeze;
pub mod history;
pub mod keys;
pub(crate) mod lane;
pub(crate) mod load;
mod look;
pub mod message;
pub mod remediation;
pub mod retry;
pub mod standing;
pub(crate) mod subject;
mod turn;
pub mod waits;

pub use answer::MAX_DECISION_BYTES;
pub use at_once::{cause_of, is_taken};
pub use message::{Address, Message};

use crate::ports::{PortError, Ports};
use crate::projects::{Projects, Revisions};
use crate::protocol::sweep::Tick;
use crate::protocol::{Engine, Letter};
use crate::resources::Resources;
use keelway_domain::sequences::{Duty, Execution};
use keelway_domain::time::{Span, Timestamp};

/// The engine's name.
pub const NAME: &str = "sequences";
/// Open executions of a project that are looked through.
pub(crate) const MOST_OPEN: u32 = 1000;

/// Settings of the installation; a project's manifest may override the deadlines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// How long an executor has to answer a task's trigger. Default 10 min.
    pub start_deadline: Span,
    /// How long it has from `.started` to `.finished`; 0 = for ever. Default 24 h.
    pub task_timeout: Span,
    /// How long history and payloads are kept after they were written. Default 90 days.
    pub retention: Span,
    /// The largest event, as EventBridge counts it, in bytes. Default 240 KB.
    pub max_event_bytes: usize,
    /// The most executions of one context: triggers that start each other would otherwise go on for ever. Default 1,000.
    pub max_executions: u32,
    /// Whether executors ask what is open, so that open tasks are put into an index for them. Default `true`.
    pub polled: bool,
    /// Which events go on the bus. Default: all.
    pub publishes: Publishes,
}

/// Which events go on the bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Publishes {
    /// All of them, answers of executors over HTTP included: an account may have rules that Keelway does not know.
    #[default]
    All,
    /// Those that Keelway's own rules take. Executors ask for their work over HTTP.
    Own,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            start_deadline: Span::minutes(10),
            task_timeout: Span::minutes(24 * 60),
            retention: Span::minutes(90 * 24 * 60),
            max_event_bytes: 240 * 1024,
            max_executions: 1000,
            polled: true,
            publishes: Publishes::All,
        }
    }
}

/// A delivery of this engine.
pub type Incoming = crate::protocol::Incoming<Message>;
/// A delivery's content.
pub type Body = crate::protocol::Body<Message>;
/// An execution and the version of its item.
pub type Loaded = crate::protocol::Loaded<Execution>;

/// The engine on its ports. Its only state is a cache of immutable shipyard revisions.
pub struct Sequences<P> {
    pub(crate) ports: P,
    pub(crate) limits: Limits,
    revisions: Revisions,
}

impl<P: Ports> Sequences<P> {
    /// An engine on these ports.
    pub fn new(ports: P, limits: Limits) -> Self {
        Self { ports, limits, revisions: Revisions::default() }
    }

    /// The same, with the revisions that another one remembers.
    pub fn remembering(self, other: &Self) -> Self {
        Self { revisions: other.revisions.copy(), ..self }
    }

    /// Whether both remember the same revisions: what they are never changes.
    pub fn remembers_what(&self, other: &Self) -> bool {
        self.revisions.are(&other.revisions)
    }

    /// The projects.
    pub fn projects(&self) -> Projects<'_, P> {
        Projects { ports: &self.ports, revisions: &self.revisions }
    }

    /// The resources of the projects.
    pub fn resources(&self) -> Resources<'_, P> {
        Resources { projects: self.projects(), retention: self.limits.retention }
    }

    /// The clock that all times of an answer refer to.
    pub fn now(&self) -> Timestamp {
        self.ports.now()
    }

    /// Settings of the installation.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }
}

impl<P: Ports> Engine<Execution> for Sequences<P> {
    async fn perform(&self, x: &Execution, duty: &Duty) -> Result<(), PortError> {
        self.fulfil(x, duty).await
    }
    async fn look(&self, open: &[Loaded], tick: &mut Tick) -> Result<Vec<Letter>, PortError> {
        self.overdue(open, tick).await
    }
}
