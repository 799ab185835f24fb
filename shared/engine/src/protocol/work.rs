//! Work outside: effects of an engine's decisions where no transaction reaches, on servers of other people and on AWS. [`work`]
//! takes the steps in the one order in which a worker may stop after each of them:
//!
//! 1. *find* the present state of the subject of the message;
//! 2. *claim* the work, if it is still needed. A worker that stops before has done nothing;
//! 3. do it *outside*. This first looks for results of an earlier claim, because a worker that stops here leaves them behind, and
//!    the redelivery claims the work again;
//! 4. *tell* the outcome, in a write that is valid for this claim only.
//!
//! If the worker stops after that write, the redelivery finds that the work is no longer needed. It then performs what is *owed*:
//! the effects of the write, which nothing else performs.

use super::incoming::Handled;
use crate::ports::{Clock, PortError};
use keelway_domain::cause::Cause;
use keelway_domain::time::Span;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// The work that a message orders.
pub trait Work: Sync {
    /// The subject of the message.
    type Found: Send + Sync;
    /// Everything that the work needs.
    type Task: Send + Sync;
    /// The outcome of the work.
    type Outcome: Send;

    /// Reads the subject of the message. `None`: it no longer exists, so there is no work.
    fn find(&self) -> impl Future<Output = Result<Option<Self::Found>, PortError>> + Send;
    /// Claims the work, if it is still needed.
    fn claim(&self, found: &Self::Found) -> impl Future<Output = Result<Claim<Self::Task>, PortError>> + Send;
    /// Does the work, which may have been done before. `None`: there is nothing to tell.
    fn outside(
        &self,
        found: &Self::Found,
        task: &Self::Task,
    ) -> impl Future<Output = Result<Option<Self::Outcome>, PortError>> + Send;
    /// Writes the outcome.
    fn tell(
        &self,
        found: &Self::Found,
        task: Self::Task,
        outcome: Self::Outcome,
    ) -> impl Future<Output = Result<Handled, PortError>> + Send;
    /// Performs the effects that an earlier delivery of the message owes, if it wrote the outcome and then stopped.
    fn owed(&self, _found: &Self::Found) -> impl Future<Output = Result<(), PortError>> + Send {
        async { Ok(()) }
    }

    /// The interval of heartbeats; `None`: the claim needs none.
    fn every(&self) -> Option<Span> {
        None
    }
    /// Sends the `n`th heartbeat.
    fn beat(&self, _task: &Self::Task, _n: u64) -> impl Future<Output = Result<(), PortError>> + Send {
        async { Ok(()) }
    }
}

/// The result of a claim.
#[derive(Debug)]
pub enum Claim<T> {
    /// This worker has the claim.
    Mine(T),
    /// The work is no longer needed: an earlier delivery may have done it.
    Unwanted,
    /// This message does not do it: it is too early, or another worker has the claim. Nothing remains to be done.
    Not(Handled),
}

/// Does the work that a message orders.
///
/// # Errors
/// An error of a port: the message must be delivered again.
pub async fn work<W: Work>(clock: &impl Clock, cause: Cause, order: &W) -> Result<Handled, PortError> {
    let Some(found) = order.find().await? else { return Ok(Handled::Stale) };
    let handled = match order.claim(&found).await? {
        Claim::Mine(task) => match alive(clock, order, &found, &task).await? {
            Some(outcome) => return order.tell(&found, task, outcome).await,
            None => Handled::Settled,
        },
        Claim::Unwanted => Handled::Stale,
        Claim::Not(handled) => return Ok(handled),
    };
    if cause.again {
        order.owed(&found).await?;
    }
    Ok(handled)
}

/// Does the work, and sends heartbeats meanwhile. A failed heartbeat does not matter, because the next one follows; the write of
/// the outcome shows whether the claim is still valid.
async fn alive<W: Work>(clock: &impl Clock, order: &W, found: &W::Found, task: &W::Task) -> Result<Option<W::Outcome>, PortError> {
    let mut outside = pin!(order.outside(found, task));
    let Some(every) = order.every() else { return outside.await };
    let mut pause = pin!(clock.pause(every));
    let (mut told, mut beats) = (clock.now(), 0);
    loop {
        let done = poll_fn(|cx| {
            if let Poll::Ready(done) = outside.as_mut().poll(cx) {
                return Poll::Ready(Some(done));
            }
            // Only the clock tells how long a pause really was.
            while pause.as_mut().poll(cx).is_ready() {
                pause.set(clock.pause(every));
                if clock.now() - told >= every {
                    return Poll::Ready(None);
                }
            }
            Poll::Pending
        });
        if let Some(done) = done.await {
            return done;
        }
        (told, beats) = (clock.now(), beats + 1);
        if let Err(error) = order.beat(task, beats).await {
            tracing::warn!(%error, "work outside goes on, and could not say so");
        }
    }
}
