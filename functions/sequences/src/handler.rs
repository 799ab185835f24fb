//! One message, one call of the engine, one outcome: done, or come back.

use aws_lambda_events::event::sqs::SqsMessage;
use keelway_aws::Aws;
use keelway_engine::message::Delivery;
use keelway_engine::ports::PortError;
use keelway_engine::sequences::Engine;
use keelway_engine::sequences::dead_letter::{self, Redriven};
use keelway_lambda::batch::{Job, NotDone, Record};
use keelway_lambda::delivery::{About, NotUnderstood, delivery};
use keelway_lambda::{aws, batch};
use std::sync::Arc;
use tokio::time::Instant;
use tracing::Instrument;

type Read = Result<Delivery, NotUnderstood>;

/// A message as read, what it is about, and the dead letter it was, if it is one on its way again.
struct Work {
    read: Read,
    about: About,
    letter: Option<String>,
}

/// Handles a batch; what is not done comes back, soon.
pub async fn batch(engine: &Arc<Engine<Aws>>, messages: Vec<SqsMessage>, until: Instant) -> Vec<(Record, NotDone)> {
    let jobs = messages.into_iter().map(Record::from).map(job).collect();
    let handling = engine.clone();
    let not_done = batch::run(jobs, until, move |record, work| one(handling.clone(), record, work)).await;
    aws::bring_back_soon(engine.ports(), &not_done).await;
    not_done
}

fn job(record: Record) -> Job<Work> {
    let (read, letter) = match Redriven::parse(&record.body) {
        Some(again) => (delivery(&again.body, again.sent), Some(again.letter)),
        None => (delivery(&record.body, record.sent), None),
    };
    let about = match &read {
        Ok(delivery) => About::of(delivery),
        Err(_) => About { kind: "not understood", ..About::default() },
    };
    Job { together: about.together(), record, work: Work { read, about, letter } }
}

async fn one(engine: Arc<Engine<Aws>>, record: Record, work: Work) -> Result<(), NotDone> {
    let Work { read, about, letter } = work;
    let delivery = read.map_err(|error| NotDone::Failed(error.to_string()))?;
    let handling = async {
        let handled = engine.handle(&delivery).await?;
        if let Some(letter) = &letter {
            dead_letter::handled(engine.ports(), letter).await?;
        }
        Ok(handled)
    };
    let handled = aws::accounted(&about, |handled| format!("{handled:?}"), handling);
    match handled.instrument(about.span(&record.id)).await {
        Ok(_) => Ok(()),
        Err(error @ PortError::Retry { .. }) => Err(NotDone::Failed(error.to_string())),
        // No message is lost to a mistake of ours or of the configuration: it comes back, and ends as a dead letter.
        Err(error @ PortError::Refused { .. }) => {
            tracing::error!(message.id = record.id, context = about.context, %error, "a request can never succeed as it is");
            Err(NotDone::Failed(error.to_string()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_lambda_events::event::sqs::SqsMessage;

    fn read(body: &str) -> Job<Work> {
        let mut message = SqsMessage::default();
        message.message_id = Some("m".into());
        message.body = Some(body.into());
        job(Record::from(message))
    }

    #[test]
    fn what_belongs_to_one_context_is_handled_together() {
        let conform = r#"{"keelway":"conform","project":"shop","context":"c-1"}"#;
        let envelope = r#"{"detail-type":"sh.keptn.event.test.started","source":"me","detail":{"specversion":"1.0","id":"1",
            "source":"me","type":"sh.keptn.event.test.started","shkeptncontext":"c-1","data":{"project":"shop"}}}"#;
        let (own, event) = (read(conform), read(envelope));
        assert_eq!((own.work.about.kind, event.work.about.kind), ("conform", "task.started"));
        assert_eq!((own.together.as_deref(), event.together.as_deref()), (Some("shop/c-1"), Some("shop/c-1")));
        let garbage = read("garbage");
        assert_eq!((garbage.work.about.kind, garbage.together), ("invalid", None));
    }

    #[test]
    fn a_dead_letter_is_read_as_the_message_it_was() {
        let conform = r#"{"keelway":"conform","project":"shop","context":"c-1"}"#;
        let again = Redriven { letter: "l".into(), sent: keelway_domain::time::Timestamp(7), body: conform.into() };
        let work = read(&serde_json::to_string(&again).unwrap()).work;
        assert_eq!((work.about.kind, work.letter.as_deref()), ("conform", Some("l")));
        assert_eq!(work.read.unwrap().sent, keelway_domain::time::Timestamp(7));
    }

    #[test]
    fn a_message_of_a_newer_version_is_left_for_it() {
        assert!(read(r#"{"keelway":"promote"}"#).work.read.is_err());
    }
}
