//! Sends a command to the engine, then reads the state until it shows the result. The API makes no changes that have effects.

use std::future::Future;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How often the state is read while waiting for an outcome.
const LOOK: Duration = Duration::from_millis(60);
const LOOK_AT_MOST: Duration = Duration::from_millis(500);

/// Reads the state until it shows an outcome, for at most `patience`. `None`: there is no outcome yet.
///
/// # Errors
/// Of reading the state.
pub(crate) async fn outcome<T, E, F>(patience: Duration, look: impl Fn() -> F) -> Result<Option<T>, E>
where
    F: Future<Output = Result<Option<T>, E>>,
{
    let until = Instant::now() + patience;
    let mut pause = LOOK;
    loop {
        if let Some(outcome) = look().await? {
            return Ok(Some(outcome));
        }
        let now = Instant::now();
        if now >= until {
            return Ok(None);
        }
        sleep(pause.min(until - now)).await;
        pause = (pause * 2).min(LOOK_AT_MOST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[tokio::test]
    async fn looks_until_the_outcome_is_there() {
        let looks = AtomicU32::new(0);
        let look = || async { Ok::<_, ()>((looks.fetch_add(1, Ordering::Relaxed) == 2).then_some("done")) };
        assert_eq!(outcome(Duration::from_secs(600), look).await, Ok(Some("done")));
        assert_eq!(looks.load(Ordering::Relaxed), 3);
    }

    #[tokio::test]
    async fn gives_up_when_patience_ends_and_never_before_one_look() {
        assert_eq!(outcome(Duration::ZERO, || async { Ok::<Option<()>, ()>(None) }).await, Ok(None));
        assert_eq!(outcome(Duration::ZERO, || async { Err::<Option<()>, _>("broken") }).await, Err("broken"));
    }
}
