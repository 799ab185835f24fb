//! Those who run tasks and builds, so that these carry a deployment out. Each method is one request; errors as in
//! [`crate::aliases`].

use crate::ports::PortError;
use keelway_domain::deployments::definition::Starter;
use keelway_domain::deployments::runner::{Look, Which};
use std::future::Future;

/// Runs tasks and builds.
pub trait Runners: Send + Sync {
    /// Starts what a definition names. Whoever starts it for the same attempt again gets the same one: its ARN.
    fn start(&self, starter: &Starter, which: &Which<'_>) -> impl Future<Output = Result<String, PortError>> + Send;
    /// Asks for the state of what was started.
    fn look(&self, starter: &Starter, arn: &str) -> impl Future<Output = Result<Look, PortError>> + Send;
    /// Has it stop.
    fn stop(&self, starter: &Starter, arn: &str) -> impl Future<Output = Result<(), PortError>> + Send;
}
