//! The evaluations engine: Keptn's lighthouse. The evaluations of a service in a stage are the subject of its messages.
//!
//! A sequence's task `evaluation` comes over the bus, and a pipeline's order as a message ([`asked`]). If the project has
//! objectives for the service, or names a source of metrics, the engine answers the task: it asks the source ([`measure`]), or a
//! service on the bus with `get-sli.triggered`, and judges what it gets ([`decide`]). What is asked where is in [`files`],
//! [`sources`] and [`asking`]. Deployers ask here what metrics say of two versions ([`canary`]).

mod asked;
mod asking;
mod canary;
mod chosen;
mod codec;
mod events;
mod files;
pub mod keys;
mod measure;
mod message;
pub mod sources;
mod subject;
mod views;

pub use canary::{Shown, Versions, Window};
pub use chosen::is_name;
pub use events::CONFIGURE;
pub use files::{MAX_FILE_BYTES, Reading};
pub use message::Message;
pub use views::Evaluation;

use crate::item::Key;
use crate::metrics::{Metrics, Series};
use crate::ports::{PortError, Ports};
use crate::projects::{Projects, Revisions};
use crate::protocol::sweep::Tick;
use crate::protocol::work::work;
use crate::protocol::{self, Change, Engine, Handled, Handler, Inbox, Letter, Verdict, run};
use crate::resources::Resources;
use crate::sequences::awaited::Awaited;
use crate::table::{self, Items};
use files::Files;
use keelway_domain::border::Home;
use keelway_domain::cause::Cause;
use keelway_domain::evaluation::{Comparison, Earlier, Measured, MetricsSource, Objectives, Period, Query};
use keelway_domain::evaluations::{Decision, Facts, Found, Input, Open, Rules, Service, decide};
use keelway_domain::event::CloudEvent;
use keelway_domain::shipyard::EVALUATION;
use keelway_domain::time::Span;

/// The name of the engine and of its queue.
pub const NAME: &str = "evaluations";

/// Settings of the installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// How long evaluations that have ended are kept. Default 90 days.
    pub retention: Span,
    /// What decisions depend on.
    pub rules: Rules,
    /// Region and account of the installation: where a name of a source without them is meant.
    pub home: Home,
}

impl Default for Limits {
    fn default() -> Self {
        Self { retention: Span::minutes(90 * 24 * 60), rules: Rules::default(), home: Home::default() }
    }
}

/// The sources of functions that ask none: the API and the sweep.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

impl Metrics for Nobody {
    async fn measure(&self, _: &str, _: &MetricsSource, _: &[Query], _: Period) -> Result<Vec<Measured>, PortError> {
        Err(Self::asked())
    }

    async fn series(&self, _: &str, _: &MetricsSource, _: &[Query], _: Period, _: Span) -> Result<Vec<Series>, PortError> {
        Err(Self::asked())
    }
}

impl Nobody {
    fn asked() -> PortError {
        PortError::Refused { request: "metrics", reason: "sources are asked by the function evaluations only".into() }
    }
}

/// A service's evaluations and the version of their item.
pub type Loaded = protocol::Loaded<Service>;
/// A message from the engine's queue.
pub type Incoming = protocol::Incoming<Message>;

/// The engine on its ports.
pub struct Evaluations<P, M = Nobody> {
    ports: P,
    limits: Limits,
    reading: Reading,
    metrics: M,
    revisions: Revisions,
}

impl<P: Ports> Evaluations<P> {
    /// An engine that asks no source.
    pub fn new(ports: P, limits: Limits, reading: Reading) -> Self {
        Self::with(ports, limits, reading, Nobody)
    }
}

impl<P: Ports, M: Metrics> Evaluations<P, M> {
    /// An engine that asks sources.
    pub fn with(ports: P, limits: Limits, reading: Reading, metrics: M) -> Self {
        Self { ports, limits, reading, metrics, revisions: Revisions::default() }
    }

    fn resources(&self) -> Resources<'_, P> {
        Resources { projects: Projects { ports: &self.ports, revisions: &self.revisions }, retention: self.limits.retention }
    }

    /// The files of a place, at a commit.
    fn files<'a>(&'a self, place: &'a [String; 3], commit: Option<&'a str>) -> Files<'a, P> {
        Files { resources: self.resources(), reading: &self.reading, place, commit }
    }

    async fn turn(&self, to: &[String; 3], input: Input<'_>, cause: Cause) -> Result<Handled, PortError> {
        run(self, cause, &Turn { to, input, found: &Found::Nothing, awaited: None, cause }).await
    }
}

impl<P: Ports, M: Metrics> Inbox for Evaluations<P, M> {
    type Ports = P;
    type Message = Message;

    const NAME: &'static str = NAME;

    fn ports(&self) -> &P {
        &self.ports
    }
    fn retention(&self) -> Span {
        self.limits.retention
    }
    async fn event(&self, event: &CloudEvent, cause: Cause) -> Result<Handled, PortError> {
        self.on_event(event, cause).await
    }
    async fn message(&self, message: &Message, cause: Cause) -> Result<Handled, PortError> {
        match message {
            Message::Measure { to, id, attempt } => {
                work(&self.ports, cause, &measure::Measure { on: self, to, id, attempt: *attempt, cause }).await
            }
            Message::Evaluate { to, id, period, asker } => self.for_pipeline(to, (id, *period, asker), cause).await,
            Message::Wake { to, at } => self.turn(to, Input::Wake(*at), cause).await,
            Message::Over { to, id } => self.turn(to, Input::Over(id), cause).await,
        }
    }
}

