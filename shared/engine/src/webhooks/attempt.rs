//! Makes the next attempt of a delivery: one request to its receiver.

use super::places::Place;
use super::{Address, Applied, Loaded, Request, Sender, Webhooks, codec, keys};
use crate::item::{Item, MAX_ITEM_BYTES};
use crate::ports::{PortError, Ports};
use crate::protocol::Handled;
use crate::protocol::work::{Claim, Work};
use crate::sequences::waits;
use keelway_domain::cause::Cause;
use keelway_domain::ids::SubjectId;
use keelway_domain::time::Timestamp;
use keelway_domain::webhooks::{Delivery, End, Exchange, Executor, Input};

/// The room in the item of a delivery that its attempts may take, in bytes.
const ROOM: usize = 64 * 1024;

/// The next attempt of a delivery.
pub(super) struct Try<'a, P, S> {
    pub on: &'a Webhooks<P, S>,
    pub to: SubjectId,
    pub cause: Cause,
}

/// A request to be sent.
pub(super) struct Due<'a> {
    of: Address,
    applied: Applied,
    place: Place<'a>,
    now: Timestamp,
}

impl<'a, P: Ports, S: Sender> Work for Try<'a, P, S> {
    type Found = Delivery;
    type Task = Due<'a>;
    type Outcome = Exchange;

    /// `None`: it ended long ago and has expired.
    async fn find(&self) -> Result<Option<Delivery>, PortError> {
        let item = self.on.ports.get(&keys::delivery(self.to)).await?;
        Ok(item.as_ref().map(Loaded::read).transpose()?.map(|loaded| loaded.x))
    }

    async fn claim(&self, x: &Delivery) -> Result<Claim<Due<'a>>, PortError> {
        let (on, now) = (self.on, self.on.ports.now());
        // An earlier delivery of the message may have made the request and then stopped.
        if x.due.is_none_or(|due| due > now) {
            return self.not(Input::Wake).await;
        }
        let of = Address { namespace: x.of.0.clone(), name: x.of.1.clone() };
        let applied = match on.subscription(&of).await? {
            None => return self.not(Input::Stop(End::Deleted)).await,
            Some(Applied { off: Some(_), .. }) => return self.not(Input::Stop(End::Disabled)).await,
            Some(applied) => applied,
        };
        if !has_room(x) {
            return self.not(Input::Stop(End::TooLarge)).await;
        }
        if x.executor != Executor::default() && waits::is_over(&on.ports, &x.event).await? {
            return self.not(Input::Stop(End::TaskOver)).await;
        }
        let Some(place) = on.places.take(&of, now) else {
            tracing::info!(webhook = %of, delivery = %self.to, "put back: the receiver takes long, and has its share of the places");
            return self.not(Input::PutBack(x.attempts.len())).await;
        };
        Ok(Claim::Mine(Due { of, applied, place, now }))
    }

    async fn outside(&self, x: &Delivery, due: &Due<'a>) -> Result<Option<Exchange>, PortError> {
        let request = Request { of: &due.of, subscription: &due.applied.value, delivery: x, now: due.now };
        self.on.sender.send(&request).await.map(Some)
    }

    async fn tell(&self, x: &Delivery, due: Due<'a>, attempt: Exchange) -> Result<Handled, PortError> {
        due.place.made(&attempt, self.on.ports.now());
        tracing::info!(
            webhook = %due.of,
            delivery = %self.to,
            attempt = x.attempts.len() + 1,
            status = attempt.status,
            duration_ms = attempt.ms,
            error = attempt.error,
            "webhook tried"
        );
        self.on.turn(self.to, (Input::Attempted(x.attempts.len(), &attempt), Some(&due.applied)), self.cause).await
    }
}

impl<P: Ports, S: Sender> Try<'_, P, S> {
    /// There is no request to send: the reason is recorded in the delivery.
    async fn not<T>(&self, input: Input<'_>) -> Result<Claim<T>, PortError> {
        self.on.turn(self.to, (input, None), self.cause).await.map(Claim::Not)
    }
}

/// Whether the item has room for a receiver's answers. Events are much smaller than this limit, except those that older code
/// accepted.
fn has_room(x: &Delivery) -> bool {
    let item = Item { key: keys::delivery(x.id), attrs: codec::attributes(x, x.began) };
    item.size() + ROOM.saturating_sub(json_bytes(&x.attempts)) <= MAX_ITEM_BYTES
}

fn json_bytes(attempts: &[Exchange]) -> usize {
    crate::json::json(&attempts).len()
}
