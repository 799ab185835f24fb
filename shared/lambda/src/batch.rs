//! Batches of messages. Every message has its own outcome: only failed messages are delivered again, and a panic or a slow message
//! does not affect the others.

#![expect(missing_docs, reason = "names that say what they are need no documentation")]

use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsMessage};
use keelway_domain::ids::hash64;
use keelway_domain::time::Timestamp;
use std::convert::Infallible;
use std::future::Future;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

/// How many groups of messages are handled concurrently. They wait for the network, not for the processor.
const AT_ONCE: usize = 10;
/// The time at the end of an invocation that is reserved for the answer.
const TO_ANSWER: Duration = Duration::from_secs(1);
/// The shortest time for a batch, even if its deadline seems to have passed: clocks differ.
const AT_LEAST: Duration = Duration::from_secs(2);
/// The longest delay before a failed message is delivered again. The first delays are short; all of them together are long enough
/// that an outage of a few minutes makes few dead letters.
const MOST_SECONDS: u64 = 300;
/// The longest delay after contention with other writers.
const CONTENDED_SECONDS: u64 = 3;

/// A message as the queue delivers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The id in the queue.
    pub id: String,
    /// The receipt handle of this delivery.
    pub receipt: String,
    pub body: String,
    /// When the message was first sent. A dead-letter queue keeps this time.
    pub sent: Timestamp,
    /// The number of deliveries, this one included.
    pub receives: u32,
    /// The name of the queue.
    pub queue: String,
    /// Why a service moved the message to a dead-letter queue, if it says so.
    pub error: Option<String>,
    /// For messages in a dead-letter queue: the ARN of the queue that the message was sent to. SQS names the queue from which it
    /// moved a message; rules and schedules name the target that they could not reach.
    pub target: Option<String>,
}

impl From<SqsMessage> for Record {
    fn from(message: SqsMessage) -> Self {
        let arn = message.event_source_arn.unwrap_or_default();
        Self {
            queue: arn.rsplit(':').next().unwrap_or_default().to_owned(),
            id: message.message_id.unwrap_or_default(),
            receipt: message.receipt_handle.unwrap_or_default(),
            body: message.body.unwrap_or_default(),
            ..Self::told(
                |name| message.attributes.get(name).cloned(),
                |name| message.message_attributes.get(name)?.string_value.clone(),
            )
        }
    }
}

#[cfg(feature = "aws")]
impl From<keelway_aws::Received> for Record {
    fn from(message: keelway_aws::Received) -> Self {
        Self {
            queue: message.queue,
            id: message.id,
            receipt: message.receipt,
            body: message.body,
            ..Self::told(|name| message.attributes.get(name).cloned(), |name| message.texts.get(name).cloned())
        }
    }
}

impl Record {
    /// What SQS tells of a message in `attributes`, and its sender in `texts`.
    fn told(attributes: impl Fn(&str) -> Option<String>, texts: impl Fn(&str) -> Option<String>) -> Self {
        let number = |name: &str| attributes(name).and_then(|value| value.parse::<i64>().ok());
        let error = match (texts("ERROR_CODE"), texts("ERROR_MESSAGE")) {
            (None, None) => None,
            (code, message) => Some(format!("{}: {}", code.unwrap_or("error".into()), message.unwrap_or("no message".into()))),
        };
        Self {
            sent: Timestamp(number("SentTimestamp").unwrap_or_default()),
            receives: number("ApproximateReceiveCount").and_then(|count| u32::try_from(count).ok()).unwrap_or(1),
            error,
            target: attributes("DeadLetterQueueSourceArn").or_else(|| texts("TARGET_ARN")),
            id: String::new(),
            receipt: String::new(),
            body: String::new(),
            queue: String::new(),
        }
    }

    /// The delay in seconds before the message is delivered again, scattered so that messages which failed together are not
    /// repeated together. After a failure: 1 to 300, longer with each delivery. After contention: always short, because nothing is
    /// broken, and the other writers will finish.
    pub fn comes_back_in(&self, why: &NotDone) -> i32 {
        let most = match why {
            NotDone::Contended(_) => CONTENDED_SECONDS,
            _ => 2u64.saturating_pow(self.receives).min(MOST_SECONDS),
        };
        let scattered = hash64(&[self.id.as_bytes(), &self.receives.to_be_bytes()]) % most;
        i32::try_from(1 + scattered).unwrap_or(1)
    }
}