impl<P: Ports, M: Metrics> Engine<Service> for Evaluations<P, M> {
    /// Overdue wake-ups are sent again. So is that a sequence waits no longer, because the event that says so may have been lost.
    async fn look(&self, open: &[Loaded], tick: &mut Tick) -> Result<Vec<Letter>, PortError> {
        let mut letters = vec![];
        let mut tasks = vec![];
        for Loaded { x, .. } in open {
            letters
                .extend(x.wake.filter(|at| tick.overdue(Some(*at))).map(|at| Message::Wake { to: x.place.clone(), at }.letter()));
            tasks.extend(x.open.iter().filter_map(|open| Some((x, open, awaited(&x.place, open)?))));
        }
        let wanted: Vec<Key> = tasks.iter().map(|(.., awaited)| awaited.key()).collect();
        let executions = table::read(&self.ports, &wanted).await?;
        for (x, open, awaited) in tasks {
            match awaited.is_open(executions.get(&awaited.key())) {
                Ok(true) => {}
                Ok(false) => letters.push(Message::Over { to: x.place.clone(), id: open.id.clone() }.letter()),
                // An execution that this code cannot read does not delay the others.
                Err(error) => tracing::error!(service = ?x.place, %error, "the sweep passes over an evaluation"),
            }
        }
        Ok(letters)
    }
}

/// The task that an evaluation answers, if a sequence waits for it.
fn awaited(place: &[String; 3], open: &Open) -> Option<Awaited> {
    if open.asker.is_some() {
        return None;
    }
    Awaited::of((&place[0], &open.context), EVALUATION, &open.id)
}

/// An input on its way to the evaluations of a service.
struct Turn<'a> {
    to: &'a [String; 3],
    input: Input<'a>,
    found: &'a Found,
    /// The task that an evaluation begins with: it begins only while its sequence waits. `None`: a pipeline asks, or it has begun.
    awaited: Option<&'a Awaited>,
    cause: Cause,
}

impl Turn<'_> {
    /// The commit whose objectives the decision needs. `None`: it needs none.
    fn commit<'x>(&'x self, x: &'x Service) -> Option<Option<&'x str>> {
        let of = |open: &'x Open| open.revision.as_deref();
        match self.input {
            Input::Triggered(asked) => Some(asked.revision.as_deref()).filter(|_| !x.knows(&asked.id)),
            Input::Measured { id, .. } => x.open(id).map(of),
            Input::Provided(id, _) => x.asking(id).map(of),
            _ => None,
        }
    }
}

impl<P: Ports, M: Metrics> Handler<Service, Evaluations<P, M>> for Turn<'_> {
    fn key(&self) -> Key {
        keys::service(self.to)
    }

    async fn decide(&self, engine: &Evaluations<P, M>, found: Option<&Loaded>, _: &Items) -> Result<Verdict<Service>, PortError> {
        let (now, old) = (engine.ports.now(), found.map(|found| &found.x));
        let x = match (old, self.input) {
            (Some(x), _) => x.clone(),
            (None, Input::Triggered(_)) => Service::new(self.to.clone(), now),
            (None, _) => return Ok(Verdict::Done(Handled::Stale)),
        };
        let (objectives, file) = match self.commit(&x) {
            Some(commit) => engine.files(self.to, commit).objectives().await?,
            None => (Objectives::Missing, String::new()),
        };
        let earlier = match &objectives {
            Objectives::Read(slo) => engine.earlier(&x, &slo.comparison).await?,
            _ => vec![],
        };
        let rules = engine.limits.rules;
        let facts =
            Facts { now, cause: self.cause, rules, found: self.found, objectives: &objectives, file: &file, earlier: &earlier };
        Ok(match decide(&x, self.input, &facts) {
            Decision::Commit(next, record, ended) => {
                let mut change = Change::new(old, *next, record.map(|record| *record));
                let expires = now + engine.limits.retention;
                // The sequence may give the task up between the read and the commit; what was given up begins no second time.
                change.with.extend(self.awaited.map(Awaited::check));
                change.items.extend(ended.iter().map(|ended| codec::ended(self.to, ended, expires)));
                Verdict::Commit(Box::new(change))
            }
            Decision::Settle => Verdict::Settle,
            Decision::Late => Verdict::Late,
        })
    }
}

impl<P: Ports, M: Metrics> Evaluations<P, M> {
    /// The evaluations that a new one is compared with, newest first.
    async fn earlier(&self, x: &Service, comparison: &Comparison) -> Result<Vec<Earlier>, PortError> {
        let chosen = x.past.iter().filter(|past| past.evaluated && !past.invalidated && comparison.counts(past.result));
        let chosen: Vec<_> = chosen.take(comparison.wanted()).collect();
        let wanted: Vec<Key> = chosen.iter().map(|past| keys::ended(&x.place, (&past.id, &past.content))).collect();
        let items = table::read(&self.ports, &wanted).await?;
        let mut earlier = vec![];
        for (past, key) in chosen.into_iter().zip(&wanted) {
            // It may have expired.
            if let Some(item) = items.get(key) {
                let values = codec::read_ended(item)?.values;
                earlier.push(Earlier { id: past.finished.clone(), result: past.result, invalidated: false, values });
            }
        }
        Ok(earlier)
    }
}
