//! Secrets by name: credentials of hosts and clusters, keys that sign approvals. No item, event, log line or error contains a
//! secret; it is read when it is used.

use crate::ports::PortError;
use std::collections::BTreeMap;
use std::future::Future;

/// The text of a secret. It cannot be printed by accident: `Debug` hides it, and there is no `Display`.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(String);

impl SecretText {
    /// Hides a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
    /// The text itself, for whoever uses it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for SecretText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretText(hidden)")
    }
}

/// Where secrets are kept.
pub trait Secrets: Send + Sync {
    /// The present text of a secret; `None`: there is no such secret.
    ///
    /// `name` is `<namespace>/<name in the manifest>` ([`name`]). The implementation puts the stack's name in front of it, and may
    /// answer from a cache that is minutes old.
    ///
    /// # Errors
    /// [`PortError::Retry`] when the store cannot be asked now, [`PortError::Refused`] when it may not be asked. Neither contains
    /// the text.
    fn secret(&self, name: &str) -> impl Future<Output = Result<Option<SecretText>, PortError>> + Send;
}

/// The namespace of the installation's own secrets. No project can have this name, so no manifest of a project can name these
/// secrets.
pub const INSTALLATION: &str = "-";

/// The name of the secret that a manifest of this namespace calls `short`.
pub fn name(namespace: &str, short: &str) -> String {
    format!("{namespace}/{short}")
}

/// Secrets that are known from the start, by name.
#[derive(Debug, Clone, Default)]
pub struct Known(pub BTreeMap<String, SecretText>);

impl Known {
    /// The same with one more.
    pub fn with(mut self, name: &str, text: &str) -> Self {
        self.0.insert(name.to_owned(), SecretText::new(text));
        self
    }
}

impl Secrets for Known {
    async fn secret(&self, name: &str) -> Result<Option<SecretText>, PortError> {
        Ok(self.0.get(name).cloned())
    }
}
