//! One trigger, from `.started` to `.finished`.

use super::answer::{self, Run};
use super::command::{self, Job};
use super::{Phase, Worker};
use crate::api_error::ApiError;
use crate::commands::now;
use crate::output::{one_line, say};
use keelway_domain::event::{CloudEvent, Kind};
use keelway_domain::time::Timestamp;
use keelway_wire::http::{Accepted, EventPage};
use serde_json::Value;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// The pauses between attempts: doubling from the first to the last, for as long as the API does not answer.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));
/// Beyond the command's time limit, before another replica's work counts as lost.
const MARGIN: Duration = Duration::from_secs(60);
/// The answers of one name in one context do not fill more pages than this.
const PAGES: usize = 100;

/// What became of a trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Answered, by this process or another of its name, or given up: not to be touched again.
    Done,
    /// Another replica of this name is at it; look again then.
    Later(Instant),
    /// Told to stop before it was answered.
    Dropped,
}

/// A trigger this executor takes.
#[derive(Debug, Clone)]
pub struct Taken {
    /// The task.
    pub task: String,
    /// Its trigger.
    pub trigger: CloudEvent,
    /// Whether it was open already when this process began: work begun under this name is then taken over, not left alone.
    pub inherited: bool,
}

/// What this name told about a trigger before.
struct Told {
    started: Option<Timestamp>,
    finished: bool,
}

/// Answers one trigger.
pub async fn answer(worker: &Worker, taken: &Taken, mut phase: watch::Receiver<Phase>) -> Outcome {
    let told = match told(worker, taken, &mut phase).await {
        Ok(told) => told,
        Err(outcome) => return outcome,
    };
    if told.finished {
        line(taken, "answered already");
        return Outcome::Done;
    }
    if let Some(started) = told.started.filter(|_| !taken.inherited) {
        let age = Duration::from_millis(u64::try_from((now() - started).0).unwrap_or(0));
        let patience = worker.limit + MARGIN;
        if age < patience {
            line(taken, "is being answered by another process of this name");
            return Outcome::Later(Instant::now() + (patience - age));
        }
    }
    let attempt = if told.started.is_some() { 2 } else { 1 };
    if told.started.is_none() {
        let event = answer::started(&worker.name, &taken.task, &taken.trigger, now());
        match deliver(worker, taken, &event, &mut phase, Phase::Finish).await {
            Delivered::Yes => line(taken, "started"),
            Delivered::Refused(error) => {
                line(taken, &format!("given up, its start was refused: {error}"));
                return Outcome::Done;
            }
            Delivered::Stopped => return Outcome::Dropped,
        }
    } else {
        line(taken, "started again: an earlier run did not answer");
    }
    let began = Instant::now();
    let Some(run) = command::run(job(worker, taken, attempt), phase.clone()).await else {
        line(taken, "killed without an answer: it is run again when an executor of this name starts");
        return Outcome::Dropped;
    };
    finish(worker, taken, &run, began.elapsed(), &mut phase).await
}

async fn finish(worker: &Worker, taken: &Taken, run: &Run, took: Duration, phase: &mut watch::Receiver<Phase>) -> Outcome {
    let event = answer::finished(&worker.name, &taken.task, &taken.trigger, now(), run);
    let refusal = match deliver(worker, taken, &event, phase, Phase::Drop).await {
        Delivered::Yes => {
            line(taken, &summary(&event, took));
            return Outcome::Done;
        }
        Delivered::Stopped => return Outcome::Dropped,
        Delivered::Refused(error) if error.status() == Some(409) => {
            line(taken, "answered otherwise by another run of this name, which came first and counts");
            return Outcome::Done;
        }
        Delivered::Refused(error) => error,
    };
    line(taken, &format!("its answer was refused: {refusal}"));
    if matches!(refusal.status(), Some(400 | 413 | 422)) {
        let event = answer::unanswerable(&worker.name, &taken.task, &taken.trigger, now(), &refusal.to_string());
        match deliver(worker, taken, &event, phase, Phase::Drop).await {
            Delivered::Yes => line(taken, &summary(&event, took)),
            Delivered::Refused(error) => line(taken, &format!("given up, that was refused, too: {error}")),
            Delivered::Stopped => return Outcome::Dropped,
        }
    }
    Outcome::Done
}

