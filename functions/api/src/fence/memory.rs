//! A cache for a minute, so that clients that poll every second do not cause a read of the table each time.

use keelway_domain::time::{Span, Timestamp};
use std::collections::HashMap;
use std::sync::Mutex;

/// How long values are cached.
pub const FOR: Span = Span::seconds(60);
/// The most cached values.
const MOST: usize = 1000;

/// Values by name, each for a minute.
pub struct Memory<T>(Mutex<HashMap<String, (Timestamp, T)>>);

impl<T> Default for Memory<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> Memory<T> {
    /// The cached value of a name.
    pub fn get(&self, name: &str, now: Timestamp) -> Option<T> {
        let all = self.0.lock().ok()?;
        all.get(name).filter(|(since, _)| now - *since < FOR).map(|(_, value)| value.clone())
    }
    /// Caches a value.
    pub fn put(&self, name: &str, value: T, now: Timestamp) {
        if let Ok(mut all) = self.0.lock() {
            if all.len() >= MOST {
                all.clear();
            }
            all.insert(name.to_owned(), (now, value));
        }
    }
    /// Forgets a value that has changed.
    pub fn forget(&self, name: &str) {
        if let Ok(mut all) = self.0.lock() {
            all.remove(name);
        }
    }
}