/// A message, and how to handle it.
#[derive(Debug, Clone)]
pub struct Job<T> {
    pub record: Record,
    /// Messages with the same value are handled one after the other, in the order of the batch.
    pub together: Option<String>,
    /// The parsed content.
    pub work: T,
}

/// Why a message must be delivered again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotDone {
    /// The handler returned an error.
    #[error("{0}")]
    Failed(String),
    /// Other writers kept changing the subject of the message.
    #[error("{0}")]
    Contended(String),
    /// The handler panicked.
    #[error("its handler panicked")]
    Panicked,
    /// The function ran out of time.
    #[error("the function ran out of time")]
    OutOfTime,
}

/// When a batch must be complete so that its answer arrives. `deadline_millis`: the deadline of the function, in milliseconds
/// since 1970.
pub fn until(deadline_millis: u64) -> Instant {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let left = Duration::from_millis(deadline_millis).saturating_sub(now).saturating_sub(TO_ANSWER);
    Instant::now() + left.max(AT_LEAST)
}

/// Handles every message of a batch, and returns those that must be delivered again, with the reason. Nothing starts after `until`;
/// work that is not complete by then is dropped, as in a crash.
pub async fn run<T, F, W>(jobs: Vec<Job<T>>, until: Instant, handle: F) -> Vec<(Record, NotDone)>
where
    T: Send + 'static,
    F: Fn(Record, T) -> W + Clone + Send + Sync + 'static,
    W: Future<Output = Result<(), NotDone>> + Send + 'static,
{
    let mut waiting = groups(jobs).into_iter();
    let mut running = JoinSet::new();
    let mut not_done = Vec::new();
    for group in waiting.by_ref().take(AT_ONCE) {
        running.spawn(one_after_the_other(group, until, handle.clone()));
    }
    while let Some(finished) = running.join_next().await {
        // The task of a group cannot panic: the handlers of its messages are tasks of their own.
        not_done.extend(finished.into_iter().flatten());
        if let Some(group) = waiting.next() {
            running.spawn(one_after_the_other(group, until, handle.clone()));
        }
    }
    not_done
}

/// How long the queue hides the messages of a long-running function after its last sign of life.
pub const HELD: Duration = Duration::from_secs(45);
/// The interval of these signs.
const HEARD: Duration = Duration::from_secs(15);

/// Does the work, and hides its messages for [`HELD`] again and again. The alternative is a visibility timeout longer than the
/// longest run, during which nobody would see the messages of a function that died after a second.
pub async fn held<R, H: Future<Output = ()>>(work: impl Future<Output = R>, hide: impl Fn() -> H) -> R {
    // The work comes first: it begins before anything waits for the queue.
    tokio::select! {
        biased;
        done = work => done,
        never = again_and_again(hide) => match never {},
    }
}

async fn again_and_again<H: Future<Output = ()>>(hide: impl Fn() -> H) -> Infallible {
    loop {
        hide().await;
        tokio::time::sleep(HEARD).await;
    }
}

async fn one_after_the_other<T, F, W>(jobs: Vec<Job<T>>, until: Instant, handle: F) -> Vec<(Record, NotDone)>
where
    T: Send + 'static,
    F: Fn(Record, T) -> W + Clone + Send + Sync + 'static,
    W: Future<Output = Result<(), NotDone>> + Send + 'static,
{
    let mut not_done = Vec::new();
    for Job { record, work, .. } in jobs {
        let (handle, handled) = (handle.clone(), record.clone());
        if let Err(why) = fenced(until, async move { handle(handled, work).await }).await {
            not_done.push((record, why));
        }
    }
    not_done
}

