//! The configured ports, and the log line about a message with its cost.

use crate::batch::{HELD, NotDone, Record};
use crate::config::{Config, DEAD_LETTERS, TableConfig};
use crate::drain::Polled;
use crate::incoming::About;
use keelway_aws::meter::Meter;
use keelway_aws::{Aws, Names, QueueName};
use keelway_engine::ports::PortError;
use std::future::Future;
use std::time::{Duration, Instant};

/// The ports of a function, by its configuration.
pub fn connect(config: &Config) -> Aws {
    let engines =
        config.queues.iter().map(|(engine, (url, arn))| (engine.clone(), QueueName { url: url.clone(), arn: arn.clone() }));
    let names = Names {
        table: config.table.clone(),
        bus: config.bus.clone(),
        queues: engines.chain(dead_letters(config.dead_letters_url.as_deref())).collect(),
        scheduler_group: config.scheduler_group.clone(),
        scheduler_role_arn: config.scheduler_role_arn.clone(),
        scheduler_dead_letters_arn: config.scheduler_dead_letters_arn.clone(),
        secrets: config.secrets.clone(),
        knocks: config.knocks,
    };
    Aws::connect(names)
}

/// The table and the queue of dead letters, for a function that only stores. The other ports have no names, and AWS refuses
/// requests to them.
pub fn connect_table(config: &TableConfig) -> Aws {
    let queues = dead_letters(config.dead_letters_url.as_deref()).into_iter().collect();
    Aws::connect(Names { table: config.table.clone(), queues, ..Names::default() })
}

fn dead_letters(url: Option<&str>) -> Option<(String, QueueName)> {
    url.map(|url| (DEAD_LETTERS.to_owned(), QueueName { url: url.to_owned(), arn: String::new() }))
}

/// Makes failed messages visible again soon, instead of after the queue's visibility timeout. If that fails, the timeout applies.
pub async fn bring_back_soon(aws: &Aws, engine: &str, not_done: &[(Record, NotDone)]) {
    for (record, why) in not_done {
        let seconds = record.comes_back_in(why);
        if let Err(error) = aws.come_back_in(engine, &record.receipt, seconds).await {
            tracing::warn!(message.id = record.id, %error, "a message that failed comes back only after the visibility timeout");
        }
    }
}

/// A queue with the requests of a drain.
#[derive(Debug)]
pub struct OwnQueue<'a> {
    aws: &'a Aws,
    name: &'a str,
    hidden: Option<i32>,
}

impl<'a> OwnQueue<'a> {
    /// The queue of this name. `holds`: what is received is hidden for as long as a function [holds](crate::batch::held) it, and
    /// not for the queue's timeout.
    pub fn new(aws: &'a Aws, name: &'a str, holds: bool) -> Self {
        Self { aws, name, hidden: holds.then(held_seconds) }
    }
}

impl Polled for OwnQueue<'_> {
    async fn receive(&self, most: usize, wait: Duration) -> Result<Vec<Record>, PortError> {
        let (most, wait) = (i32::try_from(most).unwrap_or(1), i32::try_from(wait.as_secs()).unwrap_or(0));
        Ok(self.aws.receive(self.name, most, wait, self.hidden).await?.into_iter().map(Record::from).collect())
    }
    async fn delete(&self, receipts: &[String]) -> Result<(), PortError> {
        self.aws.delete(self.name, receipts).await
    }
    async fn come_back_in(&self, receipt: &str, seconds: i32) -> Result<(), PortError> {
        self.aws.come_back_in(self.name, receipt, seconds).await
    }
    async fn knock(&self) -> Result<(), PortError> {
        self.aws.knock(self.name).await
    }
    async fn knock_in(&self, seconds: i32) -> Result<(), PortError> {
        self.aws.knock_in(self.name, seconds).await
    }
}

fn held_seconds() -> i32 {
    i32::try_from(HELD.as_secs()).unwrap_or(i32::MAX)
}

/// Hides messages for as long as a function [holds](crate::batch::held) them. If that fails, the last timeout applies: that of the
/// queue, or the one that was set before.
pub async fn hide(aws: &Aws, engine: &str, receipts: &[String]) {
    if let Err(error) = aws.hide_for(engine, receipts, held_seconds()).await {
        tracing::warn!(engine, %error, "if the function dies now, its messages come back only after the visibility timeout");
    }
}

/// Does the work and logs one line about it: kind, outcome, duration and AWS requests. The line is also logged if the work panics
/// or is dropped.
pub async fn accounted<T, E: std::fmt::Display>(
    about: &About,
    outcome: impl Fn(&T) -> String,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    accounted_as(about, |done| (outcome(done), None), work).await
}

/// The same for work that tells only at its end which input it has handled: the input's id, and what it is about.
pub async fn accounted_as<T, E: std::fmt::Display>(
    about: &About,
    told: impl Fn(&T) -> (String, Option<(String, About)>),
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let (meter, outcome) = (Meter::default(), "interrupted".into());
    let mut line = Line { about: about.clone(), meter, started: Instant::now(), outcome, span: None };
    let meter = line.meter.clone();
    let result = meter.around(work).await;
    match &result {
        Ok(done) => {
            let (outcome, input) = told(done);
            line.outcome = outcome;
            if let Some((id, about)) = input {
                line.span = Some(about.span(&id));
                line.about = about;
            }
        }
        Err(error) => line.outcome = format!("not done: {error}"),
    }
    result
}

struct Line {
    about: About,
    meter: Meter,
    started: Instant,
    outcome: String,
    span: Option<tracing::Span>,
}

impl Drop for Line {
    fn drop(&mut self) {
        let _within = self.span.as_ref().map(tracing::Span::enter);
        let usage = self.meter.usage();
        let duration_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let requests = serde_json::to_string(&usage.requests).unwrap_or_default();
        let sent = serde_json::to_string(&usage.sent).unwrap_or_default();
        tracing::info!(
            message.kind = self.about.kind,
            context = self.about.context,
            outcome = self.outcome,
            duration_ms,
            aws.requests = usage.total_requests(),
            dynamodb.write_units = usage.write_units,
            dynamodb.read_units = usage.read_units,
            events.published = usage.events,
            requests,
            sent,
            "handled"
        );
    }
}
