//! An inbox on its queue: each message is one call with one outcome, done or deliver again. All functions on engines' queues use
//! this.

use crate::batch::{self, Job, NotDone, Record};
use crate::drain::drain;
use crate::incoming::{About, NotUnderstood, incoming};
use crate::{aws, metrics};
use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent};
use keelway_aws::Aws;
use keelway_aws::knock::Knock;
use keelway_domain::time::Timestamp;
use keelway_engine::ports::{Clock, PortError};
use keelway_engine::protocol::dead_letter::{self, Redriven};
use keelway_engine::protocol::{Inbox, Incoming};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::Value;
use std::sync::Arc;
use tracing::Instrument;

/// A parsed message, its subject, and its dead letter, if it is one that is sent again.
struct Work<M> {
    content: Result<Content<M>, NotUnderstood>,
    about: About,
    letter: Option<Redriven>,
}

enum Content<M> {
    /// For the inbox.
    Incoming(Incoming<M>),
    /// To be passed on to the function that it names.
    Knock(Knock),
}

/// The function of an inbox.
pub struct Consumer<I: Inbox> {
    inbox: Arc<I>,
    reader: Reader<I::Message>,
    max_receives: u32,
    holds: bool,
    most: usize,
}

/// The most messages in a batch, unless a function takes fewer.
const MOST: usize = 10;

/// Reads a message from its body, when it was sent, and whether it was delivered before, as [`incoming`] does.
pub type Read<M> = fn(&str, Timestamp, bool) -> Result<Incoming<M>, NotUnderstood>;

/// How messages are read, and what each is about.
struct Reader<M> {
    read: Read<M>,
    about: fn(&Incoming<M>) -> About,
}

impl<I> Consumer<I>
where
    I: Inbox<Ports = Aws> + 'static,
    I::Message: 'static,
{
    /// `about` finds the subject of a delivery. After `max_receives` deliveries, the queue moves a message to the dead letters.
    pub fn new(inbox: I, about: fn(&Incoming<I::Message>) -> About, max_receives: u32) -> Self {
        Self { inbox: Arc::new(inbox), reader: Reader { read: incoming, about }, max_receives, holds: false, most: MOST }
    }

    /// For a queue that also has what [`incoming`] does not read.
    #[must_use]
    pub fn reading(mut self, read: Read<I::Message>) -> Self {
        self.reader.read = read;
        self
    }

    /// For a function that may run for minutes: if it dies, its messages come back after [`batch::HELD`].
    #[must_use]
    pub fn holding(self) -> Self {
        Self { holds: true, ..self }
    }

    /// For a function that handles fewer messages at once.
    #[must_use]
    pub fn taking(self, most: usize) -> Self {
        Self { most, ..self }
    }

    /// The inbox that handles the messages.
    pub fn inbox(&self) -> &I {
        &self.inbox
    }

    /// Handles all batches of a function whose queue is polled.
    ///
    /// # Errors
    /// The Lambda runtime fails.
    pub async fn run(self) -> Result<(), Error> {
        let consumer = &self;
        lambda_runtime::run(service_fn(|event: LambdaEvent<SqsEvent>| async move {
            Ok::<_, Error>(consumer.batch(event.payload, event.context.deadline).await)
        }))
        .await
    }

    /// Handles everything that a function gets which others knock at: batches, while its queue is polled as well, and knocks.
    ///
    /// # Errors
    /// The Lambda runtime fails.
    pub async fn run_knocked(self) -> Result<(), Error> {
        let consumer = &self;
        lambda_runtime::run(service_fn(|event: LambdaEvent<Value>| async move {
            consumer.invoked(event.payload, event.context.deadline).await
        }))
        .await
    }

    /// Handles a batch of the queue's pollers, and any other event as a knock, until shortly before the deadline of the invocation,
    /// in milliseconds since 1970.
    ///
    /// # Errors
    /// The batch cannot be read, or the queue does not answer. Lambda repeats the invocation.
    pub async fn invoked(&self, event: Value, deadline: u64) -> Result<Value, Error> {
        if event.get("Records").is_some() {
            return Ok(serde_json::to_value(self.batch(serde_json::from_value(event)?, deadline).await)?);
        }
        let queue = aws::OwnQueue::new(self.inbox.ports(), I::NAME, self.holds);
        drain(&queue, self.most, |records| Box::pin(self.handled(records, deadline))).await?;
        Ok(Value::Null)
    }

    /// Handles a batch. Messages that are not done are delivered again soon.
    pub async fn batch(&self, event: SqsEvent, deadline: u64) -> SqsBatchResponse {
        let records = event.records.into_iter().map(Record::from).collect();
        let not_done = Box::pin(self.handled(records, deadline)).await;
        aws::bring_back_soon(self.inbox.ports(), I::NAME, &not_done).await;
        batch::answer(&not_done)
    }

    /// Handles messages, and returns those that are not done.
    async fn handled(&self, records: Vec<Record>, deadline: u64) -> Vec<(Record, NotDone)> {
        let jobs: Vec<_> = records.into_iter().map(|record| job(record, &self.reader)).collect();
        let sent: Vec<Timestamp> = jobs.iter().map(|job| job.record.sent).collect();
        let receipts: Vec<String> = jobs.iter().map(|job| job.record.receipt.clone()).collect();
        let (inbox, ports) = (self.inbox.clone(), self.inbox.ports());
        let work = batch::run(jobs, batch::until(deadline), move |record, work| one(inbox.clone(), record, work));
        let not_done = match self.holds {
            true => batch::held(work, || aws::hide(ports, I::NAME, &receipts)).await,
            false => work.await,
        };
        metrics::batch(&sent, &not_done, ports.now());
        batch::tell(&not_done, self.max_receives);
        not_done
    }
}

