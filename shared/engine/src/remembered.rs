//! A cache of secrets: a busy function reads each of them once in some minutes.

use crate::ports::{Clock, PortError};
use crate::secrets::{SecretText, Secrets};
use keelway_domain::time::{Span, Timestamp};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How long a cached secret is used. A rotated secret is in use after this time at the latest.
pub const FRESH: Span = Span::minutes(5);

type Read = HashMap<String, (Timestamp, SecretText)>;

/// Caches secrets for [`FRESH`]. Missing secrets are not cached, so a new secret is in use at once.
#[derive(Debug, Clone)]
pub struct Remembered<S> {
    secrets: S,
    read: Arc<Mutex<Read>>,
}

impl<S> Remembered<S> {
    /// In front of these secrets.
    pub fn new(secrets: S) -> Self {
        Self { secrets, read: Arc::default() }
    }
    fn read(&self) -> MutexGuard<'_, Read> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Secrets + Clock> Secrets for Remembered<S> {
    async fn secret(&self, name: &str) -> Result<Option<SecretText>, PortError> {
        let now = self.secrets.now();
        let fresh = |(since, _): &&(Timestamp, SecretText)| *since <= now && now - *since < FRESH;
        if let Some((_, text)) = self.read().get(name).filter(fresh) {
            return Ok(Some(text.clone()));
        }
        let found = self.secrets.secret(name).await?;
        match &found {
            Some(text) => drop(self.read().insert(name.to_owned(), (now, text.clone()))),
            None => drop(self.read().remove(name)),
        }
        Ok(found)
    }
}
