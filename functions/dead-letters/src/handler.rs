//! Stores each dead letter as one item. A letter that could not be stored is delivered again after the queue's visibility timeout.

use aws_lambda_events::event::sqs::SqsMessage;
use keelway_aws::Aws;
use keelway_engine::ports::PortError;
use keelway_engine::protocol::dead_letter::{self, DeadLetter};
use keelway_lambda::aws;
use keelway_lambda::batch::{self, Job, NotDone, Record};
use keelway_lambda::config::ENGINES;
use keelway_lambda::delivery::About;
use tokio::time::Instant;

/// Stores a batch; letters that are not stored are delivered again.
pub async fn batch(ports: &Aws, messages: Vec<SqsMessage>, until: Instant) -> Vec<(Record, NotDone)> {
    let jobs = messages.into_iter().map(Record::from).map(|record| Job { work: letter(&record), record, together: None });
    let ports = ports.clone();
    batch::run(jobs.collect(), until, move |_, letter| one(ports.clone(), letter)).await
}

fn letter(record: &Record) -> DeadLetter {
    DeadLetter {
        engine: engine_of(record),
        queue: record.queue.clone(),
        message_id: record.id.clone(),
        sent: record.sent,
        body: record.body.clone(),
        receives: i64::from(record.receives),
        reason: record.error.clone(),
    }
}

/// The engine that the message was for. Rules and schedules name their target queue; an engine's own dead-letter queue is named
/// after the engine: `<stack>-<engine>` and `<stack>-<engine>-dead-letters`.
fn engine_of(record: &Record) -> String {
    let meant = record.target.as_deref().unwrap_or_else(|| record.queue.trim_end_matches("-dead-letters"));
    let named = ENGINES.into_iter().find(|engine| meant.ends_with(&format!("-{engine}")));
    // Every rule and schedule names its target; a letter without one is an event for the first engine.
    named.unwrap_or(ENGINES[0]).to_owned()
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
            target: Some("arn:aws:sqs:eu-central-1:1:keelway-sequences".into()),
        };
        let expected = DeadLetter {
            engine: "sequences".into(),
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
