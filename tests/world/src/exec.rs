//! An executor by hand: nothing wakes, whoever holds the task decides when it goes on.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// A future owned by a scheduler.
pub type Task<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Lets the task go on to its next request, or to its end.
pub fn step<T>(task: &mut (impl Future<Output = T> + Unpin)) -> Poll<T> {
    Pin::new(task).poll(&mut Context::from_waker(Waker::noop()))
}

/// Runs it to its end without anybody in between.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return value;
        }
    }
}