/// Runs a handler as a task of its own, so that a panic does not affect the others.
async fn fenced(until: Instant, work: impl Future<Output = Result<(), NotDone>> + Send + 'static) -> Result<(), NotDone> {
    if Instant::now() >= until {
        return Err(NotDone::OutOfTime);
    }
    let mut task = tokio::spawn(work);
    match timeout_at(until, &mut task).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(_)) => Err(NotDone::Panicked),
        Err(_) => {
            task.abort();
            Err(NotDone::OutOfTime)
        }
    }
}

/// Groups jobs by their `together`, in the order of each group's first job. A job without one is alone.
fn groups<T>(jobs: Vec<Job<T>>) -> Vec<Vec<Job<T>>> {
    let mut groups: Vec<Vec<Job<T>>> = Vec::new();
    for job in jobs {
        let same = |group: &&mut Vec<Job<T>>| job.together.is_some() && group[0].together == job.together;
        match groups.iter_mut().find(same) {
            Some(group) => group.push(job),
            None => groups.push(vec![job]),
        }
    }
    groups
}

/// The answer that makes the queue keep these messages.
pub fn answer(not_done: &[(Record, NotDone)]) -> SqsBatchResponse {
    let mut response = SqsBatchResponse::default();
    for (record, _) in not_done {
        response.add_failure(&record.id);
    }
    response
}

