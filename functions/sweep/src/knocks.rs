//! Lost knocks: the sweep knocks at each function whose queue has messages that nobody takes.

use keelway_aws::Aws;
use keelway_engine::ports::PortError;
use keelway_engine::sequences;
use keelway_lambda::config::{DEAD_LETTERS, ENGINES};
use std::future::Future;

/// The functions whose queues nobody polls.
pub trait Doors: Send + Sync {
    /// How many messages of a queue wait, without those that are hidden.
    fn waiting(&self, queue: &str) -> impl Future<Output = Result<u64, PortError>> + Send;
    /// Starts the queue's function.
    fn knock(&self, queue: &str) -> impl Future<Output = Result<(), PortError>> + Send;
}

impl Doors for Aws {
    async fn waiting(&self, queue: &str) -> Result<u64, PortError> {
        self.waiting(queue).await
    }
    async fn knock(&self, queue: &str) -> Result<(), PortError> {
        self.knock(queue).await
    }
}

/// Knocks where messages wait; returns at how many functions. A queue that does not answer does not keep the others waiting.
///
/// # Errors
/// One of them cannot be asked, or its function cannot be started.
pub async fn knock(doors: &impl Doors) -> Result<usize, PortError> {
    let (mut count, mut outcome) = (0, Ok(()));
    for queue in ENGINES.into_iter().filter(|engine| *engine != sequences::NAME).chain([DEAD_LETTERS]) {
        let knocked = async {
            let waits = doors.waiting(queue).await? > 0;
            if waits {
                doors.knock(queue).await?;
            }
            Ok(waits)
        };
        match knocked.await {
            Ok(waits) => count += usize::from(waits),
            Err(error) => outcome = Err(error),
        }
    }
    outcome.map(|()| count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// Queues with messages, one that does not answer, and the functions that were knocked at.
    struct Street(&'static [&'static str], &'static str, Mutex<Vec<String>>);

    impl Doors for Street {
        async fn waiting(&self, queue: &str) -> Result<u64, PortError> {
            let refused = || PortError::Refused { request: "test", reason: "no".into() };
            if queue == self.1 { Err(refused()) } else { Ok(u64::from(self.0.contains(&queue))) }
        }
        async fn knock(&self, queue: &str) -> Result<(), PortError> {
            self.2.lock().unwrap().push(queue.to_owned());
            Ok(())
        }
    }

    async fn knocked(waiting: &'static [&'static str], down: &'static str) -> (bool, Vec<String>) {
        let street = Street(waiting, down, Mutex::default());
        let outcome = knock(&street).await;
        let knocked = street.2.into_inner().unwrap();
        assert!(outcome.is_err() || outcome == Ok(knocked.len()));
        (outcome.is_ok(), knocked)
    }

    #[tokio::test]
    async fn where_messages_wait_and_nowhere_else() {
        assert_eq!(knocked(&[], "").await, (true, vec![]));
        let all = &["sequences", "promotions", "attempts", "observer", "deployments", "deployers", "webhooks", "dead-letters"];
        assert_eq!(knocked(all, "").await, (true, all[1..].iter().map(|&name| name.to_owned()).collect()));
        assert_eq!(knocked(&["deployers"], "promotions").await, (false, vec!["deployers".to_owned()]));
    }
}
