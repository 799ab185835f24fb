//! The promotions engine: level-triggered pipelines. A pipeline is the subject of its messages.
//!
//! [`Promotions`] decides: every message ends in an evaluation of the whole pipeline ([`keelway_domain::promotions::decide`]).
//! [`attempts::Attempts`] carries orders out, with a queue and a function of its own, because it waits for servers of other people;
//! so does [`observer::Observer`], which reads clusters. The API writes `definitions` and `observations`, which have no effects of
//! their own, and wakes the pipelines concerned.

pub mod attempts;
pub mod by_sequence;
mod circle;
pub mod codec;
pub mod credentials;
pub mod definitions;
pub mod keys;
pub mod limit;
mod look;
pub mod message;
pub mod observations;
pub mod observer;
pub mod repeated;
mod subject;
pub mod views;
pub mod watch;

pub use message::{Address, Job, Message, Observe};

use crate::item::Key;
use crate::ports::{Condition, PortError, Ports, Write};
use crate::protocol::level::{self, Given};
use crate::protocol::sweep::Tick;
use crate::protocol::{Change, Engine, Handled, Handler, Inbox, Letter, Verdict, run};
use crate::table::{self, Items};
use keelway_domain::cause::Cause;
use keelway_domain::event::{CloudEvent, EventType, Kind, PROMOTION};
use keelway_domain::level::Level as _;
use keelway_domain::note::Note;
use keelway_domain::promotions::observe::Observations;
use keelway_domain::promotions::{Decision, Facts, Input, Pipeline, With, decide};
use keelway_domain::time::Span;
use subject::Watch;

/// The name of the engine and of its queue.
pub const NAME: &str = "promotions";
/// The queue of attempts.
pub const ATTEMPTS: &str = "attempts";
/// The queue of the observer.
pub const OBSERVER: &str = "observer";

/// Settings of the installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long history is kept. Default 90 days.
    pub retention: Span,
}

impl Default for Limits {
    fn default() -> Self {
        Self { retention: Span::minutes(90 * 24 * 60) }
    }
}

/// A delivery of this engine.
pub type Incoming = crate::protocol::Incoming<Message>;
/// A pipeline and the version of its item.
pub type Loaded = crate::protocol::Loaded<Pipeline>;

/// The engine on its ports.
pub struct Promotions<P> {
    ports: P,
    limits: Limits,
}

impl<P: Ports> Promotions<P> {
    /// An engine on these ports.
    pub fn new(ports: P, limits: Limits) -> Self {
        Self { ports, limits }
    }

    /// Handles an input of a pipeline.
    pub(crate) async fn turn(&self, to: &Address, input: Input<'_>, cause: Cause) -> Result<Handled, PortError> {
        run(self, cause, &Turn { to, input, cause }).await
    }
}

impl<P: Ports> Inbox for Promotions<P> {
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
        match followed(event) {
            Some(job) => table::send_all(&self.ports, &[job.letter()]).await.map(|()| Handled::Recorded),
            None => self.observed_by_event(event, cause).await,
        }
    }
    async fn message(&self, message: &Message, cause: Cause) -> Result<Handled, PortError> {
        let (to, input) = match message {
            Message::Evaluate { to, .. } => (to, Input::Evaluate),
            Message::Wake { to, at } => (to, Input::Wake(*at)),
            Message::Ended { to, attempt, outcome } => (to, Input::Ended(attempt, outcome)),
            Message::Seen { to, attempt, seen, .. } => (to, Input::Seen(attempt, seen)),
            Message::Closed { to, attempt, how } => (to, Input::Closed(attempt, how)),
            Message::Evaluated { to, environment, id, answer, .. } => (to, Input::Evaluated(environment, id, answer)),
            Message::Command { to, command, note } => (to, Input::Command(command, note)),
        };
        let handled = self.turn(to, input, cause).await?;
        if let (Handled::Stale, Message::Seen { attempt, repository: Some(repository), .. }) = (handled, message) {
            watch::forget(&self.ports, repository, to, attempt).await?;
        }
        Ok(handled)
    }
}

impl<P: Ports> Engine<Pipeline> for Promotions<P> {
    async fn perform(&self, x: &Pipeline, duty: &Watch) -> Result<(), PortError> {
        watch::begin(&self.ports, &x.address(), duty).await
    }
    async fn look(&self, open: &[Loaded], tick: &mut Tick) -> Result<Vec<Letter>, PortError> {
        look::look(self, open, tick).await
    }
}

/// The look at a sequence that has ended, if it carried a promotion out. The event is only a hint: the result is read from the
/// state of the sequence.
fn followed(event: &CloudEvent) -> Option<Job> {
    let EventType::Sequence(_, _, Kind::Finished) = EventType::parse(&event.ty) else { return None };
    let text = |name: &str| event.data.get(PROMOTION)?.get(name)?.as_str().map(str::to_owned);
    let of = Address { namespace: text("namespace")?, name: text("pipeline")? };
    Some(Job::Follow { of, environment: text("environment")?, because: event.id.clone() })
}

/// An input on its way to a pipeline.
type Turn<'a, 'i> = level::Turn<'a, Input<'i>>;

impl Given for Input<'_> {
    fn note(&self) -> Option<&Note> {
        if let Input::Command(_, note) = self { Some(note) } else { None }
    }
}

impl<P: Ports> Handler<Pipeline, Promotions<P>> for Turn<'_, '_> {
    fn key(&self) -> Key {
        keys::pipeline(self.to)
    }

    fn reads(&self) -> Vec<Key> {
        vec![keys::definition(self.to)]
    }

    async fn decide(&self, engine: &Promotions<P>, found: Option<&Loaded>, items: &Items) -> Result<Verdict<Pipeline>, PortError> {
        let definition = items.get(&keys::definition(self.to)).map(definitions::read).transpose()?.flatten();
        let observations = match &definition {
            Some(applied) => observations::of(&engine.ports, self.to, &applied.spec).await?,
            None => Observations::new(),
        };
        let now = engine.ports.now();
        if self.is_forgotten(engine, now) {
            return Ok(Verdict::Late);
        }
        let old = found.map(|loaded| &loaded.x);
        let new = || Pipeline::new(&self.to.namespace, &self.to.name, now);
        let Some(x) = self.state(old, definition.is_some(), new) else { return self.deleted(engine, old).await };
        let facts = Facts {
            now,
            cause: self.cause,
            definition: definition.as_ref().map(|applied| &applied.spec),
            observations: &observations,
        };
        match decide(&x, self.input, &facts) {
            Decision::Commit(_) if self.was_refused(engine).await? => Ok(Verdict::Done(Handled::Invalid)),
            Decision::Commit(transition) => {
                let mut change = Change::new(old, transition.next, transition.record);
                let expires = now + engine.limits.retention;
                let With { past, obeyed } = transition.with;
                let history = past.iter().map(|past| codec::past(self.to, past, expires));
                let history = history.chain(obeyed.iter().map(|obeyed| codec::obeyed(self.to, obeyed, expires)));
                // With the commit or not at all: a writer that loses its race leaves no history.
                change.with.extend(history.map(|item| Write::Put(item, Condition::Always)));
                Ok(Verdict::Commit(Box::new(change)))
            }
            Decision::Settle => Ok(Verdict::Settle),
            Decision::Late => Ok(Verdict::Late),
            Decision::Refused(_) if self.was_done(engine, old).await? => Ok(Verdict::Settle),
            Decision::Refused(refused) => self.refuse(engine, refused.reason()).await,
        }
    }
}
