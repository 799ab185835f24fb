//! Stores each dead letter as one item. A letter that could not be stored is delivered again after the queue's visibility timeout.

use keelway_aws::Aws;
use keelway_engine::ports::{Clock, PortError};
use keelway_engine::protocol::dead_letter::{self, DeadLetter};
use keelway_engine::trouble::{Kind, Trouble};
use keelway_lambda::batch::{self, Job, NotDone, Record};
use keelway_lambda::config::{DEAD_LETTERS, ENGINES};
use keelway_lambda::incoming::About;
use keelway_lambda::{aws, metrics};
use tokio::time::Instant;

/// The most letters in a batch.
const MOST: i32 = 10;

/// Stores all letters of the queue, as long as there is time for another batch. The next knock is about the rest.
///
/// # Errors
/// A letter is not stored, or the queue does not answer. Lambda repeats the invocation.
pub async fn all(ports: &Aws, until: Instant) -> Result<(), PortError> {
    let enough = Instant::now() + until.saturating_duration_since(Instant::now()) / 2;
    let mut wait = 1;
    while Instant::now() < enough {
        let records: Vec<Record> = ports.receive(DEAD_LETTERS, MOST, wait, None).await?.into_iter().map(Record::from).collect();
        if records.is_empty() {
            break;
        }
        let receipts: Vec<String> = records.iter().map(|record| record.receipt.clone()).collect();
        let not_stored = batch(ports, records, until).await;
        let again = |receipt: &String| not_stored.iter().any(|(record, _)| record.receipt == *receipt);
        ports.delete(DEAD_LETTERS, &receipts.into_iter().filter(|receipt| !again(receipt)).collect::<Vec<_>>()).await?;
        if let Some((_, why)) = not_stored.first() {
            return Err(PortError::Retry { request: "dead letter", reason: why.to_string() });
        }
        wait = 0;
    }
    Ok(())
}

/// Stores a batch; letters that are not stored are delivered again.
pub async fn batch(ports: &Aws, records: Vec<Record>, until: Instant) -> Vec<(Record, NotDone)> {
    let jobs = records.into_iter().map(|record| Job { work: letter(&record), record, together: None });
    let stores = ports.clone();
    let not_stored = batch::run(jobs.collect(), until, move |_, letter| one(stores.clone(), letter)).await;
    // This queue has no dead-letter queue of its own: a letter stays there until it is stored.
    batch::tell(&not_stored, u32::MAX);
    not_stored
}

fn letter(record: &Record) -> DeadLetter {
    let queue = meant_for(record);
    DeadLetter {
        engine: engine_of(queue).to_owned(),
        queue: queue.to_owned(),
        message_id: record.id.clone(),
        sent: record.sent,
        body: record.body.clone(),
        receives: i64::from(record.receives),
        reason: record.error.clone(),
    }
}

/// The name of the queue from which the message came. Empty for a message that was put into the dead-letter queue by hand.
fn meant_for(record: &Record) -> &str {
    record.target.as_deref().and_then(|arn| arn.rsplit(':').next()).unwrap_or(&record.queue)
}

/// The engine of a queue with the name `<stack>-<engine>`. Messages without a queue go to the first engine, which records what it
/// cannot parse as invalid.
fn engine_of(queue: &str) -> &'static str {
    ENGINES.into_iter().find(|engine| queue.ends_with(&format!("-{engine}"))).unwrap_or(ENGINES[0])
}

async fn one(ports: Aws, letter: DeadLetter) -> Result<(), NotDone> {
    let about = About { kind: "dead letter", ..About::default() };
    let stored = aws::accounted(&about, |()| "Stored".to_owned(), dead_letter::store(&ports, &letter));
    stored.await.map_err(|error: PortError| NotDone::Failed(error.to_string()))?;
    metrics::trouble(&[Trouble { kind: Kind::DeadLetter, engine: letter.engine, much: 1.0 }], ports.now());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use keelway_domain::time::Timestamp;

    #[test]
    fn a_letter_says_all_the_queue_knows() {
        let record = Record {
            id: "m".into(),
            receipt: "r".into(),
            body: "{}".into(),
            sent: Timestamp(7),
            receives: 11,
            queue: "keelway-dead-letters".into(),
            error: Some("NO_PERMISSIONS: no message".into()),
            target: Some("arn:aws:sqs:eu-central-1:1:keelway-deployers".into()),
        };
        let expected = DeadLetter {
            engine: "deployers".into(),
            queue: "keelway-deployers".into(),
            message_id: "m".into(),
            sent: Timestamp(7),
            body: "{}".into(),
            receives: 11,
            reason: Some("NO_PERMISSIONS: no message".into()),
        };
        assert_eq!(letter(&record), expected);
        let by_hand = DeadLetter { engine: "sequences".into(), queue: "keelway-dead-letters".into(), ..expected };
        assert_eq!(letter(&Record { target: None, ..record }), by_hand);
    }
}