/// Logs why messages are not done, and which of them the queue will not deliver again.
pub fn tell(not_done: &[(Record, NotDone)], max_receives: u32) {
    for (record, why) in not_done {
        let (id, receives) = (&record.id, record.receives);
        if receives >= max_receives {
            tracing::error!(message.id = id, receives, %why, "a message failed for the last time and goes to the dead-letter queue");
        } else {
            tracing::warn!(message.id = id, receives, %why, "a message failed and comes back");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    fn record(id: &str) -> Record {
        Record {
            id: id.into(),
            receipt: format!("receipt of {id}"),
            body: String::new(),
            sent: Timestamp(0),
            receives: 1,
            queue: "q".into(),
            error: None,
            target: None,
        }
    }

    fn jobs(names: &[(&str, &'static str)]) -> Vec<Job<&'static str>> {
        let job = |(together, work): &(&str, &'static str)| Job {
            record: record(work),
            together: (!together.is_empty()).then(|| (*together).to_owned()),
            work: *work,
        };
        names.iter().map(job).collect()
    }

    /// With a paused clock: when everything that can be done by then is done.
    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(3)
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_a_panic_and_a_slow_one_take_nothing_with_them() {
        let batch = jobs(&[("a", "fine"), ("a", "fails"), ("b", "panics"), ("b", "fine too"), ("c", "hangs"), ("c", "too late")]);
        let done = Arc::new(Mutex::new(vec![]));
        let seen = done.clone();
        let not_done = run(batch, soon(), move |_, work| {
            let seen = seen.clone();
            async move {
                match work {
                    "fails" => return Err(NotDone::Failed("throttled".into())),
                    "panics" => panic!("on purpose"),
                    "hangs" => std::future::pending().await,
                    _ => seen.lock().unwrap().push(work),
                }
                Ok(())
            }
        })
        .await;
        done.lock().unwrap().sort_unstable();
        assert_eq!(*done.lock().unwrap(), ["fine", "fine too"]);
        let mut why: Vec<(&str, &NotDone)> = not_done.iter().map(|(record, why)| (record.id.as_str(), why)).collect();
        why.sort_unstable_by_key(|(id, _)| *id);
        let failed = NotDone::Failed("throttled".into());
        let expected =
            [("fails", &failed), ("hangs", &NotDone::OutOfTime), ("panics", &NotDone::Panicked), ("too late", &NotDone::OutOfTime)];
        assert_eq!(why, expected);
        let answer = answer(&not_done);
        assert_eq!(answer.batch_item_failures.len(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn one_context_in_order_others_beside_it() {
        let mut names = vec![("a", "a1"), ("b", "b1"), ("a", "a2"), ("a", "a3")];
        names.extend([("", "alone"); 20]);
        let log = Arc::new(Mutex::new(vec![]));
        let seen = log.clone();
        let not_done = run(jobs(&names), soon(), move |_, work| {
            let seen = seen.clone();
            async move {
                seen.lock().unwrap().push(format!("{work}<"));
                tokio::time::sleep(Duration::from_millis(5)).await;
                seen.lock().unwrap().push(format!("{work}>"));
                Ok(())
            }
        })
        .await;
        assert_eq!(not_done, []);
        let log = log.lock().unwrap();
        let of_a: Vec<&String> = log.iter().filter(|entry| entry.starts_with('a') && !entry.starts_with("alone")).collect();
        assert_eq!(of_a, ["a1<", "a1>", "a2<", "a2>", "a3<", "a3>"]);
        let place = |entry: &str| log.iter().position(|other| other == entry).unwrap();
        assert!(place("b1<") < place("a1>"));
        assert_eq!(log.iter().filter(|entry| *entry == "alone>").count(), 20);
    }

    #[test]
    fn failures_come_back_soon_and_scattered() {
        let message = |id: usize, receives: u32| Record { receives, ..record(&id.to_string()) };
        let failed = NotDone::Failed("throttled".into());
        let seconds = |id: usize, receives: u32| message(id, receives).comes_back_in(&failed);
        assert!((0..100).all(|id| (1..=2).contains(&seconds(id, 1))));
        assert!((1..100).all(|receives| (1..=300).contains(&seconds(7, receives))));
        let late: std::collections::BTreeSet<i32> = (0..200).map(|id| seconds(id, 9)).collect();
        assert!(late.len() > 100, "scattered: {}", late.len());
        let patience: i32 = (1..10).map(|receives| seconds(11, receives)).sum();
        assert!(patience > 120, "ten receives outlast an outage of two minutes: {patience} s");
        assert_eq!(seconds(3, 4), seconds(3, 4));
        let contended = NotDone::Contended("changed by others".into());
        let soon = |receives: u32| (0..100).all(|id| (1..=3).contains(&message(id, receives).comes_back_in(&contended)));
        assert!((1..100).all(soon), "soon after contention, however often");
    }

    #[test]
    fn a_message_as_the_runtime_hands_it_over() {
        let json = serde_json::json!({
            "messageId": "m", "receiptHandle": "r", "body": "{}",
            "attributes": {"SentTimestamp": "1795222266686", "ApproximateReceiveCount": "3"},
            "messageAttributes": {
                "ERROR_CODE": {"stringValue": "NO_PERMISSIONS", "dataType": "String"},
                "TARGET_ARN": {"stringValue": "arn:aws:sqs:eu-central-1:1:keelway-sequences", "dataType": "String"},
            },
            "eventSourceARN": "arn:aws:sqs:eu-central-1:1:keelway-dead-letters",
        });
        let message: SqsMessage = serde_json::from_value(json).unwrap();
        let record = Record::from(message);
        assert_eq!((record.sent, record.receives), (Timestamp(1_795_222_266_686), 3));
        assert_eq!(record.queue, "keelway-dead-letters");
        assert_eq!(record.error.as_deref(), Some("NO_PERMISSIONS: no message"));
        assert_eq!(record.target.as_deref(), Some("arn:aws:sqs:eu-central-1:1:keelway-sequences"));
    }

    #[test]
    fn a_message_that_sqs_moved_says_from_where() {
        let source = "arn:aws:sqs:eu-central-1:1:keelway-deployers";
        let message: SqsMessage = serde_json::from_value(serde_json::json!({
            "messageId": "m", "receiptHandle": "r", "body": "{}",
            "attributes": {"DeadLetterQueueSourceArn": source},
            "messageAttributes": {},
            "eventSourceARN": "arn:aws:sqs:eu-central-1:1:keelway-dead-letters",
        }))
        .unwrap();
        assert_eq!(Record::from(message).target.as_deref(), Some(source));
    }

    #[tokio::test(start_paused = true)]
    async fn messages_are_hidden_again_while_they_are_worked_on() {
        let began = Instant::now();
        let hidden = Mutex::new(vec![]);
        let hide = || async { hidden.lock().unwrap().push(began.elapsed().as_secs()) };
        held(tokio::time::sleep(Duration::from_secs(40)), hide).await;
        held(async {}, hide).await;
        assert_eq!(hidden.into_inner().unwrap(), [0, 15, 30]);
    }
}
