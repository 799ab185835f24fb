//! AWS Lambda, as far as deployments need it: aliases, versions, and calls. Each method is one request.
//!
//! Errors: [`PortError::Retry`] when Lambda is busy or cannot be reached, [`PortError::Contended`] when somebody else has changed
//! or is changing the same thing, [`PortError::Refused`] with what Lambda says when the request can never succeed as it is.

use crate::ports::PortError;
use std::future::Future;

/// A function, as a request names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Function {
    /// Its name or its ARN, without a version.
    pub name: String,
    /// Its region; `None`: the installation's.
    pub region: Option<String>,
}

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

/// What becomes a version of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Code {
    /// A container image by its digest, in the function's region.
    Image(String),
    /// A package of code in S3, in the function's region.
    Package(Package),
}

/// An object of S3 that is a package of code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// Its bucket.
    pub bucket: String,
    /// Its key.
    pub key: String,
    /// Its version, in a bucket that keeps versions; `None`: the newest.
    pub version: Option<String>,
    /// The SHA-256 of what it holds, in lower-case hexadecimal.
    pub sha256: String,
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

/// Lambda's API.
pub trait Functions: Send + Sync {
    /// `GetAlias`; `None`: there is no such alias, or no such function.
    fn alias(&self, of: &Function, alias: &str) -> impl Future<Output = Result<Option<Alias>, PortError>> + Send;
    /// `CreateAlias`, to a version. [`PortError::Contended`]: it exists.
    fn create_alias(&self, of: &Function, alias: &str, version: &str) -> impl Future<Output = Result<(), PortError>> + Send;
    /// `UpdateAlias`, if the alias still has this revision.
    fn update_alias(
        &self,
        of: &Function,
        alias: &str,
        route: &Route,
        revision: &str,
    ) -> impl Future<Output = Result<(), PortError>> + Send;
    /// `UpdateFunctionCode`, and `Publish`: the version. The same code again is the same version. [`PortError::Refused`] also if
    /// the package holds something else than its digest says: the version is there then, but nobody is told its number.
    fn update_code(&self, of: &Function, code: &Code) -> impl Future<Output = Result<String, PortError>> + Send;
    /// `GetFunctionConfiguration` of a version: whether it can be called.
    fn readiness(&self, of: &Function, version: &str) -> impl Future<Output = Result<Readiness, PortError>> + Send;
    /// `Invoke`, waiting for the answer. The function may have a version or an alias in its name.
    fn call(&self, of: &Function, payload: &str) -> impl Future<Output = Result<Called, PortError>> + Send;
}
