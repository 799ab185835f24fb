//! The engines' ports on AWS: the table on DynamoDB, the bus on EventBridge, the queue and its timers on SQS and EventBridge
//! Scheduler. One port method is one request; this crate makes no decisions.
//!
//! Entry point: [`Aws::connect`], once per process. What a message cost is counted by a [`meter::Meter`] around its handling.

mod aliases;
mod bus;
mod codec;
mod ecr;
mod error;
mod expression;
mod http;
pub mod meter;
mod queue;
mod runners;
mod secrets;
mod signed;
mod store;

use aws_config::environment::{EnvironmentVariableCredentialsProvider, EnvironmentVariableRegionProvider};
use aws_config::retry::RetryConfig;
use aws_config::stalled_stream_protection::StalledStreamProtectionConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, SdkConfig};
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::item::Key;
use keelway_engine::ports::{Clock, Store};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What the ports are called in this stack.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// The table.
    pub table: String,
    /// The event bus.
    pub bus: String,
    /// The engines' queues, by the engines' names.
    pub queues: BTreeMap<String, QueueName>,
    /// The group that holds this stack's schedules.
    pub scheduler_group: String,
    /// The role Scheduler takes to put messages into the queue.
    pub scheduler_role_arn: String,
    /// Where Scheduler puts what it could not deliver; `None` = nowhere; the sweep recovers from the loss.
    pub scheduler_dead_letters_arn: Option<String>,
    /// What the names of this stack's secrets begin with, before a `/`.
    pub secrets: String,
}

/// One engine's queue.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueueName {
    /// As SQS addresses it.
    pub url: String,
    /// As Scheduler addresses it.
    pub arn: String,
}

/// All ports on AWS. A clone is the same connections.
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
}

impl Aws {
    /// Reads region, credentials and endpoint from the environment, where Lambda puts them, and builds the clients.
    pub async fn connect(names: Names) -> Self {
        // Functions have 10 s for a message of about 8 requests: one lost packet may cost an attempt, never the whole function.
        let timeouts = TimeoutConfig::builder()
            .connect_timeout(Duration::from_secs(1))
            .operation_attempt_timeout(Duration::from_secs(2))
            .operation_timeout(Duration::from_secs(5))
            .build();
        // The same request again is safe: a conditional write that had succeeded comes back as a conflict, and the engine knows its
        // own work by what the item says.
        let retries = RetryConfig::standard()
            .with_max_attempts(3)
            .with_initial_backoff(Duration::from_millis(50))
            .with_max_backoff(Duration::from_millis(500));
        let config = aws_config::defaults(BehaviorVersion::v2026_01_12())
            .timeout_config(timeouts)
            .retry_config(retries)
            // The default chain would make a client for every other place where credentials might be, at each start.
            .credentials_provider(EnvironmentVariableCredentialsProvider::new())
            .region(EnvironmentVariableRegionProvider::new())
            .http_client(http::client())
            // Answers are small and an attempt has 2 s in all: there is no stream that could stall for longer.
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
            .load()
            .await;
        Self::new(&config, names)
    }

    /// With a configuration of the caller's making.
    pub fn new(config: &SdkConfig, names: Names) -> Self {
        let dynamodb = aws_sdk_dynamodb::config::Builder::from(config).retry_classifier(error::Contention).build();
        let inner = Inner {
            names,
            dynamodb: aws_sdk_dynamodb::Client::from_conf(dynamodb),
            eventbridge: aws_sdk_eventbridge::Client::new(config),
            scheduler: aws_sdk_scheduler::Client::new(config),
            sqs: aws_sdk_sqs::Client::new(config),
            signed: signed::Signed::new(config),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Opens the connection to the table before the first message needs it, while the function starts at full speed.
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

/// Waits 50 to 150 ms, spread by the clock, after an answer with unprocessed items: the caller repeats at once, and a busy service
/// stays busy for longer than that.
async fn breathe(incomplete: bool) {
    if incomplete {
        let spread =
            u64::from(std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().subsec_micros() % 100);
        tokio::time::sleep(std::time::Duration::from_millis(50 + spread)).await;
    }
}

#[cfg(test)]
mod tests;
