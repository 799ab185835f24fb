//! Places for commands. Whoever asks first gets the next one.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// As many as commands may run at the same time.
pub struct Places {
    size: usize,
    free: Arc<Semaphore>,
}

/// A turn in the queue for a place. Dropping it gives the place, or the turn, back.
pub struct Turn {
    waiting: Pin<Box<dyn Future<Output = Option<OwnedSemaphorePermit>> + Send>>,
    place: Option<OwnedSemaphorePermit>,
}

impl Places {
    /// So many.
    pub fn new(size: usize) -> Self {
        Self { size, free: Arc::new(Semaphore::new(size)) }
    }

    /// How many are taken.
    pub fn taken(&self) -> usize {
        self.size - self.free.available_permits()
    }

    /// Takes the last turn of the queue, or a place if one is free.
    pub async fn ask(&self) -> Turn {
        let places = Arc::clone(&self.free);
        // It ends without a place only if places are closed, and nobody closes them.
        let mut turn = Turn { waiting: Box::pin(async move { places.acquire_owned().await.ok() }), place: None };
        // The first poll is what enters the queue.
        poll_fn(|context| {
            if let Poll::Ready(place) = turn.waiting.as_mut().poll(context) {
                turn.place = place;
            }
            Poll::Ready(())
        })
        .await;
        turn
    }
}

impl Turn {
    /// Whether it has a place.
    pub fn has_place(&self) -> bool {
        self.place.is_some()
    }

    /// Until it has a place.
    pub async fn come(&mut self) {
        if self.place.is_none() {
            self.place = self.waiting.as_mut().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_to_ask_is_the_first_to_run() {
        let places = Places::new(1);
        let first = places.ask().await;
        let (mut second, mut third, fourth) = (places.ask().await, places.ask().await, places.ask().await);
        assert_eq!([&first, &second, &third, &fourth].map(Turn::has_place), [true, false, false, false]);
        drop(fourth);
        drop(first);
        second.come().await;
        assert!(tokio::time::timeout(std::time::Duration::from_millis(20), third.come()).await.is_err());
        drop(second);
        third.come().await;
        drop(third);
        assert!(places.ask().await.has_place());
    }
}
