//! A drain: a function that was knocked at looks at its queue by itself, in place of Lambda's pollers.
//!
//! Two drains beside each other are like two pollers. A drain that stops in the middle has deleted nothing that is not done: its
//! messages are visible again after the queue's timeout, and Lambda, which repeats an asynchronous invocation that failed after one
//! minute and after two more, starts the next drain then.

use crate::batch::{NotDone, Record};
use keelway_engine::ports::PortError;
use std::future::Future;
use std::time::Duration;
use tokio::time::Instant;

/// How long the first request waits for a message: a rule knocks at the moment at which it sends. It also makes SQS look at all of
/// its servers, where a request that does not wait asks a few of them.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// A drain begins no batch after this, but has another invocation begin it, with all the time of the function.
const FRESH: Duration = Duration::from_secs(2);

/// The queue of a function.
pub trait Polled: Send + Sync {
    /// Receives messages, `most` of them at most. Waits while there are none.
    fn receive(&self, most: usize, wait: Duration) -> impl Future<Output = Result<Vec<Record>, PortError>> + Send;
    /// Deletes messages that are done, by their receipts.
    fn delete(&self, receipts: &[String]) -> impl Future<Output = Result<(), PortError>> + Send;
    /// Makes a message visible again after so many seconds.
    fn come_back_in(&self, receipt: &str, seconds: i32) -> impl Future<Output = Result<(), PortError>> + Send;
    /// Starts another drain.
    fn knock(&self) -> impl Future<Output = Result<(), PortError>> + Send;
    /// Starts another drain after so many seconds.
    fn knock_in(&self, seconds: i32) -> impl Future<Output = Result<(), PortError>> + Send;
}

/// Handles the messages of a queue in batches until there are none, or another drain goes on. `handle` returns those that must be
/// delivered again. Returns how many there were.
///
/// # Errors
/// The queue does not do what it was asked for. The invocation has to fail, so that Lambda repeats it.
pub async fn drain<F>(queue: &impl Polled, most: usize, handle: impl Fn(Vec<Record>) -> F) -> Result<usize, PortError>
where
    F: Future<Output = Vec<(Record, NotDone)>>,
{
    let began = Instant::now();
    let mut count = 0;
    loop {
        let first = count == 0;
        let records = queue.receive(most, if first { FIRST_WAIT } else { Duration::ZERO }).await?;
        if records.is_empty() {
            return Ok(count);
        }
        // A full batch may leave messages behind. This drain would come to them, too, but after its batch.
        if first
            && records.len() >= most
            && let Err(error) = queue.knock().await
        {
            tracing::warn!(%error, "no other drain was started");
        }
        count += records.len();
        let receipts: Vec<String> = records.iter().map(|record| record.receipt.clone()).collect();
        let not_done = handle(records).await;
        let again = |receipt: &String| not_done.iter().any(|(record, _)| record.receipt == *receipt);
        let done: Vec<String> = receipts.into_iter().filter(|receipt| !again(receipt)).collect();
        queue.delete(&done).await?;
        bring_back(queue, &not_done).await?;
        if began.elapsed() >= FRESH {
            queue.knock().await?;
            return Ok(count);
        }
    }
}

