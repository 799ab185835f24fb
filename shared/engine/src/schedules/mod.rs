//! Schedules trigger sequences at times. They are subjects like executions, with wake-ups, records and a part of the sweep of their
//! own, on the queue of sequences.
//!
//! The API writes what is applied and sends a message; the function plans the next time. When that has come, the commit plans the
//! one after it, and a message for each service starts an execution, as a trigger from outside does.

mod codec;
pub mod keys;
mod stored;

pub use stored::SchedulePage;

use crate::item::{Attrs, Item, Key};
use crate::ports::{PortError, Ports, Query};
use crate::protocol::sweep::Tick;
use crate::protocol::{Change, Engine, Handled, Handler, Letter, Loaded, Place, Subject, Verdict, run};
use crate::sequences::{self, Address, Message, Sequences};
use crate::table::{self, Items};
use keelway_domain::cause::Cause;
use keelway_domain::event::CloudEvent;
use keelway_domain::ids::RecordId;
use keelway_domain::names::{ProjectName, ServiceName};
use keelway_domain::schedules::{Concurrency, Decision, Facts, Firing, Input, Record, Schedule, decide};
use keelway_domain::time::{Span, Timestamp};
use std::collections::BTreeSet;

/// Their part of the sweep.
pub const NAME: &str = "schedules";
/// Executions of a context among which an open one is looked for.
const EXECUTIONS: usize = 1000;
/// A run whose execution is not there counts as open for this long: its message may be on its way.
const ON_ITS_WAY: Span = Span::minutes(10);

/// Which schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Of<'a> {
    project: &'a ProjectName,
    name: &'a str,
}

impl Subject for Schedule {
    type Send = Firing;
    type Duty = ();

    const PART: &'static str = NAME;
    const FORMAT: i64 = codec::FORMAT;

    fn key(&self) -> Key {
        keys::schedule(&self.project, &self.name)
    }
    fn decode(item: &Item) -> Result<Self, PortError> {
        codec::schedule(item)
    }
    fn attributes(&self, expires: Timestamp) -> Attrs {
        codec::attributes(self, expires)
    }
    fn place(&self) -> Place {
        Place { scope: self.project.to_string(), since: self.began, name: self.name.clone() }
    }
    fn record(&self) -> Option<RecordId> {
        self.record
    }
    fn wake(&self) -> Option<Timestamp> {
        self.next
    }
    fn armed_by(&self) -> Option<u64> {
        Some(self.armed_by)
    }
    fn over(&self) -> bool {
        self.deleted
    }
    fn events(&self, _: &RecordId, _: &Record) -> Vec<CloudEvent> {
        vec![]
    }
    fn letter(&self, _: &RecordId, _: usize, firing: &Firing) -> Letter {
        let to = Address { project: self.project.clone(), context: firing.context.clone(), execution: firing.execution };
        Message::Fire { to, schedule: self.name.clone(), firing: Box::new(firing.clone()) }.letter()
    }
    fn wake_up(&self, at: Timestamp) -> Letter {
        Message::Due { project: self.project.clone(), schedule: self.name.clone(), at }.letter()
    }
}

impl<P: Ports> Engine<Schedule> for Sequences<P> {
    async fn look(&self, open: &[Loaded<Schedule>], tick: &mut Tick) -> Result<Vec<Letter>, PortError> {
        let letter = |x: &Schedule| match x.next {
            _ if !x.planned => Some(look_at(&x.project, &x.name)),
            next => next.filter(|at| tick.overdue(Some(*at))).map(|at| x.wake_up(at)),
        };
        Ok(open.iter().filter_map(|loaded| letter(&loaded.x)).collect())
    }
}

/// The message that has the next time of a schedule planned.
fn look_at(project: &ProjectName, name: &str) -> Letter {
    Message::Planned { project: project.clone(), schedule: name.to_owned() }.letter()
}

struct Turn<'a> {
    of: Of<'a>,
    input: Input,
    cause: Cause,
}

impl<P: Ports> Handler<Schedule, Sequences<P>> for Turn<'_> {
    fn key(&self) -> Key {
        keys::schedule(self.of.project, self.of.name)
    }

    async fn decide(
        &self,
        engine: &Sequences<P>,
        found: Option<&Loaded<Schedule>>,
        _: &Items,
    ) -> Result<Verdict<Schedule>, PortError> {
        // Deleted long ago, or with its project.
        let Some(Loaded { x, .. }) = found else { return Ok(Verdict::Done(Handled::Stale)) };
        let now = engine.ports.now();
        let open = match self.input {
            Input::Due(at) if x.next == Some(at) && at <= now => engine.schedules().open_runs(x, now).await?,
            _ => BTreeSet::new(),
        };
        Ok(match decide(x, self.input, &Facts { now, cause: self.cause, open: &open }) {
            Decision::Settle => Verdict::Settle,
            Decision::Commit(both) => {
                let (next, record) = *both;
                Verdict::Commit(Box::new(Change::new(Some(x), next, record)))
            }
        })
    }
}

/// Schedules, on the engine of the executions that they start.
pub struct Schedules<'a, P> {
    engine: &'a Sequences<P>,
}

impl<P: Ports> Sequences<P> {
    /// The schedules that start sequences.
    pub fn schedules(&self) -> Schedules<'_, P> {
        Schedules { engine: self }
    }
}

impl<P: Ports> Schedules<'_, P> {
    /// A message to a schedule.
    pub(crate) async fn turn(&self, project: &ProjectName, name: &str, input: Input, cause: Cause) -> Result<Handled, PortError> {
        run(self.engine, cause, &Turn { of: Of { project, name }, input, cause }).await
    }

    /// The services of a schedule whose last run is open, if it asks.
    async fn open_runs(&self, x: &Schedule, now: Timestamp) -> Result<BTreeSet<ServiceName>, PortError> {
        let mut open = BTreeSet::new();
        if x.spec.concurrency == Concurrency::Queue {
            return Ok(open);
        }
        for (service, run) in &x.runs {
            let query =
                Query::table(sequences::keys::context_partition(&x.project, &run.context), 100).prefix(sequences::keys::EXECUTION);
            let (items, _) = table::all(&self.engine.ports, query, EXECUTIONS).await?;
            let mut is_open = items.is_empty() && now < run.at + ON_ITS_WAY;
            for item in &items {
                is_open |= sequences::Loaded::read(item)?.x.outcome.is_none();
            }
            if is_open {
                open.insert(service.clone());
            }
        }
        Ok(open)
    }
}
