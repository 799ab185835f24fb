//! The engines' queues on SQS, and their timers: delays of SQS up to 15 minutes, one-time schedules beyond.

use crate::error::{port_error, refused};
use crate::knock::Knock;
use crate::{Aws, QueueName, meter};
use aws_sdk_scheduler::operation::create_schedule::CreateScheduleError;
use aws_sdk_scheduler::types::{
    ActionAfterCompletion, DeadLetterConfig, FlexibleTimeWindow, FlexibleTimeWindowMode, ScheduleState, Target,
};
use aws_sdk_sqs::types::{ChangeMessageVisibilityBatchRequestEntry, SendMessageBatchRequestEntry};
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::ports::{Clock, PortError, Queue};
use keelway_engine::sequences;

const SEND: &str = "sqs.SendMessage";
const SEND_BATCH: &str = "sqs.SendMessageBatch";
const CHANGE_VISIBILITY: &str = "sqs.ChangeMessageVisibility";
const CHANGE_VISIBILITIES: &str = "sqs.ChangeMessageVisibilityBatch";
/// The most messages in one request of SQS.
const AT_ONCE: usize = 10;
const CREATE_SCHEDULE: &str = "scheduler.CreateSchedule";
/// The most bodies in one request.
const MAX_BODIES: usize = 10;
/// The largest size of one request's bodies together, and so of one body, in bytes.
const MAX_BYTES: usize = 1024 * 1024;
/// The longest delay of SQS.
const MAX_DELAY: Span = Span::minutes(15);
/// How long before the requested time a schedule fires: Scheduler is up to a minute late and may retry. A delay of SQS covers the
/// rest.
const AHEAD: Span = Span::minutes(10);
/// The shortest time for which a schedule is made. How Scheduler handles a schedule whose time has passed on arrival is not
/// documented.
const SOONEST: Span = Span::minutes(15);
/// The longest name of a schedule, in characters.
const MAX_NAME: usize = 64;

impl Queue for Aws {
    async fn send(&self, engine: &str, bodies: &[String]) -> Result<Vec<Option<String>>, PortError> {
        let queue = self.queue(engine)?;
        let outcomes = match bodies {
            [] => return Ok(Vec::new()),
            [body] => self.send_one(queue, body, 0).await.map(|()| vec![None])?,
            _ => self.send_batch(queue, bodies).await?,
        };
        self.knock_after_sending(engine).await;
        Ok(outcomes)
    }

    async fn send_at(&self, engine: &str, name: &str, body: &str, at: Timestamp) -> Result<(), PortError> {
        let queue = self.queue(engine)?;
        match plan(self.now(), at) {
            Plan::Delay(seconds) => {
                self.send_one(queue, body, seconds).await?;
                match (self.is_knocked(engine), seconds) {
                    (false, _) => {}
                    (true, 0) => self.knock_after_sending(engine).await,
                    // Without this knock, the message would be late: it is sent again.
                    (true, _) => self.knock_in(engine, seconds).await?,
                }
                Ok(())
            }
            // Scheduler sends to one place.
            Plan::Schedule(when) if self.is_knocked(engine) => {
                let knock = Knock { engine: engine.to_owned(), body: Some(body.to_owned()) };
                self.schedule(self.queue(sequences::NAME)?, name, &knock.to_body()?, when).await
            }
            Plan::Schedule(when) => self.schedule(queue, name, body, when).await,
        }
    }
}

impl Aws {
    pub(crate) fn queue(&self, engine: &str) -> Result<&QueueName, PortError> {
        let missing = || refused(SEND, format!("this function knows no queue of an engine {engine:?}"));
        self.inner.names.queues.get(engine).ok_or_else(missing)
    }

    /// Makes a received message visible again after this many seconds, instead of after the queue's visibility timeout.
    pub async fn come_back_in(&self, engine: &str, receipt: &str, seconds: i32) -> Result<(), PortError> {
        let queue = self.queue(engine)?;
        meter::request(CHANGE_VISIBILITY);
        let request = self.inner.sqs.change_message_visibility().queue_url(&queue.url);
        let request = request.receipt_handle(receipt).visibility_timeout(seconds);
        request.send().await.map(|_| ()).map_err(|error| port_error(CHANGE_VISIBILITY, error))
    }