/// Makes failed messages visible again soon, with a drain for each moment at which some are. A drain comes a second later than its
/// messages. It is ordered before they are brought back: if this stops in between, they are visible after the queue's timeout, when
/// Lambda repeats the invocation.
async fn bring_back(queue: &impl Polled, not_done: &[(Record, NotDone)]) -> Result<(), PortError> {
    let mut moments: Vec<i32> = not_done.iter().map(|(record, why)| record.comes_back_in(why)).collect();
    moments.sort_unstable();
    moments.dedup();
    for seconds in moments {
        queue.knock_in(seconds + 1).await?;
    }
    for (record, why) in not_done {
        queue.come_back_in(&record.receipt, record.comes_back_in(why)).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use keelway_domain::time::Timestamp;
    use std::collections::BTreeMap;
    use std::sync::{Mutex, MutexGuard};

    /// How long the queue hides what was received.
    const HIDDEN: i64 = 60;

    /// A message, and the second from which on it is visible.
    #[derive(Debug, Clone, PartialEq)]
    struct Held {
        receives: u32,
        from: i64,
    }

    #[derive(Debug, Default)]
    struct State {
        now: i64,
        messages: BTreeMap<String, Held>,
        /// The seconds at which a drain begins.
        knocks: Vec<i64>,
        /// How many requests there were, and the one at which the function dies: it takes effect, and nobody learns of it.
        requests: usize,
        dies_at: Option<usize>,
        /// Bodies that were handled, in order.
        handled: Vec<String>,
        /// What the requests for messages waited for.
        waits: Vec<Duration>,
    }

    /// A queue in memory, with a clock of its own. It loses nothing and delivers at least once.
    #[derive(Debug, Default)]
    struct Queue(Mutex<State>);

    impl Queue {
        fn with(messages: usize) -> Self {
            let held = (0..messages).map(|n| (format!("m{n:04}"), Held { receives: 0, from: 0 })).collect();
            Self(Mutex::new(State { messages: held, knocks: vec![0], ..State::default() }))
        }
        fn state(&self) -> MutexGuard<'_, State> {
            self.0.lock().unwrap()
        }
    }

    impl State {
        /// Answers a request, unless the function is dead.
        fn answer<T>(&mut self, with: T) -> Result<T, PortError> {
            self.requests += 1;
            match self.dies_at {
                Some(at) if self.requests > at => Err(PortError::Retry { request: "test", reason: "dead".into() }),
                _ => Ok(with),
            }
        }
    }

    impl Polled for Queue {
        async fn receive(&self, most: usize, wait: Duration) -> Result<Vec<Record>, PortError> {
            let mut state = self.state();
            let now = state.now;
            state.waits.push(wait);
            let visible: Vec<String> =
                state.messages.iter().filter(|(_, held)| held.from <= now).map(|(id, _)| id.clone()).take(most).collect();
            let mut records = vec![];
            for id in visible {
                let held = state.messages.get_mut(&id).unwrap();
                *held = Held { receives: held.receives + 1, from: now + HIDDEN };
                records.push(record(&id, held.receives));
            }
            state.answer(records)
        }
        async fn delete(&self, receipts: &[String]) -> Result<(), PortError> {
            let mut state = self.state();
            state.messages.retain(|id, _| !receipts.contains(id));
            state.answer(())
        }
        async fn come_back_in(&self, receipt: &str, seconds: i32) -> Result<(), PortError> {
            let mut state = self.state();
            let from = state.now + i64::from(seconds);
            state.messages.get_mut(receipt).unwrap().from = from;
            state.answer(())
        }
        async fn knock(&self) -> Result<(), PortError> {
            self.knock_in(0).await
        }
        async fn knock_in(&self, seconds: i32) -> Result<(), PortError> {
            let mut state = self.state();
            let at = state.now + i64::from(seconds);
            state.knocks.push(at);
            state.answer(())
        }
    }

    fn record(id: &str, receives: u32) -> Record {
        Record {
            id: id.into(),
            receipt: id.into(),
            body: id.into(),
            sent: Timestamp(0),
            receives,
            queue: "q".into(),
            error: None,
            target: None,
        }
    }

    /// Handles messages; `fails` says which deliveries fail.
    async fn once(queue: &Queue, most: usize, fails: impl Fn(&Record) -> bool) -> Result<usize, PortError> {
        let handle = |records: Vec<Record>| {
            let mut state = queue.state();
            state.handled.extend(records.iter().map(|record| record.body.clone()));
            let not_done = records.into_iter().filter(&fails).map(|record| (record, NotDone::Failed("on purpose".into())));
            std::future::ready(not_done.collect::<Vec<_>>())
        };
        drain(queue, most, handle).await
    }

    /// Runs what is knocked for, in the order of time, as Lambda does: an invocation that fails is repeated after one minute.
    /// Returns when the last message was handled; messages that are left are for the sweep.
    async fn all(queue: &Queue, most: usize, fails: impl Fn(&Record) -> bool + Copy) -> i64 {
        let mut last = 0;
        loop {
            let before = {
                let mut state = queue.state();
                state.knocks.sort_unstable();
                if state.knocks.is_empty() {
                    return last;
                }
                state.now = state.knocks.remove(0);
                state.handled.len()
            };
            let died = once(queue, most, fails).await.is_err();
            let mut state = queue.state();
            if died {
                let again = state.now + 60;
                state.dies_at = None;
                state.knocks.push(again);
            }
            if state.handled.len() > before {
                last = state.now;
            }
        }
    }

    #[tokio::test]
    async fn one_message_costs_two_receives_and_one_deletion() {
        let queue = Queue::with(1);
        assert_eq!(once(&queue, 10, |_| false).await, Ok(1));
        let state = queue.state();
        assert_eq!((state.requests, state.messages.len(), state.knocks.len()), (3, 0, 1));
        assert_eq!(state.waits, [FIRST_WAIT, Duration::ZERO]);
    }

    #[tokio::test]
    async fn a_knock_too_many_finds_nothing() {
        let queue = Queue::with(0);
        assert_eq!(once(&queue, 10, |_| false).await, Ok(0));
        let state = queue.state();
        assert_eq!((state.requests, state.knocks.len()), (1, 1));
    }

    #[tokio::test]
    async fn a_thousand_messages_and_one_knock() {
        let queue = Queue::with(1000);
        assert_eq!(all(&queue, 10, |_| false).await, 0, "without waiting for anything");
        let state = queue.state();
        assert_eq!((state.messages.len(), state.handled.len()), (0, 1000));
    }

    #[tokio::test]
    async fn a_full_batch_calls_for_help_before_it_is_handled() {
        let queue = Queue::with(20);
        let knocks = Mutex::new(vec![]);
        let handle = |_| {
            knocks.lock().unwrap().push(queue.state().knocks.len());
            std::future::ready(vec![])
        };
        assert_eq!(drain(&queue, 10, handle).await, Ok(20));
        assert_eq!(*knocks.lock().unwrap(), [2, 2], "one helper: it calls for the next one");
    }

    #[tokio::test(start_paused = true)]
    async fn a_drain_that_is_no_longer_fresh_hands_over() {
        let queue = Queue::with(15);
        let handle = |_| async {
            tokio::time::sleep(FRESH).await;
            vec![]
        };
        assert_eq!(drain(&queue, 5, handle).await, Ok(5), "the next batch has all the time of a function");
        let state = queue.state();
        assert_eq!((state.messages.len(), state.knocks.len()), (10, 3));
    }

    #[tokio::test]
    async fn what_failed_is_knocked_for_when_it_is_back() {
        let queue = Queue::with(3);
        let fails = |record: &Record| record.id == "m0001" && record.receives < 4;
        let last = all(&queue, 10, fails).await;
        let state = queue.state();
        assert_eq!(state.handled.iter().filter(|id| *id == "m0001").count(), 4);
        assert_eq!((state.messages.len(), state.handled.len()), (0, 6));
        assert!(last <= 1 + 2 + 1 + 4 + 1 + 8 + 1, "after {last} s");
    }

    #[tokio::test]
    async fn a_message_that_always_fails_is_tried_until_the_queue_takes_it_out() {
        let queue = Queue::with(1);
        let mut times = 0;
        while queue.state().messages.values().any(|held| held.receives < 10) {
            assert!(!queue.state().knocks.is_empty(), "somebody comes back for it, after {times} times");
            let at = queue.state().knocks.pop().unwrap();
            queue.state().now = at;
            assert_eq!(once(&queue, 10, |_| true).await, Ok(1));
            times += 1;
        }
        assert_eq!(times, 10);
    }

    /// A death after any request, of the queue's or of the function: everything is done a minute later, and nothing is deleted that
    /// was not handled.
    #[tokio::test]
    async fn a_drain_that_dies_anywhere_is_made_up_for_after_a_minute() {
        let fails = |record: &Record| record.id.ends_with('3') && record.receives < 2;
        let undisturbed = Queue::with(12);
        all(&undisturbed, 5, fails).await;
        let requests = undisturbed.state().requests;
        assert!(requests > 10, "{requests}");
        for dies_at in 0..requests {
            let queue = Queue::with(12);
            queue.state().dies_at = Some(dies_at);
            let last = all(&queue, 5, fails).await;
            let state = queue.state();
            assert_eq!(state.messages, BTreeMap::new(), "it dies at request {dies_at}");
            for n in 0..12 {
                let times = state.handled.iter().filter(|id| **id == format!("m{n:04}")).count();
                // The one that fails at first may have been received by the drain that died, and by nobody before.
                let most = if n == 3 { 3 } else { 2 };
                assert!((1..=most).contains(&times), "m{n:04} {times} times; it dies at request {dies_at}");
            }
            assert!(last <= HIDDEN + 5, "{last} s after it died at request {dies_at}");
        }
    }

    #[tokio::test]
    async fn two_drains_beside_each_other_are_like_two_pollers() {
        let queue = Queue::with(30);
        let handle = |records: Vec<Record>| {
            queue.state().handled.extend(records.into_iter().map(|record| record.body));
            async {
                tokio::task::yield_now().await;
                vec![]
            }
        };
        let (one, two) = tokio::join!(drain(&queue, 5, handle), drain(&queue, 5, handle));
        assert_eq!(one.unwrap() + two.unwrap(), 30);
        let state = queue.state();
        assert_eq!((state.messages.len(), state.handled.len()), (0, 30));
    }
}
