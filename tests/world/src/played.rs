//! An engine on a worker, as one function that handles a message.
//!
//! Engines are generic over their ports, and optimised code is not shared between crates: whoever awaits an engine's `handle`
//! compiles the engine once more. What is boxed here is compiled here (docs/decisions/0113).

use crate::evaluations::Sources;
use crate::halves::{Either, Halves};
use crate::worker::Worker;
use keelway_engine::aliases::Aliases;
use keelway_engine::deployers::Deployers;
use keelway_engine::deployments::Deployments;
use keelway_engine::evaluations::Evaluations;
use keelway_engine::metrics::Metrics;
use keelway_engine::ports::PortError;
use keelway_engine::promotions::Promotions;
use keelway_engine::promotions::attempts::{Attempts, Outside};
use keelway_engine::promotions::observer::{Clusters, Observer};
use keelway_engine::protocol::{Body, Handled, Inbox, Incoming};
use keelway_engine::runners::Runners;
use keelway_engine::sequences::Sequences;
use keelway_engine::webhooks::{Sender, Webhooks};
use std::pin::Pin;

/// What becomes of a message.
pub type Playing<'a> = Pin<Box<dyn Future<Output = Result<Handled, PortError>> + Send + 'a>>;

/// An inbox on a worker.
pub trait Played: Inbox {
    /// Handles a delivery, as [`Inbox::handle`] does.
    fn play<'a>(&'a self, incoming: &'a Incoming<Self::Message>) -> Playing<'a>;
}

/// Implements [`Played`] for a type, whose parameters stand in brackets before it.
#[macro_export]
macro_rules! played {
    ([$($parameters:tt)*] $inbox:ty) => {
        impl<$($parameters)*> $crate::played::Played for $inbox {
            fn play<'a>(
                &'a self,
                incoming: &'a ::keelway_engine::protocol::Incoming<Self::Message>,
            ) -> $crate::played::Playing<'a> {
                Box::pin(::keelway_engine::protocol::Inbox::handle(self, incoming))
            }
        }
    };
    ($inbox:ty) => {
        $crate::played!([] $inbox);
    };
}

played!(Sequences<Worker>);
played!(Promotions<Worker>);
played!(Deployments<Worker>);
played!(Evaluations<Worker, Sources>);
played!([S: Sender + 'static] Webhooks<Worker, S>);
played!([O: Outside] Attempts<Worker, O>);
played!([C: Clusters] Observer<Worker, C>);
played!([C: Aliases + Runners, M: Metrics] Deployers<Worker, C, M>);

impl<D: Played, C: Played> Played for Halves<D, C> {
    fn play<'a>(&'a self, incoming: &'a Incoming<Self::Message>) -> Playing<'a> {
        let (sent, again) = (incoming.sent, incoming.again);
        Box::pin(async move {
            match incoming.body.clone() {
                Body::Event(event) => self.decides.play(&Incoming { sent, again, body: Body::Event(event) }).await,
                Body::Own(Either::Decide(message)) => self.decides.play(&Incoming { sent, again, body: Body::Own(message) }).await,
                Body::Own(Either::Carry(message)) => self.carries.play(&Incoming { sent, again, body: Body::Own(message) }).await,
                Body::Invalid { reason, text } => {
                    self.decides.play(&Incoming { sent, again, body: Body::Invalid { reason, text } }).await
                }
            }
        })
    }
}
