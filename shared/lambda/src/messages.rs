//! An engine behind its queue: each message is one call with one outcome: done, or deliver again. All engines' functions use this.

use crate::batch::{self, Job, NotDone, Record};
use crate::delivery::{About, NotUnderstood, delivery};
use crate::{aws, metrics};
use aws_lambda_events::event::sqs::SqsMessage;
use keelway_aws::Aws;
use keelway_domain::time::Timestamp;
use keelway_engine::ports::{Clock, PortError};
use keelway_engine::protocol::dead_letter::{self, Redriven};
use keelway_engine::protocol::{Delivery, Engine};
use std::sync::Arc;
use tokio::time::Instant;
use tracing::Instrument;

/// A message as read, what it is about, and its dead letter, if it is one that is sent again.
struct Work<M> {
    read: Result<Delivery<M>, NotUnderstood>,
    about: About,
    letter: Option<Redriven>,
}

/// Handles a batch; messages that are not done are delivered again soon. `about` says what a delivery is about.
pub async fn batch<E>(
    engine: &Arc<E>,
    about: fn(&Delivery<E::Message>) -> About,
    messages: Vec<SqsMessage>,
    until: Instant,
) -> Vec<(Record, NotDone)>
where
    E: Engine<Ports = Aws> + 'static,
    E::Message: 'static,
{
    handle(engine, about, messages, until, false).await
}

/// The same in a function that may run for minutes: when it dies, its messages come back after [`batch::HELD`].
pub async fn held_batch<E>(
    engine: &Arc<E>,
    about: fn(&Delivery<E::Message>) -> About,
    messages: Vec<SqsMessage>,
    until: Instant,
) -> Vec<(Record, NotDone)>
where
    E: Engine<Ports = Aws> + 'static,
    E::Message: 'static,
{
    handle(engine, about, messages, until, true).await
}

async fn handle<E>(
    engine: &Arc<E>,
    about: fn(&Delivery<E::Message>) -> About,
    messages: Vec<SqsMessage>,
    until: Instant,
    hold: bool,
) -> Vec<(Record, NotDone)>
where
    E: Engine<Ports = Aws> + 'static,
    E::Message: 'static,
{
    let jobs: Vec<_> = messages.into_iter().map(|message| job(Record::from(message), about)).collect();
    let sent: Vec<Timestamp> = jobs.iter().map(|job| job.record.sent).collect();
    let receipts: Vec<String> = jobs.iter().filter(|_| hold).map(|job| job.record.receipt.clone()).collect();
    let handling = engine.clone();
    let work = batch::run(jobs, until, move |record, work| one(handling.clone(), record, work));
    let not_done = match hold {
        true => batch::held(work, || aws::hide(engine.ports(), E::NAME, &receipts)).await,
        false => work.await,
    };
    metrics::batch(&sent, &not_done, engine.ports().now());
    aws::bring_back_soon(engine.ports(), E::NAME, &not_done).await;
    not_done
}

fn job<M: serde::de::DeserializeOwned>(record: Record, about: fn(&Delivery<M>) -> About) -> Job<Work<M>> {
    let letter = Redriven::parse(&record.body);
    let read = match &letter {
        Some(again) => delivery(&again.body, again.sent, true),
        None => delivery(&record.body, record.sent, record.receives > 1),
    };
    let about = match &read {
        Ok(delivery) => about(delivery),
        Err(_) => About { kind: "not understood", ..About::default() },
    };
    Job { together: about.together(), record, work: Work { read, about, letter } }
}

async fn one<E: Engine<Ports = Aws>>(engine: Arc<E>, record: Record, work: Work<E::Message>) -> Result<(), NotDone> {
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
        Err(error @ PortError::Contended { .. }) => Err(NotDone::Contended(error.to_string())),
        // An error of ours or of the configuration loses no message: it is delivered again, and ends as a dead letter.
        Err(error @ PortError::Refused { .. }) => {
            tracing::error!(message.id = record.id, context = about.context, %error, "a request can never succeed as it is");
            Err(NotDone::Failed(error.to_string()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use keelway_engine::sequences::Message;

    fn read(body: &str) -> Job<Work<Message>> {
        let mut message = SqsMessage::default();
        message.message_id = Some("m".into());
        message.body = Some(body.into());
        job(Record::from(message), |_| About { kind: "read", context: Some("c".into()), ..About::default() })
    }

    #[test]
    fn a_dead_letter_is_read_as_the_message_it_was() {
        let body = r#"{"keelway":"conform","project":"shop","context":"c-1"}"#;
        let again = Redriven { letter: "l".into(), due: String::new(), sent: Timestamp(7), body: body.into() };
        let job = read(&again.to_body());
        assert_eq!((job.work.about.kind, job.work.letter.as_ref()), ("read", Some(&again)));
        assert_eq!(job.work.read.unwrap().sent, Timestamp(7));
        assert_eq!(job.together.as_deref(), Some("/c"));
    }

    #[test]
    fn a_message_of_a_newer_version_is_left_for_it() {
        assert!(read(r#"{"keelway":"promote"}"#).work.read.is_err());
    }
}