    /// Hides received messages for this many seconds from now on, instead of for the queue's visibility timeout.
    pub async fn hide_for(&self, engine: &str, receipts: &[String], seconds: i32) -> Result<(), PortError> {
        let queue = self.queue(engine)?;
        for some in receipts.chunks(AT_ONCE) {
            let entries = some.iter().enumerate().map(|(i, receipt)| {
                let entry = ChangeMessageVisibilityBatchRequestEntry::builder().id(i.to_string()).receipt_handle(receipt);
                entry.visibility_timeout(seconds).build().map_err(|error| refused(CHANGE_VISIBILITIES, error.to_string()))
            });
            meter::request(CHANGE_VISIBILITIES);
            let request = self.inner.sqs.change_message_visibility_batch().queue_url(&queue.url);
            let request = request.set_entries(Some(entries.collect::<Result<_, _>>()?));
            let answer = request.send().await.map_err(|error| port_error(CHANGE_VISIBILITIES, error))?;
            if let Some(failed) = answer.failed().first() {
                return Err(refused(CHANGE_VISIBILITIES, format!("{}: {}", failed.code(), failed.message().unwrap_or_default())));
            }
        }
        Ok(())
    }

    async fn send_one(&self, queue: &QueueName, body: &str, delay_seconds: i32) -> Result<(), PortError> {
        let id = self.put(queue, body, delay_seconds).await?;
        meter::sent(id.as_deref(), delay_seconds);
        Ok(())
    }

    /// Puts a message into a queue; its id.
    pub(crate) async fn put(&self, queue: &QueueName, body: &str, delay_seconds: i32) -> Result<Option<String>, PortError> {
        check(SEND, [body])?;
        meter::request(SEND);
        let request = self.inner.sqs.send_message().queue_url(&queue.url).message_body(acceptable(body));
        let request = request.set_delay_seconds((delay_seconds > 0).then_some(delay_seconds));
        let answer = request.send().await.map_err(|error| port_error(SEND, error))?;
        Ok(answer.message_id)
    }

    async fn send_batch(&self, queue: &QueueName, bodies: &[String]) -> Result<Vec<Option<String>>, PortError> {
        check(SEND_BATCH, bodies.iter().map(String::as_str))?;
        let entries = bodies.iter().enumerate().map(|(i, body)| {
            let entry = SendMessageBatchRequestEntry::builder().id(i.to_string()).message_body(acceptable(body));
            entry.build().map_err(|error| refused(SEND_BATCH, error.to_string()))
        });
        let entries = entries.collect::<Result<Vec<_>, _>>()?;
        meter::request(SEND_BATCH);
        let request = self.inner.sqs.send_message_batch().queue_url(&queue.url).set_entries(Some(entries));
        let answer = request.send().await.map_err(|error| port_error(SEND_BATCH, error))?;
        // Only entries that the answer lists as sent count as sent.
        let mut outcomes = vec![Some("not answered".to_owned()); bodies.len()];
        let mut set = |id: &str, outcome: Option<String>| {
            if let Some(place) = id.parse::<usize>().ok().and_then(|i| outcomes.get_mut(i)) {
                *place = outcome;
            }
        };
        for sent in answer.successful() {
            meter::sent(Some(sent.message_id()), 0);
            set(sent.id(), None);
        }
        for failed in answer.failed() {
            set(failed.id(), Some(format!("{}: {}", failed.code(), failed.message().unwrap_or("no message"))));
        }
        Ok(outcomes)
    }

