//! What functions share: configuration from the environment, telemetry, the parsing of messages, and batches with a panic fence.
//! With the feature `aws`: the configured ports, and the cost of a message.

#[cfg(feature = "aws")]
pub mod aws;
pub mod batch;
pub mod config;
#[cfg(feature = "aws")]
pub mod drain;
pub mod incoming;
#[cfg(feature = "aws")]
pub mod messages;
pub mod metrics;
pub mod telemetry;

use config::{Config, ConfigError, TableConfig};
use keelway_engine::trouble::DEAD_LETTERS;
use tracing::Level;

/// Reads the configuration and sets up telemetry. Every function calls this first, except the one on the dead-letter queue.
///
/// # Errors
/// Every missing or invalid variable. They are logged as well, because the result of a failed start is not visible.
pub fn start() -> Result<Config, ConfigError> {
    let config = started(Config::from_env(), |config| config.log)?;
    // The bus has the stack's name.
    metrics::init(&config.bus, &std::env::var("AWS_LAMBDA_FUNCTION_NAME").unwrap_or_default(), config.metrics);
    Ok(config)
}

/// The same for the function on the dead-letter queue.
///
/// # Errors
/// The name of the table is missing. This is logged as well.
pub fn start_with_table() -> Result<TableConfig, ConfigError> {
    let config = started(TableConfig::from_env(), |config| config.log)?;
    // The template names each function after the stack.
    let function = std::env::var("AWS_LAMBDA_FUNCTION_NAME").unwrap_or_default();
    let stack = function.strip_suffix(DEAD_LETTERS).and_then(|stack| stack.strip_suffix('-')).unwrap_or(&function);
    metrics::init(stack, &function, false);
    Ok(config)
}

fn started<T>(config: Result<T, ConfigError>, log: impl Fn(&T) -> Level) -> Result<T, ConfigError> {
    telemetry::init(config.as_ref().map_or(Level::INFO, log));
    if let Err(error) = &config {
        tracing::error!(%error, "the function cannot start");
    }
    config
}
