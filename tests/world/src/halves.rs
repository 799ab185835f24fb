//! An engine and who carries out what it decides, on one worker and behind one queue: in a function, each has its own.

use crate::played::Played;
use crate::tested::Tested;
use keelway_domain::cause::Cause;
use keelway_domain::event::CloudEvent;
use keelway_domain::stored::Stored;
use keelway_domain::time::Span;
use keelway_engine::item::Key;
use keelway_engine::ports::PortError;
use keelway_engine::protocol::sweep::Tick;
use keelway_engine::protocol::{Engine, Handled, Inbox, Letter, Loaded, OwnMessage, Sameness, Subject};

/// Both.
pub struct Halves<D, C> {
    /// Decides.
    pub decides: D,
    /// Carries it out.
    pub carries: C,
}

/// A message to one of them.
#[derive(Debug, Clone, PartialEq)]
pub enum Either<D, C> {
    /// To the engine.
    Decide(D),
    /// To who carries it out.
    Carry(C),
}

impl<D: Stored, C: Stored> Stored for Either<D, C> {
    fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        D::from_json(text).map(Either::Decide).or_else(|_| C::from_json(text).map(Either::Carry))
    }
    fn to_json(&self) -> String {
        match self {
            Either::Decide(message) => message.to_json(),
            Either::Carry(message) => message.to_json(),
        }
    }
}

impl<D: OwnMessage, C: OwnMessage> OwnMessage for Either<D, C> {
    fn sameness(&self) -> Sameness {
        match self {
            Either::Decide(message) => message.sameness(),
            Either::Carry(message) => message.sameness(),
        }
    }
}

impl<D: Inbox, C: Inbox> Inbox for Halves<D, C> {
    type Ports = D::Ports;
    type Message = Either<D::Message, C::Message>;

    const NAME: &'static str = D::NAME;

    fn ports(&self) -> &D::Ports {
        self.decides.ports()
    }
    fn retention(&self) -> Span {
        self.decides.retention()
    }
    async fn event(&self, event: &CloudEvent, cause: Cause) -> Result<Handled, PortError> {
        self.decides.event(event, cause).await
    }
    async fn message(&self, message: &Self::Message, cause: Cause) -> Result<Handled, PortError> {
        match message {
            Either::Decide(message) => self.decides.message(message, cause).await,
            Either::Carry(message) => self.carries.message(message, cause).await,
        }
    }
}

impl<S: Subject, D: Engine<S>, C: Inbox> Engine<S> for Halves<D, C> {
    async fn perform(&self, x: &S, duty: &S::Duty) -> Result<(), PortError> {
        self.decides.perform(x, duty).await
    }
    async fn look(&self, open: &[Loaded<S>], tick: &mut Tick) -> Result<Vec<Letter>, PortError> {
        self.decides.look(open, tick).await
    }
}

impl<D: Tested, C: Played + 'static> Tested for Halves<D, C> {
    fn takes(source: &str, detail_type: &str) -> bool {
        D::takes(source, detail_type)
    }
    fn is_state(key: &Key) -> bool {
        D::is_state(key)
    }
}
