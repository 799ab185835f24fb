//! Lost knocks: the sweep knocks at each function whose queue has messages and is not polled.

use keelway_aws::Aws;
use keelway_engine::ports::PortError;
use std::future::Future;

/// The functions whose queues nobody polls.
pub trait Doors: Send + Sync {
    /// Starts the function of a queue. A queue that is polled needs no start.
    ///
    /// # Errors
    /// The function cannot be started.
    fn knock(&self, queue: &str) -> impl Future<Output = Result<(), PortError>> + Send;
}

impl Doors for Aws {
    async fn knock(&self, queue: &str) -> Result<(), PortError> {
        if self.is_knocked(queue) { self.knock(queue).await } else { Ok(()) }
    }
}
