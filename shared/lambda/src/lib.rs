//! What every function needs: its configuration from the environment, telemetry, deliveries out of a queue's messages, and batches
//! behind a panic fence. With the feature `aws`, the ports as configured and what a message used of them.

#[cfg(feature = "aws")]
pub mod aws;
pub mod batch;
pub mod config;
pub mod delivery;
#[cfg(feature = "aws")]
pub mod messages;
pub mod metrics;
pub mod telemetry;

use config::{Config, ConfigError, TableConfig};
use tracing::Level;

/// The first call in every function except the one on the dead-letter queue: reads the configuration and sets up telemetry.
///
/// # Errors
/// Every variable that is missing or not understood; logged as well, because what a function returns at start is not visible.
pub fn start() -> Result<Config, ConfigError> {
    let config = started(Config::from_env(), |config| config.log)?;
    // The bus has the stack's name.
    metrics::init(&config.bus, &std::env::var("AWS_LAMBDA_FUNCTION_NAME").unwrap_or_default(), config.metrics);
    Ok(config)
}

/// The same for the function on the dead-letter queue.
///
/// # Errors
/// When there is no table; logged as well.
pub fn start_with_table() -> Result<TableConfig, ConfigError> {
    started(TableConfig::from_env(), |config| config.log)
}

fn started<T>(config: Result<T, ConfigError>, log: impl Fn(&T) -> Level) -> Result<T, ConfigError> {
    telemetry::init(config.as_ref().map_or(Level::INFO, log));
    if let Err(error) = &config {
        tracing::error!(%error, "the function cannot start");
    }
    config
}