    async fn schedule(&self, queue: &QueueName, name: &str, body: &str, when: String) -> Result<(), PortError> {
        check(CREATE_SCHEDULE, [body])?;
        if name.is_empty() || name.len() > MAX_NAME {
            let reason = format!("schedule name {name:?} has {} characters, 1 to {MAX_NAME} are allowed", name.len());
            return Err(refused(CREATE_SCHEDULE, reason));
        }
        let bad = |error: aws_sdk_scheduler::error::BuildError| refused(CREATE_SCHEDULE, error.to_string());
        let names = &self.inner.names;
        let dead_letters = names.scheduler_dead_letters_arn.as_ref().map(|arn| DeadLetterConfig::builder().arn(arn).build());
        let target = Target::builder()
            .arn(&queue.arn)
            .role_arn(&names.scheduler_role_arn)
            .input(acceptable(body))
            .set_dead_letter_config(dead_letters)
            .build()
            .map_err(bad)?;
        let at_once = FlexibleTimeWindow::builder().mode(FlexibleTimeWindowMode::Off).build().map_err(bad)?;
        meter::request(CREATE_SCHEDULE);
        let request = self
            .inner
            .scheduler
            .create_schedule()
            .name(name)
            .group_name(&names.scheduler_group)
            .schedule_expression(when)
            .state(ScheduleState::Enabled)
            .flexible_time_window(at_once)
            .action_after_completion(ActionAfterCompletion::Delete)
            .target(target);
        match request.send().await {
            Ok(_) => Ok(()),
            // The name contains execution and time, so this schedule exists already.
            Err(error) if matches!(error.as_service_error(), Some(CreateScheduleError::ConflictException(_))) => Ok(()),
            Err(error) => Err(port_error(CREATE_SCHEDULE, error)),
        }
    }
}

/// How a message reaches the queue at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Plan {
    /// By a delay of SQS, in seconds from now.
    Delay(i32),
    /// By a schedule with this expression.
    Schedule(String),
}

/// Never late. Early for times 15 to 25 minutes ahead, which are too far for SQS and too near for Scheduler.
fn plan(now: Timestamp, at: Timestamp) -> Plan {
    let fires = at - AHEAD;
    if at - now > MAX_DELAY && fires - now >= SOONEST {
        // `at(2026-11-20T15:04:05)`: whole seconds in UTC, the default.
        let second = fires.rfc3339();
        return Plan::Schedule(format!("at({})", second.split('.').next().unwrap_or(&second)));
    }
    let delay = (at - now).0.clamp(0, MAX_DELAY.0);
    Plan::Delay(i32::try_from((delay + 999) / 1000).unwrap_or(0))
}

fn check<'a>(request: &'static str, bodies: impl IntoIterator<Item = &'a str>) -> Result<(), PortError> {
    let (count, bytes) = bodies.into_iter().fold((0, 0), |(count, bytes), body| (count + 1, bytes + body.len()));
    if count > MAX_BODIES {
        return Err(refused(request, format!("{count} bodies, at most {MAX_BODIES} go into one request")));
    }
    if bytes > MAX_BYTES {
        return Err(refused(request, format!("{bytes} bytes, at most {MAX_BYTES} go into one request")));
    }
    Ok(())
}

/// Escapes two characters that SQS refuses and JSON does not escape. Bodies are JSON, where they can only occur in strings.
fn acceptable(body: &str) -> String {
    body.replace('\u{fffe}', "\\ufffe").replace('\u{ffff}', "\\uffff")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_up_to_15_minutes_and_schedules_beyond_25() {
        let now = Timestamp::parse("2026-11-20T15:00:00.400Z").unwrap();
        let after = |span: Span| plan(now, now + span);
        assert_eq!(plan(now, now - Span::minutes(1)), Plan::Delay(0));
        assert_eq!(after(Span(1)), Plan::Delay(1));
        assert_eq!(after(Span::seconds(600)), Plan::Delay(600));
        assert_eq!(after(Span(899_001)), Plan::Delay(900));
        assert_eq!(after(Span::minutes(16)), Plan::Delay(900));
        assert_eq!(after(Span(25 * 60_000 - 1)), Plan::Delay(900));
        assert_eq!(after(Span::minutes(25)), Plan::Schedule("at(2026-11-20T15:15:00)".into()));
        assert_eq!(after(Span::minutes(24 * 60)), Plan::Schedule("at(2026-11-21T14:50:00)".into()));
    }

    #[test]
    fn characters_the_queue_refuses_are_escaped() {
        assert_eq!(acceptable("{\"comment\":\"a\u{ffff}b\u{fffe}\"}"), r#"{"comment":"a\uffffb\ufffe"}"#);
    }
}