fn job<'a>(worker: &'a Worker, taken: &Taken, attempt: u32) -> Job<'a> {
    let trigger = &taken.trigger;
    let text = |field: &str| trigger.text(field).unwrap_or_default().to_owned();
    let image = trigger.data.get("configurationChange").and_then(|change| change.pointer("/values/image"));
    let variables = vec![
        ("KEELWAY_PROJECT", text("project")),
        ("KEELWAY_STAGE", text("stage")),
        ("KEELWAY_SERVICE", text("service")),
        ("KEELWAY_TASK", taken.task.clone()),
        ("KEELWAY_CONTEXT", trigger.context.to_string()),
        ("KEELWAY_TRIGGER_ID", trigger.id.clone()),
        ("KEELWAY_IMAGE", image.and_then(Value::as_str).unwrap_or_default().to_owned()),
        ("KEELWAY_ATTEMPT", attempt.to_string()),
        ("KEELWAY_NAME", worker.name.clone()),
    ];
    Job { command: &worker.command, variables, input: trigger.to_bytes(), limit: worker.limit, echo: worker.echo }
}

/// Whether this name told about the trigger before: an earlier run that crashed, or a replica.
async fn told(worker: &Worker, taken: &Taken, phase: &mut watch::Receiver<Phase>) -> Result<Told, Outcome> {
    let ids = [Kind::Started, Kind::Finished].map(|kind| answer::id(&worker.name, &taken.trigger, kind));
    let (mut told, mut key) = (Told { started: None, finished: false }, String::new());
    let mut pauses = Pauses::new();
    let mut pages = 0;
    while pages < PAGES {
        let query = [
            ("keptnContext", taken.trigger.context.as_str()),
            ("source", &worker.name),
            ("pageSize", "100"),
            ("nextPageKey", &key),
        ];
        let page: EventPage = match worker.api.get(&["event"], &query).await {
            Ok(page) => page,
            Err(error) if error.is_transient() => {
                line(taken, &format!("not begun yet: {error}"));
                if pauses.wait(phase, Phase::Finish).await { continue } else { return Err(Outcome::Dropped) }
            }
            // Without history nothing was told; what is wrong with the request shows when the start is sent.
            Err(_) => return Ok(told),
        };
        for event in &page.events {
            if event["id"] == ids[0].as_str() {
                let time = event["time"].as_str().and_then(Timestamp::parse);
                told.started = Some(time.unwrap_or_else(now));
            }
            told.finished |= event["id"] == ids[1].as_str();
        }
        if page.next_page_key.is_empty() || page.next_page_key == "0" {
            break;
        }
        key = page.next_page_key;
        pages += 1;
    }
    Ok(told)
}

enum Delivered {
    Yes,
    Refused(ApiError),
    Stopped,
}

/// Sends an event, again and again while the API does not answer, until `stop` is reached.
async fn deliver(worker: &Worker, taken: &Taken, event: &Value, phase: &mut watch::Receiver<Phase>, stop: Phase) -> Delivered {
    let mut pauses = Pauses::new();
    loop {
        if *phase.borrow() >= stop {
            return Delivered::Stopped;
        }
        match worker.api.post::<Accepted>(&["event"], event).await {
            Ok(_) => return Delivered::Yes,
            Err(error) if error.is_transient() => {
                line(taken, &format!("{} is not sent yet: {error}", event["type"].as_str().unwrap_or_default()));
                if !pauses.wait(phase, stop).await {
                    return Delivered::Stopped;
                }
            }
            Err(error) => return Delivered::Refused(error),
        }
    }
}

/// Pauses that grow.
pub struct Pauses {
    next: Duration,
}

impl Pauses {
    /// From the first.
    pub fn new() -> Self {
        Self { next: PAUSES.0 }
    }

    /// Waits; whether `stop` was not reached meanwhile.
    pub async fn wait(&mut self, phase: &mut watch::Receiver<Phase>, stop: Phase) -> bool {
        let pause = super::jittered(self.next);
        self.next = (self.next * 2).min(PAUSES.1);
        tokio::time::timeout(pause, phase.wait_for(|phase| *phase >= stop)).await.is_err()
    }
}

fn summary(event: &Value, took: Duration) -> String {
    let text = |field: &str| event["data"][field].as_str().unwrap_or_default();
    let outcome = crate::timeline::outcome(text("result"), text("status"));
    let took = crate::words::span(i64::try_from(took.as_millis()).unwrap_or(i64::MAX));
    let message = one_line(text("message"), 200);
    let message = if message.is_empty() { message } else { format!(": {message}") };
    format!("finished {outcome} in {took}{message}")
}

/// One line per change of state: when, what task, for what, what happened.
pub fn line(taken: &Taken, what: &str) {
    let trigger = &taken.trigger;
    let text = |field: &str| trigger.text(field).unwrap_or("-");
    let (stage, service, context) = (text("stage"), text("service"), &trigger.context);
    let line = format!("{} {} {stage}/{service} {context} {what}", now().rfc3339(), taken.task);
    // An executor works on when nobody reads its log.
    say(&one_line(&line, 2000)).ok();
}
