//! The engines' ports on AWS: the table on DynamoDB, the bus on EventBridge, the queue and its timers on SQS and EventBridge
//! Scheduler. One port method is one request; this crate makes no decisions.
//!
//! Entry point: [`Aws::connect`], once per process. A [`meter::Meter`] around the handling of a message counts its cost.

mod aliases;
mod bus;
mod codec;
mod ecr;
mod environment;
mod error;
mod expression;
mod http;
pub mod knock;
pub mod meter;
mod metrics;
mod queue;
mod runners;
mod secrets;
mod signed;
mod store;
mod watch;

use aws_smithy_runtime_api::client::stalled_stream_protection::StalledStreamProtectionConfig;
use aws_smithy_types::retry::RetryConfig;
use aws_smithy_types::timeout::TimeoutConfig;
use aws_types::SdkConfig;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::item::Key;
use keelway_engine::ports::{Clock, Store};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The names of this stack's resources.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// The name of the table.
    pub table: String,
    /// The name of the event bus.
    pub bus: String,
    /// The queues by the names of their engines.
    pub queues: BTreeMap<String, QueueName>,
    /// The group of this stack's schedules.
    pub scheduler_group: String,
    /// The role with which Scheduler sends messages to the queues.
    pub scheduler_role_arn: String,
    /// The queue for what Scheduler could not deliver. `None`: it is dropped, and the sweep makes up for the loss.
    pub scheduler_dead_letters_arn: Option<String>,
    /// The prefix of the names of this stack's secrets, before a `/`.
    pub secrets: String,
    /// Whether only the queue of the sequences engine is polled. Who sends to another one knocks at its function.
    pub knocks: bool,
}

/// The queue of one engine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueueName {
    /// The address for SQS.
    pub url: String,
    /// The address for Scheduler.
    pub arn: String,
}

/// A message that was received.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Received {
    /// The id in the queue.
    pub id: String,
    /// The receipt handle of this delivery.
    pub receipt: String,
    /// The content.
    pub body: String,
    /// What SQS tells of it, such as `SentTimestamp`.
    pub attributes: BTreeMap<String, String>,
    /// The texts that its sender gave it beside the content.
    pub texts: BTreeMap<String, String>,
    /// The name of the queue.
    pub queue: String,
}

/// All ports on AWS. Clones share their connections.
#[derive(Debug, Clone)]
pub struct Aws {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    names: Names,
    dynamodb: aws_sdk_dynamodb::Client,
    eventbridge: aws_sdk_eventbridge::Client,
    scheduler: aws_sdk_scheduler::Client,
    sqs: aws_sdk_sqs::Client,
    signed: signed::Signed,
    roles: metrics::Roles,
}

impl Aws {
    /// Reads region, credentials and endpoint from the environment, where Lambda puts them, and builds the clients.
    pub fn connect(names: Names) -> Self {
        // A message of about 8 requests has 10 s: one lost packet may cost an attempt, but must not cost the whole time of the
        // function.
        let timeouts = TimeoutConfig::builder()
            .connect_timeout(Duration::from_secs(1))
            .operation_attempt_timeout(Duration::from_secs(2))
            .operation_timeout(Duration::from_secs(5))
            .build();
        // A repeated request is safe: a conditional write that had succeeded returns a conflict, and the engine recognises its own
        // write in the item.
        let retries = RetryConfig::standard()
            .with_max_attempts(3)
            .with_initial_backoff(Duration::from_millis(50))
            .with_max_backoff(Duration::from_millis(500));
        let config = environment::config(environment::variables)
            .timeout_config(timeouts)
            .retry_config(retries)
            .http_client(http::client())
            // Answers are small, and an attempt has 2 s in total: no stream can stall for longer.
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
            .build();
        Self::new(&config, names)
    }

    /// Builds the clients with the caller's configuration.
    pub fn new(config: &SdkConfig, names: Names) -> Self {
        let dynamodb = aws_sdk_dynamodb::config::Builder::from(config).retry_classifier(error::Contention).build();
        let inner = Inner {
            names,
            dynamodb: aws_sdk_dynamodb::Client::from_conf(dynamodb),
            eventbridge: aws_sdk_eventbridge::Client::new(config),
            scheduler: aws_sdk_scheduler::Client::new(config),
            sqs: aws_sdk_sqs::Client::new(config),
            signed: signed::Signed::new(config),
            roles: metrics::Roles::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Opens the connection to the table before the first message, while the function starts at full speed.
    pub async fn warm(&self) {
        if let Err(error) = self.get(&Key::new("!", "!")).await {
            tracing::warn!(%error, "the table could not be reached at start");
        }
    }
}

impl Clock for Aws {
    fn now(&self) -> Timestamp {
        let millis = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
        Timestamp(i64::try_from(millis).unwrap_or(i64::MAX))
    }
    async fn pause(&self, length: Span) {
        tokio::time::sleep(Duration::from_millis(length.0.unsigned_abs())).await;
    }
}

/// Waits 50 to 150 ms after an answer with unprocessed items, spread by the clock: the caller repeats the request at once, and a
/// busy service stays busy for longer than that.
async fn breathe(incomplete: bool) {
    if incomplete {
        let spread =
            u64::from(std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().subsec_micros() % 100);
        tokio::time::sleep(std::time::Duration::from_millis(50 + spread)).await;
    }
}

#[cfg(test)]
mod tests;
