//! The port for image registries.

use crate::ports::PortError;
use keelway_domain::deployments::registry::Repository;
use keelway_domain::time::Timestamp;
use std::future::Future;

/// A tag of a repository, and the image it points to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tagged {
    /// The tag.
    pub tag: String,
    /// The image's digest, such as `sha256:…`.
    pub digest: String,
    /// When the image was pushed. The tag may have been put on it later.
    pub at: Timestamp,
}

/// A registry.
pub trait Registry: Send + Sync {
    /// The tags of a repository; `None`: there is no such repository.
    ///
    /// # Errors
    /// [`PortError::Retry`] if the registry cannot be reached now, [`PortError::Refused`] if access is denied.
    fn tags(&self, of: &Repository) -> impl Future<Output = Result<Option<Vec<Tagged>>, PortError>> + Send;
}
