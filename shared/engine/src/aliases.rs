//! Functions that deployments go to: their aliases, their versions, and calls. Each method is one request.
//!
//! Errors: [`PortError::Retry`] when the service is busy or cannot be reached, [`PortError::Contended`] when somebody else has
//! changed or is changing the same thing, [`PortError::Refused`] with what the service says when the request can never succeed as
//! it is.

use crate::ports::PortError;
use keelway_domain::deployments::plan::{Code, Function};
use std::future::Future;

/// Where an alias sends requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The version that gets them.
    pub version: String,
    /// Another version, and the part of the requests that it gets instead, 1 to 99 percent.
    pub canary: Option<(String, u8)>,
}

impl Route {
    /// Everything goes to one version.
    pub fn to(version: &str) -> Self {
        Self { version: version.to_owned(), canary: None }
    }
}

/// An alias as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alias {
    /// Where it sends requests.
    pub route: Route,
    /// Changes with the alias. An update that names another one than the present one is refused ([`PortError::Contended`]).
    pub revision: String,
}

/// Whether a version can be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// It is being made.
    Pending,
    /// It can be called.
    Ready,
    /// It cannot be made, and why.
    Failed(String),
}

/// What became of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Called {
    /// The HTTP status of the answer.
    pub status: u16,
    /// What kind of error the function ended with, if it did: `Handled` or `Unhandled`.
    pub error: Option<String>,
    /// What it answered.
    pub body: String,
}

/// Functions with their versions, and the aliases that send requests to these.
pub trait Aliases: Send + Sync {
    /// An alias as it is; `None`: there is no such alias, or no such function.
    fn find(&self, of: &Function, alias: &str) -> impl Future<Output = Result<Option<Alias>, PortError>> + Send;
    /// Makes an alias of a version. [`PortError::Contended`]: it exists.
    fn create(&self, of: &Function, alias: &str, version: &str) -> impl Future<Output = Result<(), PortError>> + Send;
    /// Has an alias send requests elsewhere, if it still has this revision.
    fn shift(
        &self,
        of: &Function,
        alias: &str,
        route: &Route,
        revision: &str,
    ) -> impl Future<Output = Result<(), PortError>> + Send;
    /// Makes a version of code: its number. The same code again is the same version. [`PortError::Refused`] also if the package
    /// holds something else than its digest says: the version is there then, but nobody is told its number.
    fn publish(&self, of: &Function, code: &Code) -> impl Future<Output = Result<String, PortError>> + Send;
    /// Whether a version can be called.
    fn readiness(&self, of: &Function, version: &str) -> impl Future<Output = Result<Readiness, PortError>> + Send;
    /// Calls a function, and waits for its answer. It may have a version or an alias in its name.
    fn call(&self, of: &Function, payload: &str) -> impl Future<Output = Result<Called, PortError>> + Send;
}
