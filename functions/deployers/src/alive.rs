//! Keeps a claim while a step is taken. The lease is short, so that whoever stops in the middle of a step is followed soon; a hook
//! may take minutes.

use crate::{Attempt, Deployers, STEP};
use keelway_domain::deployments::{Call, Progress};
use keelway_domain::time::Span;
use keelway_engine::functions::Functions;
use keelway_engine::ports::Ports;
use keelway_engine::protocol::Inbox;
use keelway_engine::starters::Starters;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// The claim is renewed after this time, and again and again.
const BEAT: Span = Span::seconds(15);

impl<P: Ports, C: Functions + Starters> Deployers<P, C> {
    /// Takes a step, and keeps the claim meanwhile.
    pub(crate) async fn alive<T>(&self, attempt: &Attempt<'_>, token: &str, step: impl Future<Output = T>) -> T {
        let mut step = pin!(step);
        let mut pause = pin!(self.ports().pause(BEAT));
        let mut told = self.engine.now();
        loop {
            let done = poll_fn(|cx| {
                if let Poll::Ready(done) = step.as_mut().poll(cx) {
                    return Poll::Ready(Some(done));
                }
                while pause.as_mut().poll(cx).is_ready() {
                    pause.set(self.ports().pause(BEAT));
                    if self.engine.now() - told >= BEAT {
                        return Poll::Ready(None);
                    }
                }
                Poll::Pending
            });
            if let Some(done) = done.await {
                return done;
            }
            told = self.engine.now();
            let (running, lease, progress) = (false, STEP, Progress::default());
            let beat = Call::Heartbeat { token: token.to_owned(), running, lease, progress };
            // Whether the claim still counts is seen when the step has ended.
            if let Err(error) = self.engine.say(attempt.of, attempt.n, &beat).await {
                tracing::warn!(config = %attempt.of, n = attempt.n, %error, "a step goes on, and could not say so");
            }
        }
    }
}
