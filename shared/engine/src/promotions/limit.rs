//! Rate limits for requests without a token.

use super::{Promotions, keys};
use crate::item::{Item, Key};
use crate::ports::{Condition, PortError, Ports, Write, Written};
use keelway_domain::time::{Span, Timestamp};

/// The most signed requests of a client in a window. For pushes, only refused requests count.
pub const REQUESTS: i64 = 20;
/// The most webhooks of one git host from one address in a window. A busy host may send ten a second for a while.
pub const WEBHOOKS: i64 = 300;
/// The most tries to count a request. A lost race means that another request was counted, and the API handles fewer concurrent
/// requests than this.
const TRIES: i64 = 100;
/// The length of a window.
pub const WINDOW: Span = Span::seconds(30);

impl<P: Ports> Promotions<P> {
    /// Counts a request of a client. `Some`: the client is over its limit, and may try again after this time.
    ///
    /// One read and one write; a client over its limit costs the read only.
    ///
    /// # Errors
    /// The store fails.
    pub async fn too_many_requests(&self, client: &str) -> Result<Option<Span>, PortError> {
        self.too_many(client, REQUESTS).await
    }

    /// Counts a webhook of a git host in the same way.
    ///
    /// # Errors
    /// The store fails.
    pub async fn too_many_webhooks(&self, host: &str, client: &str) -> Result<Option<Span>, PortError> {
        self.too_many(&format!("webhook {host} {client}"), WEBHOOKS).await
    }

    /// Whether too many signed requests about one object from one address were refused. `Some`: another one may come after this
    /// time.
    ///
    /// One read. Requests with a valid signature do not count, so they cannot block others.
    ///
    /// # Errors
    /// The store fails.
    pub async fn too_many_refused(&self, about: &str, client: &str) -> Result<Option<Span>, PortError> {
        let (key, left) = self.window(&refused(about, client));
        let count = self.ports.get(&key).await?.as_ref().map_or(0, Item::version);
        Ok((count >= REQUESTS).then_some(left))
    }

    /// Counts a refused request.
    ///
    /// # Errors
    /// The store fails.
    pub async fn count_refused(&self, about: &str, client: &str) -> Result<(), PortError> {
        self.too_many(&refused(about, client), REQUESTS).await.map(drop)
    }

    /// Where the requests of a client are counted now, and for how long.
    fn window(&self, client: &str) -> (Key, Span) {
        let now = self.ports.now();
        let window = now.0.div_euclid(WINDOW.0);
        (keys::requests(client, window), Timestamp((window + 1) * WINDOW.0) - now)
    }

    async fn too_many(&self, client: &str, most: i64) -> Result<Option<Span>, PortError> {
        let (key, left) = self.window(client);
        let end = self.ports.now() + left;
        for _ in 0..=most.min(TRIES) {
            // The version is the count: requests that arrive at the same time do not exceed the limit together.
            let count = self.ports.get(&key).await?.as_ref().map_or(0, Item::version);
            if count >= most {
                break;
            }
            let condition = if count == 0 { Condition::Absent } else { Condition::Version(count) };
            let item = Item::new(key.clone()).with("v", count + 1).with("ttl", end.0 / 1000 + 1);
            if self.ports.write(&Write::Put(item, condition)).await? == Written::Done {
                return Ok(None);
            }
        }
        Ok(Some(left))
    }
}

fn refused(about: &str, client: &str) -> String {
    format!("refused {about} {client}")
}
