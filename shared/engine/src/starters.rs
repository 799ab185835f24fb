//! Tasks and builds that Keelway starts, so that they carry a deployment out. Each method is one request; errors as in
//! [`crate::functions`].

use crate::ports::PortError;
use serde_json::Value;
use std::future::Future;

/// Who runs them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runner {
    /// ECS: `RunTask`, `DescribeTasks`, `StopTask`.
    Ecs,
    /// CodeBuild: `StartBuild`, `BatchGetBuilds`, `StopBuild`.
    CodeBuild,
}

/// The APIs of ECS and CodeBuild.
pub trait Starters: Send + Sync {
    /// Starts a task or a build; the same token in it is the same one. Returns its ARN.
    fn start(&self, runner: Runner, request: &Value) -> impl Future<Output = Result<String, PortError>> + Send;
    /// Asks for its state; [`crate::deployments::started::Look`] reads the answer.
    fn look(&self, runner: Runner, request: &Value) -> impl Future<Output = Result<Value, PortError>> + Send;
    /// Has it stop.
    fn stop(&self, runner: Runner, request: &Value) -> impl Future<Output = Result<(), PortError>> + Send;
}
