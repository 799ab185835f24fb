//! Stores each dead letter as one item. A letter that could not be stored is delivered again after the queue's visibility timeout.

use aws_lambda_events::event::sqs::SqsMessage;
use keelway_aws::Aws;
use keelway_engine::ports::{Clock, PortError};
use keelway_engine::protocol::dead_letter::{self, DeadLetter};
use keelway_engine::trouble::{Kind, Trouble};
use keelway_lambda::batch::{self, Job, NotDone, Record};
use keelway_lambda::config::ENGINES;
use keelway_lambda::incoming::About;
use keelway_lambda::{aws, metrics};
use tokio::time::Instant;

/// Stores a batch; letters that are not stored are delivered again.
pub async fn batch(ports: &Aws, messages: Vec<SqsMessage>, until: Instant) -> Vec<(Record, NotDone)> {
    let jobs = messages.into_iter().map(Record::from).map(|record| Job { work: letter(&record), record, together: None });
    let ports = ports.clone();
    batch::run(jobs.collect(), until, move |_, letter| one(ports.clone(), letter)).await
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