fn job<M>(record: Record, reader: &Reader<M>) -> Job<Work<M>> {
    let letter = Redriven::parse(&record.body);
    let (body, sent, again) = match &letter {
        Some(again) => (&again.body, again.sent, true),
        None => (&record.body, record.sent, record.receives > 1),
    };
    let content = match Knock::parse(body) {
        Some(knock) => Ok(Content::Knock(knock)),
        None => (reader.read)(body, sent, again).map(Content::Incoming),
    };
    let about = match &content {
        Ok(Content::Incoming(incoming)) => (reader.about)(incoming),
        Ok(Content::Knock(_)) => About { kind: "knock", ..About::default() },
        Err(_) => About { kind: "not understood", ..About::default() },
    };
    Job { together: about.together(), record, work: Work { content, about, letter } }
}

async fn one<I: Inbox<Ports = Aws>>(inbox: Arc<I>, record: Record, work: Work<I::Message>) -> Result<(), NotDone> {
    let Work { content, about, letter } = work;
    let content = content.map_err(|error| NotDone::Failed(error.to_string()))?;
    let handling = async {
        let outcome = match &content {
            Content::Incoming(incoming) => format!("{:?}", inbox.handle(incoming).await?),
            Content::Knock(knock) => inbox.ports().pass_on(knock).await.map(|()| format!("Knocked at {}", knock.engine))?,
        };
        if let Some(letter) = &letter {
            dead_letter::handled(inbox.ports(), letter).await?;
        }
        Ok(outcome)
    };
    let handled = aws::accounted(&about, String::clone, handling);
    match handled.instrument(about.span(&record.id)).await {
        Ok(_) => Ok(()),
        Err(error @ PortError::Retry { .. }) => Err(NotDone::Failed(error.to_string())),
        Err(error @ PortError::Contended { .. }) => Err(NotDone::Contended(error.to_string())),
        // An error in Keelway or in the configuration loses no message: it is delivered again, and becomes a dead letter.
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
    use keelway_engine::sequences::Message;

    fn read(body: &str) -> Job<Work<Message>> {
        let mut message = SqsMessage::default();
        message.message_id = Some("m".into());
        message.body = Some(body.into());
        let about = |_: &Incoming<Message>| About { kind: "read", context: Some("c".into()), ..About::default() };
        job(Record::from(message), &Reader { read: incoming, about })
    }

    #[test]
    fn a_dead_letter_is_read_as_the_message_it_was() {
        let body = r#"{"keelway":"conform","project":"shop","context":"c-1"}"#;
        let again = Redriven { letter: "l".into(), due: String::new(), sent: Timestamp(7), body: body.into() };
        let job = read(&again.to_body());
        assert_eq!((job.work.about.kind, job.work.letter.as_ref()), ("read", Some(&again)));
        let Ok(Content::Incoming(incoming)) = job.work.content else { panic!("it is not read") };
        assert_eq!(incoming.sent, Timestamp(7));
        assert_eq!(job.together.as_deref(), Some("/c"));
    }

    #[test]
    fn a_message_of_a_newer_version_is_left_for_it() {
        assert!(read(r#"{"keelway":"promote"}"#).work.content.is_err());
    }

    #[test]
    fn a_knock_is_passed_on_also_when_it_is_sent_again() {
        let knock = Knock { engine: "webhooks".into(), body: None };
        let body = r#"{"keelway":"knock","engine":"webhooks"}"#;
        let again = Redriven { letter: "l".into(), due: String::new(), sent: Timestamp(7), body: body.into() };
        for body in [body.to_owned(), again.to_body()] {
            let job = read(&body);
            assert!(matches!(&job.work.content, Ok(Content::Knock(read)) if *read == knock), "{body}");
            assert_eq!((job.work.about.kind, job.together), ("knock", None));
        }
    }
}
