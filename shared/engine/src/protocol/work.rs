//! Work outside: what an engine has decided is done where no transaction reaches, on servers of other people and on AWS. [`work`]
//! takes its steps in the one order in which a worker may stop after each of them:
//!
//! 1. *find* what the message is about, as it is now;
//! 2. *claim* the work, if it is still wanted. A worker that stops before has done nothing;
//! 3. do it *outside*. It looks first for what an earlier claim may have made: a worker that stops here leaves that behind, and the
//!    redelivery claims the work again;
//! 4. *tell* what came of it, in a write that counts for this claim alone.
//!
//! If the worker stops after that write, the redelivery finds that the work is not wanted any more. Then it performs what is
//! *owed*: the effects of the write, which nobody else performs.

use super::delivery::Handled;
use crate::ports::{Clock, PortError};
use keelway_domain::cause::Cause;
use keelway_domain::time::Span;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// What a message orders to be done outside.
pub trait Work: Sync {
    /// What the message is about.
    type Found: Send + Sync;
    /// What doing it takes.
    type Task: Send + Sync;
    /// What came of it.
    type Outcome: Send;

    /// Reads what the message is about. `None`: it is gone, and so is the work.
    fn find(&self) -> impl Future<Output = Result<Option<Self::Found>, PortError>> + Send;
    /// Claims the work, if it is still wanted.
    fn claim(&self, found: &Self::Found) -> impl Future<Output = Result<Claim<Self::Task>, PortError>> + Send;
    /// Does it. It may have been done before. `None`: there is nothing to tell.
    fn outside(
        &self,
        found: &Self::Found,
        task: &Self::Task,
    ) -> impl Future<Output = Result<Option<Self::Outcome>, PortError>> + Send;
    /// Tells what came of it.
    fn tell(
        &self,
        found: &Self::Found,
        task: Self::Task,
        outcome: Self::Outcome,
    ) -> impl Future<Output = Result<Handled, PortError>> + Send;
    /// Performs what an earlier delivery of the message owes, if it told what came of the work and stopped there.
    fn owed(&self, _found: &Self::Found) -> impl Future<Output = Result<(), PortError>> + Send {
        async { Ok(()) }
    }

    /// How often it says that the work goes on; `None`: the claim does not need that.
    fn every(&self) -> Option<Span> {
        None
    }
    /// Says for the `n`th time that the work goes on.
    fn beat(&self, _task: &Self::Task, _n: u64) -> impl Future<Output = Result<(), PortError>> + Send {
        async { Ok(()) }
    }
}

/// Whether work is to be done now.
#[derive(Debug)]
pub enum Claim<T> {
    /// By whoever has this.
    Mine(T),
    /// Nobody wants it any more: an earlier delivery may have done it.
    Unwanted,
    /// Not by this message: it is too early, or somebody else does it. Whatever was to be done about that is done.
    Not(Handled),
}

/// Does what a message orders.
///
/// # Errors
/// Of the ports: the message must be delivered again.
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

/// Goes outside, and says meanwhile that the work goes on. A beat that fails is made up for by the next; whether the claim still
/// counts is seen when the outcome is told.
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
            // How long a pause really was, only the clock says.
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
