//! The services that run tasks and builds: ECS and CodeBuild. Each method is one request; errors as in [`crate::aliases`].

use crate::ports::PortError;
use keelway_domain::deployments::definition::Starter;
use keelway_domain::deployments::runner::{Look, Which};
use std::future::Future;

/// Starts, describes and stops tasks and builds.
pub trait Runners: Send + Sync {
    /// Starts the task or build of a definition, and returns its ARN. A repeated start for the same attempt returns the same one.
    fn start(&self, starter: &Starter, which: &Which<'_>) -> impl Future<Output = Result<String, PortError>> + Send;
    /// Returns the state of a task or build.
    fn look(&self, starter: &Starter, arn: &str) -> impl Future<Output = Result<Look, PortError>> + Send;
    /// Stops a task or build.
    fn stop(&self, starter: &Starter, arn: &str) -> impl Future<Output = Result<(), PortError>> + Send;
}
