//! What every function needs: its configuration from the environment, telemetry, deliveries out of a queue's messages, and batches
//! behind a panic fence. With the feature `aws`, the ports as configured and what a message used of them.

#[cfg(feature = "aws")]
pub mod aws;
pub mod batch;
pub mod config;
pub mod delivery;
pub mod telemetry;

use config::{Config, ConfigError};

/// First thing in every function: the configuration, and telemetry as it wants it.
///
/// # Errors
/// Every variable that is missing or not understood; logged as well, because nobody reads what a function returns at start.
pub fn start() -> Result<Config, ConfigError> {
    let config = Config::from_env();
    telemetry::init(config.as_ref().map_or(tracing::Level::INFO, |config| config.log));
    if let Err(error) = &config {
        tracing::error!(%error, "the function cannot start");
    }
    config
}
