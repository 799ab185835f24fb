//! A worker's engine: the executions, and the schedules, which are swept besides.

use super::planted::Planted;
use crate::sim::{Hands, Outcome, pages, swept};
use keelway_domain::schedules::Schedule;
use keelway_domain::sequences::Execution;
use keelway_engine::sequences::Sequences;
use keelway_world::exec::Task;
use keelway_world::queue::Received;
use keelway_world::story::play;
use keelway_world::worker::Worker;
use std::ops::Deref;
use std::sync::Arc;

/// A worker's engine.
pub struct Hand {
    pub(super) engine: Sequences<Worker>,
    /// Its ports.
    pub(super) ports: Planted,
    /// Whether there may be schedules: sweeping none takes time, too.
    pub(super) schedules: bool,
}

impl Deref for Hand {
    type Target = Sequences<Worker>;

    fn deref(&self) -> &Self::Target {
        &self.engine
    }
}

impl Hands for Hand {
    fn handle(self: Arc<Self>, received: Received) -> Task<Outcome> {
        Box::pin(async move { play(&self.engine, &received).await.map(Some) })
    }
    fn sweep(self: Arc<Self>) -> Task<Outcome> {
        Box::pin(async move {
            if self.schedules {
                pages::<Schedule>(&self.engine).await?;
            }
            swept::<Execution>(&self.engine).await
        })
    }
}
