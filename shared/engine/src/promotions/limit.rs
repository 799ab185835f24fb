//! How often a client may send requests that carry no token.

use super::{Promotions, keys};
use crate::item::Item;
use crate::ports::{Condition, PortError, Ports, Write, Written};
use keelway_domain::time::{Span, Timestamp};

/// A client may send this many requests in each window.
pub const REQUESTS: i64 = 20;
/// The length of a window.
pub const WINDOW: Span = Span::seconds(30);

impl<P: Ports> Promotions<P> {
    /// Counts a request of a client. `Some`: the client has sent too many, and may try again after this time.
    ///
    /// One read and one write; a client over its limit costs the read only.
    ///
    /// # Errors
    /// Of the store.
    pub async fn too_many_requests(&self, client: &str) -> Result<Option<Span>, PortError> {
        let now = self.ports.now();
        let window = now.0.div_euclid(WINDOW.0);
        let end = Timestamp((window + 1) * WINDOW.0);
        let key = keys::requests(client, window);
        // A lost race means that another request was counted, so the limit also bounds the tries.
        for _ in 0..=REQUESTS {
            // The version is the count: requests that arrive at the same time do not exceed the limit together.
            let count = self.ports.get(&key).await?.as_ref().map_or(0, Item::version);
            if count >= REQUESTS {
                break;
            }
            let condition = if count == 0 { Condition::Absent } else { Condition::Version(count) };
            let item = Item::new(key.clone()).with("v", count + 1).with("ttl", end.0 / 1000 + 1);
            if self.ports.write(&Write::Put(item, condition)).await? == Written::Done {
                return Ok(None);
            }
        }
        Ok(Some(end - now))
    }
}
