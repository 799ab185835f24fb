//! The ports of the API: one type, whatever is behind it.
//!
//! What is generic over its ports is compiled by everybody who chooses them: the function, the tests and the bench would each
//! compile every handler. A call through [`AnyPorts`] costs an allocation, and each of them is a request to a service.

use futures_util::future::BoxFuture;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::checks::Rules;
use keelway_engine::item::{Item, Key};
use keelway_engine::ports::{
    Bus, BusEntry, Clock, Consistency, Leftover, Page, PortError, Ports, Query, Queue, Store, Transacted, Write, Written,
};
use keelway_engine::secrets::{SecretText, Secrets};
use std::sync::Arc;

/// What the API needs of the world outside. Clones share it.
#[derive(Clone)]
pub struct AnyPorts(Arc<dyn Boxed>);

impl AnyPorts {
    pub fn new(ports: impl Ports + Secrets + Rules + 'static) -> Self {
        Self(Arc::new(ports))
    }
}

type Asked<'a, T> = BoxFuture<'a, Result<T, PortError>>;

/// Every request of the ports, boxed. A method is called as its port's, with a `boxed_` before it, so that no call is mistaken.
trait Boxed: Send + Sync {
    fn boxed_get<'a>(&'a self, key: &'a Key) -> Asked<'a, Option<Item>>;
    fn boxed_get_batch<'a>(&'a self, keys: &'a [Key], consistency: Consistency) -> Asked<'a, (Vec<Item>, Vec<Key>)>;
    fn boxed_query<'a>(&'a self, query: &'a Query) -> Asked<'a, Page>;
    fn boxed_put_batch<'a>(&'a self, puts: &'a [Item], deletes: &'a [Key]) -> Asked<'a, Leftover>;
    fn boxed_write<'a>(&'a self, write: &'a Write) -> Asked<'a, Written>;
    fn boxed_transact<'a>(&'a self, writes: &'a [Write]) -> Asked<'a, Transacted>;
    fn boxed_publish<'a>(&'a self, entries: &'a [BusEntry]) -> Asked<'a, Vec<Option<String>>>;
    fn boxed_send<'a>(&'a self, engine: &'a str, bodies: &'a [String]) -> Asked<'a, Vec<Option<String>>>;
    fn boxed_send_at<'a>(&'a self, engine: &'a str, name: &'a str, body: &'a str, at: Timestamp) -> Asked<'a, ()>;
    fn boxed_now(&self) -> Timestamp;
    fn boxed_pause(&self, length: Span) -> BoxFuture<'_, ()>;
    fn boxed_secret<'a>(&'a self, name: &'a str) -> Asked<'a, Option<SecretText>>;
    fn boxed_enabled<'a>(&'a self, name: &'a str, on_bus: bool) -> Asked<'a, Option<bool>>;
    fn boxed_switch<'a>(&'a self, name: &'a str, on: bool) -> Asked<'a, ()>;
}

impl<P: Ports + Secrets + Rules> Boxed for P {
    fn boxed_get<'a>(&'a self, key: &'a Key) -> Asked<'a, Option<Item>> {
        Box::pin(self.get(key))
    }
    fn boxed_get_batch<'a>(&'a self, keys: &'a [Key], consistency: Consistency) -> Asked<'a, (Vec<Item>, Vec<Key>)> {
        Box::pin(self.get_batch(keys, consistency))
    }
    fn boxed_query<'a>(&'a self, query: &'a Query) -> Asked<'a, Page> {
        Box::pin(self.query(query))
    }
    fn boxed_put_batch<'a>(&'a self, puts: &'a [Item], deletes: &'a [Key]) -> Asked<'a, Leftover> {
        Box::pin(self.put_batch(puts, deletes))
    }
    fn boxed_write<'a>(&'a self, write: &'a Write) -> Asked<'a, Written> {
        Box::pin(self.write(write))
    }
    fn boxed_transact<'a>(&'a self, writes: &'a [Write]) -> Asked<'a, Transacted> {
        Box::pin(self.transact(writes))
    }
    fn boxed_publish<'a>(&'a self, entries: &'a [BusEntry]) -> Asked<'a, Vec<Option<String>>> {
        Box::pin(self.publish(entries))
    }
    fn boxed_send<'a>(&'a self, engine: &'a str, bodies: &'a [String]) -> Asked<'a, Vec<Option<String>>> {
        Box::pin(self.send(engine, bodies))
    }
    fn boxed_send_at<'a>(&'a self, engine: &'a str, name: &'a str, body: &'a str, at: Timestamp) -> Asked<'a, ()> {
        Box::pin(self.send_at(engine, name, body, at))
    }
    fn boxed_now(&self) -> Timestamp {
        self.now()
    }
    fn boxed_pause(&self, length: Span) -> BoxFuture<'_, ()> {
        Box::pin(self.pause(length))
    }
    fn boxed_secret<'a>(&'a self, name: &'a str) -> Asked<'a, Option<SecretText>> {
        Box::pin(self.secret(name))
    }
    fn boxed_enabled<'a>(&'a self, name: &'a str, on_bus: bool) -> Asked<'a, Option<bool>> {
        Box::pin(self.enabled(name, on_bus))
    }
    fn boxed_switch<'a>(&'a self, name: &'a str, on: bool) -> Asked<'a, ()> {
        Box::pin(self.switch(name, on))
    }
}

impl Store for AnyPorts {
    async fn get(&self, key: &Key) -> Result<Option<Item>, PortError> {
        self.0.boxed_get(key).await
    }
    async fn get_batch(&self, keys: &[Key], consistency: Consistency) -> Result<(Vec<Item>, Vec<Key>), PortError> {
        self.0.boxed_get_batch(keys, consistency).await
    }
    async fn query(&self, query: &Query) -> Result<Page, PortError> {
        self.0.boxed_query(query).await
    }
    async fn put_batch(&self, puts: &[Item], deletes: &[Key]) -> Result<Leftover, PortError> {
        self.0.boxed_put_batch(puts, deletes).await
    }
    async fn write(&self, write: &Write) -> Result<Written, PortError> {
        self.0.boxed_write(write).await
    }
    async fn transact(&self, writes: &[Write]) -> Result<Transacted, PortError> {
        self.0.boxed_transact(writes).await
    }
}

impl Bus for AnyPorts {
    async fn publish(&self, entries: &[BusEntry]) -> Result<Vec<Option<String>>, PortError> {
        self.0.boxed_publish(entries).await
    }
}

impl Queue for AnyPorts {
    async fn send(&self, engine: &str, bodies: &[String]) -> Result<Vec<Option<String>>, PortError> {
        self.0.boxed_send(engine, bodies).await
    }
    async fn send_at(&self, engine: &str, name: &str, body: &str, at: Timestamp) -> Result<(), PortError> {
        self.0.boxed_send_at(engine, name, body, at).await
    }
}

impl Clock for AnyPorts {
    fn now(&self) -> Timestamp {
        self.0.boxed_now()
    }
    async fn pause(&self, length: Span) {
        self.0.boxed_pause(length).await;
    }
}

impl Secrets for AnyPorts {
    async fn secret(&self, name: &str) -> Result<Option<SecretText>, PortError> {
        self.0.boxed_secret(name).await
    }
}

impl Rules for AnyPorts {
    async fn enabled(&self, name: &str, on_bus: bool) -> Result<Option<bool>, PortError> {
        self.0.boxed_enabled(name, on_bus).await
    }
    async fn switch(&self, name: &str, on: bool) -> Result<(), PortError> {
        self.0.boxed_switch(name, on).await
    }
}
