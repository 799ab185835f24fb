//! The world as a test sees it.

use crate::core::Core;
use crate::plain::{Plain, lock};
use crate::queue::Parcel;
use crate::tested::Tested;
use crate::worker::Worker;
use keelway_domain::event::CloudEvent;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::ports::BusEntry;
use std::sync::{Arc, Mutex, MutexGuard};

/// Twins of everything, and the clock.
#[derive(Clone)]
pub struct World {
    core: Arc<Mutex<Core>>,
}

impl World {
    /// An empty world at that time.
    pub fn new(now: Timestamp) -> Self {
        Self { core: Arc::new(Mutex::new(Core { now, ..Core::default() })) }
    }
    /// A copy that goes its own way. Nothing goes wrong in it, and no trace is kept.
    pub fn fork(&self) -> Self {
        Self { core: Arc::new(Mutex::new(self.core().fork())) }
    }
    /// Everything in it. Do not hold it while a worker runs.
    pub fn core(&self) -> MutexGuard<'_, Core> {
        lock(&self.core)
    }
    /// The ports of a worker whose clock is right.
    pub fn worker(&self, id: usize) -> Worker {
        self.skewed(id, Span(0))
    }
    /// The ports of a worker whose clock is ahead by `skew` (behind, if negative).
    pub fn skewed(&self, id: usize, skew: Span) -> Worker {
        Plain::new(self.core.clone(), id, skew).into()
    }
    /// The time.
    pub fn now(&self) -> Timestamp {
        self.core().now
    }
    /// Lets time go by; what was due in between is in the queue afterwards.
    pub fn pass(&self, span: Span) {
        let mut core = self.core();
        core.now = core.now + span;
        let now = core.now;
        core.queue.fire(now);
    }
    /// Somebody else's event on the bus: into an engine's queue, if the rule that feeds it takes the event.
    pub fn emit<E: Tested>(&self, event: CloudEvent) -> Option<u64> {
        E::takes(&event.source, &event.ty).then(|| self.enqueue(E::NAME, Parcel::Event(event)))
    }
    /// A message straight into an engine's queue.
    pub fn enqueue(&self, engine: &str, parcel: Parcel) -> u64 {
        let mut core = self.core();
        let now = core.now;
        core.queue.push(now, engine, parcel, Span(0))
    }
    /// What has been published, first publications in order.
    pub fn outgoing(&self) -> Vec<Arc<BusEntry>> {
        self.core().bus.firsts().map(|publication| publication.entry.clone()).collect()
    }
}
