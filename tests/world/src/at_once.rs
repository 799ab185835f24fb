//! Ports that are done at once, for tests under a runtime: nobody would wake the world's own workers there.

use crate::exec::block_on;
use crate::plain::GiveWay;
use crate::worker::Worker;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::checks::Rules;
use keelway_engine::item::{Item, Key};
use keelway_engine::ports::{
    Bus, BusEntry, Clock, Consistency, Leftover, Page, PortError, Query, Queue, Store, Transacted, Write, Written,
};
use keelway_engine::secrets::{Known, SecretText, Secrets};

/// A worker's ports, and the secrets that are known.
#[derive(Debug, Clone)]
pub struct AtOnce {
    worker: Worker,
    secrets: Known,
}

impl AtOnce {
    /// The ports of a worker who knows no secrets.
    pub fn new(worker: Worker) -> Self {
        Self { worker, secrets: Known::default() }
    }
    /// The same with these secrets.
    pub fn with(worker: Worker, secrets: Known) -> Self {
        Self { worker, secrets }
    }
}

impl Store for AtOnce {
    async fn get(&self, key: &Key) -> Result<Option<Item>, PortError> {
        block_on(self.worker.get(key))
    }
    async fn get_batch(&self, keys: &[Key], consistency: Consistency) -> Result<(Vec<Item>, Vec<Key>), PortError> {
        block_on(self.worker.get_batch(keys, consistency))
    }
    async fn query(&self, query: &Query) -> Result<Page, PortError> {
        block_on(self.worker.query(query))
    }
    async fn put_batch(&self, puts: &[Item], deletes: &[Key]) -> Result<Leftover, PortError> {
        block_on(self.worker.put_batch(puts, deletes))
    }
    async fn write(&self, write: &Write) -> Result<Written, PortError> {
        block_on(self.worker.write(write))
    }
    async fn transact(&self, writes: &[Write]) -> Result<Transacted, PortError> {
        block_on(self.worker.transact(writes))
    }
}

impl Bus for AtOnce {
    async fn publish(&self, entries: &[BusEntry]) -> Result<Vec<Option<String>>, PortError> {
        block_on(self.worker.publish(entries))
    }
}

impl Rules for AtOnce {
    async fn enabled(&self, name: &str, _on_bus: bool) -> Result<Option<bool>, PortError> {
        Ok(Some(!self.worker.core().bus.disabled.iter().any(|disabled| disabled == name)))
    }
    async fn switch(&self, name: &str, on: bool) -> Result<(), PortError> {
        let disabled = &mut self.worker.core().bus.disabled;
        disabled.retain(|disabled| disabled != name);
        disabled.extend((!on).then(|| name.to_owned()));
        Ok(())
    }
}

impl Queue for AtOnce {
    async fn send(&self, engine: &str, bodies: &[String]) -> Result<Vec<Option<String>>, PortError> {
        block_on(self.worker.send(engine, bodies))
    }
    async fn send_at(&self, engine: &str, name: &str, body: &str, at: Timestamp) -> Result<(), PortError> {
        block_on(self.worker.send_at(engine, name, body, at))
    }
}

impl Clock for AtOnce {
    fn now(&self) -> Timestamp {
        self.worker.now()
    }
    /// The world's clock goes on, and others come through in the meantime.
    async fn pause(&self, length: Span) {
        {
            let mut core = self.worker.core();
            core.now = core.now + length;
        }
        GiveWay::default().await;
    }
}

impl Secrets for AtOnce {
    async fn secret(&self, name: &str) -> Result<Option<SecretText>, PortError> {
        self.secrets.secret(name).await
    }
}
