//! Secrets that are read once for a while.

use keelway_domain::time::{Span, Timestamp};
use keelway_engine::ports::{Clock, PortError};
use keelway_engine::remembered::*;
use keelway_engine::secrets::{Known, SecretText, Secrets, name};
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::{Context, Poll, Waker};

/// At each reading, another token.
#[derive(Default)]
struct Rotated {
    reads: AtomicI64,
    now: AtomicI64,
}

impl Clock for &Rotated {
    fn now(&self) -> Timestamp {
        Timestamp(self.now.load(Ordering::Relaxed))
    }
    async fn pause(&self, _: Span) {}
}

impl Secrets for &Rotated {
    async fn secret(&self, name: &str) -> Result<Option<SecretText>, PortError> {
        let n = self.reads.fetch_add(1, Ordering::Relaxed);
        Ok((name == "shop/git").then(|| SecretText::new(format!("token {n}"))))
    }
}

fn read(rotated: &Rotated, secrets: &Remembered<&Rotated>, name: &str, at: i64) -> Option<String> {
    rotated.now.store(at, Ordering::Relaxed);
    let mut reading = Box::pin(secrets.secret(name));
    match reading.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(found) => found.unwrap().map(|text| text.expose().to_owned()),
        Poll::Pending => panic!("nothing here takes time"),
    }
}

#[test]
fn a_secret_is_read_once_in_five_minutes() {
    let rotated = Rotated::default();
    let secrets = Remembered::new(&rotated);
    let read = |at| read(&rotated, &secrets, "shop/git", at).unwrap();
    assert_eq!([read(0), read(FRESH.0 - 1), read(FRESH.0), read(FRESH.0 + 1)], ["token 0", "token 0", "token 1", "token 1"]);
}

#[test]
fn what_is_missing_is_looked_for_again() {
    let rotated = Rotated::default();
    let secrets = Remembered::new(&rotated);
    assert_eq!((read(&rotated, &secrets, "shop/other", 0), read(&rotated, &secrets, "shop/other", 1)), (None, None));
    assert_eq!(rotated.reads.load(Ordering::Relaxed), 2);
}

#[test]
fn a_secret_is_not_printed() {
    let known = Known::default().with("shop/key", "s3cr3t");
    assert!(!format!("{known:?} {:?}", SecretText::new("s3cr3t")).contains("s3cr3t"));
    assert_eq!(known.0[&name("shop", "key")].expose(), "s3cr3t");
}
