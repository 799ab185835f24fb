//! One dead letter, one item. What could not be stored comes back after the queue's visibility timeout.

use aws_lambda_events::event::sqs::SqsMessage;
use keelway_aws::Aws;
use keelway_engine::ports::PortError;
use keelway_engine::sequences::dead_letter::{self, DeadLetter};
use keelway_lambda::aws;
use keelway_lambda::batch::{self, Job, NotDone, Record};
use keelway_lambda::delivery::About;
use tokio::time::Instant;

/// Stores a batch; what is not done comes back.
pub async fn batch(ports: &Aws, messages: Vec<SqsMessage>, until: Instant) -> Vec<(Record, NotDone)> {
    let jobs = messages.into_iter().map(Record::from).map(|record| Job { work: letter(&record), record, together: None });
    let ports = ports.clone();
    batch::run(jobs.collect(), until, move |_, letter| one(ports.clone(), letter)).await
}

fn letter(record: &Record) -> DeadLetter {
    DeadLetter {
        queue: record.queue.clone(),
        message_id: record.id.clone(),
        sent: record.sent,
        body: record.body.clone(),
        receives: i64::from(record.receives),
        reason: record.error.clone(),
    }
}

async fn one(ports: Aws, letter: DeadLetter) -> Result<(), NotDone> {
    let about = About { kind: "dead letter", ..About::default() };
    let stored = aws::accounted(&about, |()| "Stored".to_owned(), dead_letter::store(&ports, &letter));
    stored.await.map_err(|error: PortError| NotDone::Failed(error.to_string()))
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
            queue: "keelway-dead".into(),
            error: Some("NO_PERMISSIONS: no message".into()),
        };
        let expected = DeadLetter {
            queue: "keelway-dead".into(),
            message_id: "m".into(),
            sent: Timestamp(7),
            body: "{}".into(),
            receives: 11,
            reason: Some("NO_PERMISSIONS: no message".into()),
        };
        assert_eq!(letter(&record), expected);
    }
}
