//! One message, one call of the engine, one outcome: done, or come back.

use aws_lambda_events::event::sqs::SqsMessage;
use keelway_aws::Aws;
use keelway_engine::message::Delivery;
use keelway_engine::ports::PortError;
use keelway_engine::sequences::Engine;
use keelway_lambda::batch::{Job, NotDone, Record};
use keelway_lambda::delivery::{About, NotUnderstood, delivery};
use keelway_lambda::{aws, batch};
use std::sync::Arc;
use tokio::time::Instant;
use tracing::Instrument;

type Read = Result<Delivery, NotUnderstood>;

/// Handles a batch; what is not done comes back, soon.
pub async fn batch(engine: &Arc<Engine<Aws>>, messages: Vec<SqsMessage>, until: Instant) -> Vec<(Record, NotDone)> {
    let jobs = messages.into_iter().map(Record::from).map(job).collect();
    let handling = engine.clone();
    let not_done = batch::run(jobs, until, move |record, (read, about)| one(handling.clone(), record, read, about)).await;
    aws::bring_back_soon(engine.ports(), &not_done).await;
    not_done
}

fn job(record: Record) -> Job<(Read, About)> {
    let read = delivery(&record.body, record.sent);
    let about = match &read {
        Ok(delivery) => About::of(delivery),
        Err(_) => About { kind: "not understood", ..About::default() },
    };
    Job { together: about.together(), record, work: (read, about) }
}

async fn one(engine: Arc<Engine<Aws>>, record: Record, read: Read, about: About) -> Result<(), NotDone> {
    let delivery = read.map_err(|error| NotDone::Failed(error.to_string()))?;
    let handled = aws::accounted(&about, |handled| format!("{handled:?}"), engine.handle(&delivery));
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
