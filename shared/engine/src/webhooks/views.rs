//! The log of deliveries, and commands for a delivery.

use super::subscriptions::Applied;
use super::{Address, Loaded, Message, NAME, Sender, Webhooks, keys};
use crate::item::{Item, Key};
use crate::keys::{open_work, shard_of};
use crate::ports::{Cursor, Index, PortError, Ports, Query};
use crate::table;
use keelway_domain::ids::SubjectId;
use keelway_domain::webhooks::{self, Delivery};

/// The most open deliveries of a namespace that are checked for their subscription.
const LOOKED_AT: usize = 500;

/// A page of deliveries.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeliveryPage {
    /// Newest first.
    pub deliveries: Vec<Delivery>,
    /// Where the next page begins.
    pub next: Option<String>,
}

/// The result of a request for redelivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Redelivery {
    /// The next attempt is made now.
    Now,
    /// The delivery had ended; the event is delivered once more, with this id.
    Again(SubjectId),
    /// The delivery does not exist any more.
    Unknown,
    /// Its subscription was deleted.
    Deleted,
    /// Its subscription is disabled.
    Disabled,
}

impl<P: Ports, S: Sender> Webhooks<P, S> {
    /// A page of a namespace's deliveries, newest first, optionally of one subscription only. The index lags by a moment. A page
    /// that is not the last one may have fewer entries than `limit`, or none.
    ///
    /// # Errors
    /// A port fails.
    pub async fn deliveries(
        &self,
        namespace: &str,
        of: Option<&str>,
        after: Option<&str>,
        limit: u32,
    ) -> Result<DeliveryPage, PortError> {
        let id = |place: &str| place.rsplit('#').next().and_then(SubjectId::parse);
        let cursor = after.and_then(|place| Some(Cursor { key: keys::delivery(id(place)?), index_sort: Some(place.to_owned()) }));
        let query = Query::index(Index::ByWork, keys::log(namespace), limit).newest_first().after(cursor);
        let page = self.ports.query(&query).await?;
        let wanted: Vec<Key> = page.items.iter().map(|item| item.key.clone()).collect();
        let items = table::read(&self.ports, &wanted).await?;
        let mut deliveries = vec![];
        for item in wanted.iter().filter_map(|key| items.get(key)) {
            let Loaded { x, .. } = Loaded::read(item)?;
            deliveries.extend(Some(x).filter(|x| of.is_none_or(|of| x.of.1 == of)));
        }
        Ok(DeliveryPage { deliveries, next: page.next.and_then(|next| next.index_sort) })
    }

    /// The number of open deliveries to a subscription, among the 500 oldest of its namespace. The index lags by a moment.
    ///
    /// # Errors
    /// A port fails.
    pub async fn waiting(&self, of: &Address) -> Result<usize, PortError> {
        let partition = open_work(NAME, shard_of(&of.namespace));
        let query = Query::index(Index::ByAge, partition, 100).prefix(&format!("{}#", of.namespace));
        let (entries, _) = table::all(&self.ports, query, LOOKED_AT).await?;
        let wanted: Vec<Key> = entries.into_iter().map(|item| item.key).collect();
        let items = table::read(&self.ports, &wanted).await?;
        let waits = |item: &&Item| item.text("na") == Some(of.name.as_str()) && item.number("du").is_some();
        Ok(items.values().filter(waits).count())
    }

    /// A delivery of a namespace.
    ///
    /// # Errors
    /// A port fails.
    pub async fn delivery(&self, namespace: &str, id: SubjectId) -> Result<Option<Delivery>, PortError> {
        let item = self.ports.get(&keys::delivery(id)).await?;
        let found = item.as_ref().map(Loaded::read).transpose()?.map(|loaded| loaded.x);
        Ok(found.filter(|x| x.of.0 == namespace))
    }

    /// Delivers an event again, or orders the next attempt now. `ask`: distinguishes one request of a person from another.
    ///
    /// # Errors
    /// A port fails.
    pub async fn redeliver(&self, namespace: &str, id: SubjectId, ask: &str) -> Result<Redelivery, PortError> {
        let Some(x) = self.delivery(namespace, id).await? else { return Ok(Redelivery::Unknown) };
        let to = Address { namespace: x.of.0.clone(), name: x.of.1.clone() };
        match self.subscription(&to).await? {
            None => return Ok(Redelivery::Deleted),
            Some(Applied { off: Some(_), .. }) => return Ok(Redelivery::Disabled),
            Some(_) => {}
        }
        let (message, done) = if x.end.is_none() {
            (Message::Now { to: id, attempts: x.attempts.len() }, Redelivery::Now)
        } else {
            let again = format!("{id} {ask}");
            let new = webhooks::id((&to.namespace, &to.name), x.text("source"), x.text("id"), Some(&again));
            (Message::Deliver { to, event: x.event.clone(), again: Some(again), unmatched: false }, Redelivery::Again(new))
        };
        table::send_all(&self.ports, &[message.letter()]).await?;
        Ok(done)
    }
}
