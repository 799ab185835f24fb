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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicI64, Ordering};
    use std::task::{Context, Poll, Waker};

    /// At each reading, another token.
    #[derive(Default)]
    struct Rotated {
        reads: AtomicI64,
        now: AtomicI64,
    }

    impl Clock for Rotated {
        fn now(&self) -> Timestamp {
            Timestamp(self.now.load(Ordering::Relaxed))
        }
        async fn pause(&self, _: Span) {}
    }

    impl Secrets for Rotated {
        async fn secret(&self, name: &str) -> Result<Option<SecretText>, PortError> {
            let n = self.reads.fetch_add(1, Ordering::Relaxed);
            Ok((name == "shop/git").then(|| SecretText::new(format!("token {n}"))))
        }
    }

    fn read(secrets: &Remembered<Rotated>, name: &str, at: i64) -> Option<String> {
        secrets.secrets.now.store(at, Ordering::Relaxed);
        let mut reading = Box::pin(secrets.secret(name));
        match reading.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(found) => found.unwrap().map(|text| text.expose().to_owned()),
            Poll::Pending => panic!("nothing here takes time"),
        }
    }

    #[test]
    fn a_secret_is_read_once_in_five_minutes() {
        let secrets = Remembered::new(Rotated::default());
        let read = |at| read(&secrets, "shop/git", at).unwrap();
        assert_eq!([read(0), read(FRESH.0 - 1), read(FRESH.0), read(FRESH.0 + 1)], ["token 0", "token 0", "token 1", "token 1"]);
    }

    #[test]
    fn what_is_missing_is_looked_for_again() {
        let secrets = Remembered::new(Rotated::default());
        assert_eq!((read(&secrets, "shop/other", 0), read(&secrets, "shop/other", 1)), (None, None));
        assert_eq!(secrets.secrets.reads.load(Ordering::Relaxed), 2);
    }
}
