//! How far a later version is rolled out.

use keelway_world::rng::Rng;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Which version a worker runs, and what the earlier one left to the later one.
pub struct Rollout {
    draw: Mutex<Rng>,
    complete: AtomicBool,
    waited: AtomicU64,
}

impl Rollout {
    /// One that has begun.
    pub fn new(rng: &mut Rng) -> Self {
        Self { draw: Mutex::new(Rng::new(rng.bits())), complete: AtomicBool::new(false), waited: AtomicU64::new(0) }
    }

    /// Whether the next message meets the earlier version.
    pub(super) fn is_earlier(&self) -> bool {
        let mut rng = self.draw.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        rng.chance(50.0) && !self.complete.load(Ordering::Relaxed)
    }

    /// Only the later version runs from now on.
    pub fn complete(&self) {
        self.complete.store(true, Ordering::Relaxed);
    }

    /// The earlier version met something of the later one.
    pub(super) fn wait(&self) {
        self.waited.fetch_add(1, Ordering::Relaxed);
    }

    /// How often it did.
    pub fn waited(&self) -> u64 {
        self.waited.load(Ordering::Relaxed)
    }
}
