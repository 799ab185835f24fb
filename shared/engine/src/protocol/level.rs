//! The turn of a level-triggered state: what becomes of an input before and after the pure decision, in every engine of such
//! states.

use crate::ports::PortError;
use crate::protocol::{Handled, Inbox, Subject, Verdict, invalid, record};
use keelway_domain::address::Address;
use keelway_domain::cause::Cause;
use keelway_domain::event::CloudEvent;
use keelway_domain::ids::{RecordId, context_of};
use keelway_domain::level::Level;
use keelway_domain::names::Context;
use keelway_domain::note::Note;
use keelway_domain::record::Record;
use keelway_domain::time::Timestamp;
use std::fmt::Debug;

/// What is given to a state.
pub trait Given: Debug {
    /// Who asks, when and why, if it is a command.
    fn note(&self) -> Option<&Note>;
}

/// An input on its way to a state.
pub struct Turn<'a, I> {
    pub to: &'a Address,
    pub input: I,
    pub cause: Cause,
}

impl<I: Given> Turn<'_, I> {
    /// The text under which an invalid input is recorded.
    fn text(&self) -> String {
        format!("{} {:?}", self.to, self.input)
    }

    /// When the input was sent. For a command that is sent again later, this is still the time of the first request, whose result
    /// holds for every copy.
    fn since(&self) -> Timestamp {
        self.input.note().map(|note| note.at).filter(|at| *at > Timestamp(0)).unwrap_or(self.cause.sent)
    }

    /// Whether nobody remembers any more what became of it.
    pub fn is_forgotten(&self, inbox: &impl Inbox, now: Timestamp) -> bool {
        self.since() + inbox.retention() < now
    }

    /// The state to decide about, from the one that is stored and whether its definition is in force. `None`: it was deleted, and
    /// is over.
    pub fn state<X: Level + Subject>(&self, old: Option<&X>, defined: bool, new: impl FnOnce() -> X) -> Option<X> {
        match old {
            Some(x) if defined || !x.over() => Some(x.clone()),
            None if defined => Some(new()),
            _ => None,
        }
    }

    /// The state was deleted, and is over: whoever ended it may have stopped before it told that.
    pub async fn deleted<X: Level + Subject>(&self, inbox: &impl Inbox, old: Option<&X>) -> Result<Verdict<X>, PortError> {
        if let Some(note) = self.input.note()
            && !old.is_some_and(|x| x.has_obeyed(note))
        {
            // Copies of this input must do nothing, even if the name is used again.
            self.record(inbox, &format!("{} was deleted", self.to)).await?;
        }
        Ok(Verdict::Late)
    }

    /// Whether it is a copy of a command that was refused: it stays refused, whatever has changed since.
    pub async fn was_refused(&self, inbox: &impl Inbox) -> Result<bool, PortError> {
        Ok(self.input.note().is_some() && invalid::recorded(inbox.ports(), self.since(), &self.text()).await?)
    }

    /// Whether what it asks for does not fit any more because it was done: by an earlier delivery, or by a write whose answer was
    /// lost.
    pub async fn was_done<X: Subject>(&self, inbox: &impl Inbox, old: Option<&X>) -> Result<bool, PortError> {
        Ok(match old {
            Some(x) => !record::made_by(inbox.ports(), x, self.cause).await?.is_empty(),
            None => false,
        })
    }

    /// It cannot be obeyed.
    pub async fn refuse<X: Subject>(&self, inbox: &impl Inbox, reason: &str) -> Result<Verdict<X>, PortError> {
        self.record(inbox, reason).await?;
        Ok(Verdict::Done(Handled::Invalid))
    }

    async fn record(&self, inbox: &impl Inbox, reason: &str) -> Result<(), PortError> {
        invalid::record(inbox.ports(), inbox.retention(), self.since(), reason, &self.text()).await.map(drop)
    }
}

/// The events of a record of such a state; they share a context.
pub fn events<S>(kind: &str, of: &Address, id: &RecordId, record: &Record<S>) -> Vec<CloudEvent> {
    Context::new(context_of(kind, &of.to_string()).to_string()).map(|context| record.events(id, &context)).unwrap_or_default()
}
