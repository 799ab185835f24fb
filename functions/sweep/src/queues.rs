//! What the sweep sees of queues and their functions.
//!
//! Only queues with messages are looked at: CloudWatch charges for each metric that is read.

use keelway_domain::time::Span;
use keelway_engine::ports::PortError;
use keelway_engine::trouble::{DEAD_LETTERS, Kind, Measure, Trouble, Watch};

/// How many minutes are looked at.
const MINUTES: i64 = 10;
/// In so many of these minutes something has to be wrong: a function that crashes once is no trouble, the message is delivered
/// again.
const AT_LEAST: usize = 3;
/// The same for letters that wait: each sweep has those stored that came since the one before, so the queue is empty twice.
const LETTERS_AT_LEAST: usize = 9;

/// The trouble of an engine's queue, which has messages, and of its function. `limit`: how long messages may wait.
///
/// # Errors
/// A request fails.
pub async fn look(watch: &impl Watch, engine: &str, limit: Span) -> Result<Vec<Trouble>, PortError> {
    let seconds = limit.0 as f64 / 1000.0;
    // The age of a dead letter counts from when its message was first sent.
    let of_messages = match engine {
        DEAD_LETTERS => (Measure::Waiting, Kind::DeadLettersWait, 0.0, LETTERS_AT_LEAST),
        _ => (Measure::Age, Kind::MessagesWait, seconds, AT_LEAST),
    };
    let asked = [
        of_messages,
        (Measure::Errors, Kind::FunctionFails, 0.0, AT_LEAST),
        (Measure::Throttles, Kind::FunctionThrottled, 0.0, AT_LEAST),
    ];
    let measured = watch.measured(engine, &asked.map(|(measure, ..)| measure), MINUTES).await?;
    let troubles = asked.into_iter().zip(measured).filter_map(|((_, kind, limit, minutes), values)| {
        let above: Vec<f64> = values.into_iter().filter(|value| *value > limit).collect();
        let most = above.iter().copied().fold(0.0, f64::max);
        (above.len() >= minutes).then(|| Trouble { kind, engine: engine.to_owned(), much: most })
    });
    Ok(troubles.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was measured of a queue and its function.
    struct Queue(fn(Measure) -> Vec<f64>);

    impl Watch for Queue {
        async fn messages(&self, _: &str) -> Result<u64, PortError> {
            Ok(1)
        }
        async fn measured(&self, _: &str, what: &[Measure], _: i64) -> Result<Vec<Vec<f64>>, PortError> {
            Ok(what.iter().map(|measure| self.0(*measure)).collect())
        }
    }

    impl Queue {
        fn measured(measured: fn(Measure) -> Vec<f64>) -> Self {
            Self(measured)
        }
    }

    async fn told(queue: &Queue, engine: &str) -> Vec<(Kind, f64)> {
        let troubles = look(queue, engine, Span::minutes(5)).await.unwrap();
        assert!(troubles.iter().all(|trouble| trouble.engine == engine));
        troubles.iter().map(|trouble| (trouble.kind, trouble.much)).collect()
    }

    #[tokio::test]
    async fn messages_that_wait_too_long_in_three_minutes() {
        let behind = Queue::measured(|what| if what == Measure::Age { vec![100.0, 301.0, 361.0, 421.0] } else { vec![0.0; 4] });
        assert_eq!(told(&behind, "sequences").await, [(Kind::MessagesWait, 421.0)]);
        let catches_up = Queue::measured(|what| if what == Measure::Age { vec![301.0, 361.0, 300.0, 2.0] } else { vec![] });
        assert_eq!(told(&catches_up, "sequences").await, []);
    }

    #[tokio::test]
    async fn a_function_that_crashes_and_one_that_is_throttled() {
        let crashes = Queue::measured(|what| if what == Measure::Errors { vec![1.0, 0.0, 2.0, 1.0] } else { vec![] });
        assert_eq!(told(&crashes, "attempts").await, [(Kind::FunctionFails, 2.0)]);
        let throttled = Queue::measured(|what| if what == Measure::Throttles { vec![7.0, 9.0, 8.0] } else { vec![0.0; 3] });
        assert_eq!(told(&throttled, "attempts").await, [(Kind::FunctionThrottled, 9.0)]);
        let once = Queue::measured(|what| if what == Measure::Errors { vec![0.0, 3.0, 3.0] } else { vec![] });
        assert_eq!(told(&once, "attempts").await, [], "the messages are delivered again");
    }

    #[tokio::test]
    async fn dead_letters_that_are_not_stored() {
        let stay = Queue::measured(|what| match what {
            Measure::Waiting => vec![2.0; 9],
            Measure::Errors => vec![1.0; 3],
            // From when their messages were first sent.
            Measure::Age => vec![1e6; 10],
            Measure::Throttles => vec![],
        });
        assert_eq!(told(&stay, DEAD_LETTERS).await, [(Kind::DeadLettersWait, 2.0), (Kind::FunctionFails, 1.0)]);
        let pass = Queue::measured(|what| if what == Measure::Waiting { vec![1.0; 8] } else { vec![] });
        assert_eq!(told(&pass, DEAD_LETTERS).await, []);
    }
}
