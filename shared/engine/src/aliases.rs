//! The operations of AWS Lambda on functions, versions and aliases. Each method is one request.
//!
//! Errors: [`PortError::Retry`] when the service is busy or cannot be reached, [`PortError::Contended`] when somebody else has
//! changed or is changing the same thing, [`PortError::Refused`] with what the service says when the request can never succeed as
//! it is.

use crate::ports::PortError;
use keelway_domain::deployments::plan::{Code, Function};
use std::future::Future;

/// The routing of an alias.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The main version.
    pub version: String,
    /// A second version, and its share of the requests, 1 to 99 percent.
    pub canary: Option<(String, u8)>,
}

impl Route {
    /// All requests go to one version.
    pub fn to(version: &str) -> Self {
        Self { version: version.to_owned(), canary: None }
    }
}

/// The state of an alias.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alias {
    /// The routing.
    pub route: Route,
    /// The revision, which changes with the alias. An update with an outdated revision is refused ([`PortError::Contended`]).
    pub revision: String,
}

/// Whether a version can be invoked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// It is being created.
    Pending,
    /// It can be invoked.
    Ready,
    /// Its creation has failed, for this reason.
    Failed(String),
}

/// The result of an invocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Called {
    /// The HTTP status of the answer.
    pub status: u16,
    /// The kind of error of the function, if any: `Handled` or `Unhandled`.
    pub error: Option<String>,
    /// The answer of the function.
    pub body: String,
}

/// Functions, their versions, and the aliases that route requests to versions.
pub trait Aliases: Send + Sync {
    /// Returns the present state of an alias; `None`: there is no such alias, or no such function.
    fn find(&self, of: &Function, alias: &str) -> impl Future<Output = Result<Option<Alias>, PortError>> + Send;
    /// Creates an alias of a version. [`PortError::Contended`]: it exists already.
    fn create(&self, of: &Function, alias: &str, version: &str) -> impl Future<Output = Result<(), PortError>> + Send;
    /// Changes the routing of an alias, if it still has this revision.
    fn shift(
        &self,
        of: &Function,
        alias: &str,
        route: &Route,
        revision: &str,
    ) -> impl Future<Output = Result<(), PortError>> + Send;
    /// Publishes code as a version, and returns its number. The same code is published only once. [`PortError::Refused`] also if
    /// the content of the package does not match its digest: the version exists then, but its number is not returned.
    fn publish(&self, of: &Function, code: &Code) -> impl Future<Output = Result<String, PortError>> + Send;
    /// Whether a version can be invoked.
    fn readiness(&self, of: &Function, version: &str) -> impl Future<Output = Result<Readiness, PortError>> + Send;
    /// Invokes a function and waits for its answer. The name may contain a version or an alias.
    fn call(&self, of: &Function, payload: &str) -> impl Future<Output = Result<Called, PortError>> + Send;
}
