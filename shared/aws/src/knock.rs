//! Knocks: they start the function of an engine whose queue nobody polls, so that it looks there.
//!
//! A knock has no content and decides nothing. The messages are in the queue; a knock too many finds none, and the sweep makes up
//! for one that is lost.

use crate::aliases::failed;
use crate::error::{port_error, refused, retry};
use crate::signed::{Ask, Signed};
use crate::{Aws, Received, meter};
use aws_sdk_sqs::types::{DeleteMessageBatchRequestEntry, MessageSystemAttributeName};
use keelway_engine::ports::{PortError, Queue};
use keelway_engine::sequences;
use serde::{Deserialize, Serialize};
use std::time::Duration;

const INVOKE: &str = "lambda.Invoke";
const RECEIVE: &str = "sqs.ReceiveMessage";
const DELETE: &str = "sqs.DeleteMessageBatch";
/// The timeout of a knock, which Lambda answers before it runs the function.
const PATIENCE: Duration = Duration::from_secs(2);
/// What a knocked function gets.
const CONTENT: &str = r#"{"keelway":"knock"}"#;

/// A knock as a message: whoever gets it passes it on. Only the queue of the sequences engine is always polled, so knocks that have
/// to wait for their time do so there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "keelway", rename = "knock")]
pub struct Knock {
    /// The engine.
    pub engine: String,
    /// A message to put into the engine's queue first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}

impl Knock {
    /// Reads a body; `None` if it is any other message.
    pub fn parse(body: &str) -> Option<Self> {
        let ours = body.starts_with(r#"{"keelway":"knock""#);
        ours.then(|| serde_json::from_str(body).ok()).flatten()
    }

    /// The body that goes into the queue.
    pub(crate) fn to_body(&self) -> Result<String, PortError> {
        serde_json::to_string(self).map_err(|error| refused(INVOKE, error.to_string()))
    }
}

impl Signed {
    async fn start_function(&self, name: &str) -> Result<(), PortError> {
        let ask = Ask {
            name: INVOKE,
            service: "lambda",
            region: None,
            method: "POST",
            path: format!("/2015-03-31/functions/{name}/invocations"),
            // Lambda answers at once, and runs the function again if it fails: after one minute, and after two more.
            headers: &[("content-type", "application/json"), ("x-amz-invocation-type", "Event")],
            body: CONTENT.into(),
            patience: PATIENCE,
        };
        let answered = self.ask(&ask).await?;
        if (200..300).contains(&answered.status) { Ok(()) } else { Err(failed(INVOKE, &answered)) }
    }
}

impl Aws {
    /// Whether nobody polls the queue of this engine.
    pub fn is_knocked(&self, engine: &str) -> bool {
        self.inner.names.knocks && engine != sequences::NAME
    }

    /// Starts the function of an engine.
    ///
    /// # Errors
    /// Lambda does not take it.
    pub async fn knock(&self, engine: &str) -> Result<(), PortError> {
        // The bus has the stack's name, and each function's name begins with it.
        self.inner.signed.start_function(&format!("{}-{engine}", self.inner.names.bus)).await
    }

    /// After a message was sent: a failure is no failure of the message, which stays in its queue.
    pub(crate) async fn knock_after_sending(&self, engine: &str) {
        if !self.is_knocked(engine) {
            return;
        }
        let Err(error) = self.knock(engine).await else { return };
        tracing::warn!(engine, %error, "the function was not started; a message of the sequences engine's queue does it");
        if let Err(error) = self.knock_in(engine, 1).await {
            tracing::warn!(engine, %error, "the function is started by the sweep");
        }
    }

    /// Starts the function of an engine after this many seconds.
    ///
    /// # Errors
    /// The queue of the sequences engine does not take the message.
    pub async fn knock_in(&self, engine: &str, seconds: i32) -> Result<(), PortError> {
        let body = Knock { engine: engine.to_owned(), body: None }.to_body()?;
        // What follows from a message is the message that waits in the engine's queue, not this one.
        self.put(self.queue(sequences::NAME)?, &body, seconds).await.map(drop)
    }

    /// Does what a knock says that came as a message.
    ///
    /// # Errors
    /// The queue does not take the message of the knock, or Lambda does not take the knock.
    pub async fn pass_on(&self, knock: &Knock) -> Result<(), PortError> {
        match &knock.body {
            Some(body) => {
                let outcomes = self.send(&knock.engine, std::slice::from_ref(body)).await?;
                outcomes.into_iter().flatten().next().map_or(Ok(()), |reason| Err(retry("sqs.SendMessage", reason)))
            }
            None => self.knock(&knock.engine).await,
        }
    }

    /// Receives messages, `most` of them at most, and hides them for `hidden` seconds, or for the queue's visibility timeout. Waits
    /// for up to `wait` seconds while there are none.
    ///
    /// # Errors
    /// The queue does not answer.
    pub async fn receive(&self, queue: &str, most: i32, wait: i32, hidden: Option<i32>) -> Result<Vec<Received>, PortError> {
        let queue = self.queue(queue)?;
        meter::request(RECEIVE);
        let request = self.inner.sqs.receive_message().queue_url(&queue.url).max_number_of_messages(most).wait_time_seconds(wait);
        let request =
            request.set_visibility_timeout(hidden).message_attribute_names("All").set_message_system_attribute_names(Some(vec![
                MessageSystemAttributeName::SentTimestamp,
                MessageSystemAttributeName::ApproximateReceiveCount,
                MessageSystemAttributeName::DeadLetterQueueSourceArn,
            ]));
        let answer = request.send().await.map_err(|error| port_error(RECEIVE, error))?;
        let received = answer.messages.unwrap_or_default().into_iter().map(|message| Received {
            id: message.message_id.unwrap_or_default(),
            receipt: message.receipt_handle.unwrap_or_default(),
            body: message.body.unwrap_or_default(),
            attributes: (message.attributes.unwrap_or_default().into_iter())
                .map(|(name, value)| (name.as_str().to_owned(), value))
                .collect(),
            texts: (message.message_attributes.unwrap_or_default().into_iter())
                .filter_map(|(name, value)| Some((name, value.string_value?)))
                .collect(),
            queue: queue.url.rsplit('/').next().unwrap_or_default().to_owned(),
        });
        Ok(received.collect())
    }

    /// Deletes received messages, ten at most.
    ///
    /// # Errors
    /// The queue keeps one of them, which it delivers again.
    pub async fn delete(&self, queue: &str, receipts: &[String]) -> Result<(), PortError> {
        let queue = self.queue(queue)?;
        let entries = receipts.iter().enumerate().map(|(i, receipt)| {
            let entry = DeleteMessageBatchRequestEntry::builder().id(i.to_string()).receipt_handle(receipt).build();
            entry.map_err(|error| refused(DELETE, error.to_string()))
        });
        let entries = entries.collect::<Result<Vec<_>, _>>()?;
        if entries.is_empty() {
            return Ok(());
        }
        meter::request(DELETE);
        let request = self.inner.sqs.delete_message_batch().queue_url(&queue.url).set_entries(Some(entries));
        let answer = request.send().await.map_err(|error| port_error(DELETE, error))?;
        match answer.failed().first() {
            None => Ok(()),
            Some(failed) => {
                let reason = format!("{}: {}", failed.code(), failed.message().unwrap_or_default());
                Err(retry(DELETE, reason))
            }
        }
    }
}
