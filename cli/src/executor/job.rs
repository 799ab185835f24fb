//! One trigger, from `.started` to `.finished`.

use super::answer::{self, Alive, Run};
use super::command::{self, Job, Stopped};
use super::places::Turn;
use super::{Phase, Worker, jittered};
use crate::api_error::ApiError;
use crate::clock::now;
use crate::output::{one_line, say};
use crate::pages::Pages;
use keelway_domain::event::{CloudEvent, Kind};
use keelway_domain::time::Timestamp;
use keelway_wire::http::{Accepted, EventPage};
use serde_json::Value;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, watch};
use tokio::time::sleep;

/// The pauses between attempts: doubling from the first to the last, for as long as the API does not answer.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));
/// Beyond the command's time limit, before another replica's work counts as lost.
const MARGIN: Duration = Duration::from_secs(60);
/// The answers of one name in one context do not fill more pages than this.
const PAGES: usize = 100;

/// From the look that misses a trigger to the one that confirms it.
const SECOND_LOOK: Duration = Duration::from_millis(500);

/// What `.status.changed` says.
const WAITS: &str = "waits for a free place";
const RUNS: &str = "runs";

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
    /// Told when a list of open triggers does not have it any more.
    pub missed: Arc<Notify>,
}

/// What this name told about a trigger before.
#[derive(Default)]
struct Told {
    /// When it last said anything: that it started, waits or runs.
    last: Option<Timestamp>,
    /// Whether it answered.
    finished: bool,
    /// When it last said that the command runs.
    runs: Option<Timestamp>,
}

/// Answers one trigger: claims it, waits for its turn, runs the command.
pub async fn answer(worker: &Worker, taken: &Taken, mut turn: Turn, mut phase: watch::Receiver<Phase>) -> Outcome {
    // Another replica may have a free place.
    tokio::select! {
        () = turn.come() => (),
        () = sleep(jittered(worker.claim_after)) => (),
        () = reached(&mut phase, Phase::Finish) => return Outcome::Dropped,
    }
    let began = now();
    let told = match told(worker, taken, &mut phase).await {
        Ok(told) => told,
        Err(outcome) => return outcome,
    };
    if told.finished {
        line(taken, "answered already");
        return Outcome::Done;
    }
    if let Some(later) = told.last.filter(|_| !taken.inherited).and_then(|last| elsewhere(worker, taken, last)) {
        return later;
    }
    let attempt = if told.last.is_some() { 2 } else { 1 };
    let waited = !turn.has_place();
    if told.last.is_none() {
        let alive = Alive { heartbeat: worker.heartbeat, queued: waited };
        let event = answer::started(&worker.name, &taken.task, &taken.trigger, now(), alive);
        match deliver(worker, taken, &event, &mut phase, Phase::Finish).await {
            Delivered::Yes if !waited => line(taken, "started"),
            Delivered::Yes => line(taken, "started, waits for a free place"),
            // A replica has begun it, and said more or less than this one.
            Delivered::Refused(error) if error.status() == Some(409) => {
                return elsewhere(worker, taken, now()).unwrap_or(Outcome::Dropped);
            }
            Delivered::Refused(error) => {
                line(taken, &format!("given up, its start was refused: {error}"));
                return Outcome::Done;
            }
            Delivered::Stopped => return Outcome::Dropped,
        }
    }
    if let Some(outcome) = wait(worker, taken, &mut turn, &mut phase, began).await {
        return outcome;
    }
    if (waited || attempt > 1) && !tell(worker, taken, RUNS, &mut phase).await {
        return Outcome::Dropped;
    }
    match (attempt > 1, waited) {
        (true, _) => line(taken, "started again: an earlier run did not answer"),
        (false, true) => line(taken, RUNS),
        (false, false) => (),
    }
    let began = Instant::now();
    let ran = tokio::select! {
        ran = command::run(job(worker, taken, attempt), phase.clone(), over(worker, taken)) => ran,
        never = beat(worker, taken) => match never {},
    };
    let run = match ran {
        Ok(run) => run,
        Err(Stopped::Over) => {
            line(taken, "ended: the sequence was aborted or timed out, and waits for no answer any more");
            return Outcome::Done;
        }
        Err(Stopped::Dropped) => {
            line(taken, "killed without an answer: it is run again when an executor of this name starts");
            return Outcome::Dropped;
        }
    };
    if let Some(warning) = answer::warning(&run) {
        line(taken, &format!("warning: {warning}"));
    }
    finish(worker, taken, &run, began.elapsed(), &mut phase).await
}

/// Waits for a place, and says now and then that it does, so that no replica takes the trigger for lost. `Some`: not to be run, or
/// not by this process.
async fn wait(
    worker: &Worker,
    taken: &Taken,
    turn: &mut Turn,
    phase: &mut watch::Receiver<Phase>,
    began: Timestamp,
) -> Option<Outcome> {
    if turn.has_place() {
        return None;
    }
    let silence = worker.heartbeat.map_or((worker.limit + MARGIN) / 2, |every| every.min((worker.limit + MARGIN) / 2));
    while !turn.has_place() {
        let tells = tokio::select! {
            () = turn.come() => false,
            () = sleep(silence) => true,
            () = reached(phase, Phase::Finish) => {
                line(taken, "not begun: an executor of this name runs it");
                return Some(Outcome::Dropped);
            }
        };
        if tells && !tell(worker, taken, WAITS, phase).await {
            return Some(Outcome::Dropped);
        }
    }
    let told = match told(worker, taken, phase).await {
        Ok(told) => told,
        Err(outcome) => return Some(outcome),
    };
    if told.finished {
        line(taken, "answered already");
        return Some(Outcome::Done);
    }
    if let Some(later) = told.runs.filter(|runs| *runs > began).and_then(|runs| elsewhere(worker, taken, runs)) {
        return Some(later);
    }
    if !is_open(worker, taken).await {
        line(taken, "over before its turn came: not run");
        return Some(Outcome::Done);
    }
    None
}

/// When to look again at a trigger that another replica is at, unless it has been silent for too long.
fn elsewhere(worker: &Worker, taken: &Taken, last: Timestamp) -> Option<Outcome> {
    let age = Duration::from_millis(u64::try_from((now() - last).0).unwrap_or(0));
    let left = (worker.limit + MARGIN).checked_sub(age).filter(|left| !left.is_zero())?;
    line(taken, "is being answered by another process of this name");
    Some(Outcome::Later(Instant::now() + left))
}

/// Until the task waits for no answers any more. A list may lag: a second look has to say the same.
async fn over(worker: &Worker, taken: &Taken) {
    loop {
        taken.missed.notified().await;
        sleep(jittered(SECOND_LOOK)).await;
        if !is_open(worker, taken).await {
            return;
        }
    }
}

/// Whether the task still waits for answers. If that cannot be known, it does.
async fn is_open(worker: &Worker, taken: &Taken) -> bool {
    let query = [("project", taken.trigger.text("project").unwrap_or_default()), ("eventID", taken.trigger.id.as_str())];
    let page: Result<EventPage, ApiError> = worker.api.get(&["event", "triggered", &taken.task], &query).await;
    page.map_or(true, |page| !page.items.is_empty())
}

/// Says now and then that the command runs; never ends. What cannot be said is not said later: the next one comes soon.
async fn beat(worker: &Worker, taken: &Taken) -> Infallible {
    while let Some(every) = worker.heartbeat {
        sleep(jittered(every)).await;
        let said = worker.api.post::<Accepted>(&["event"], &status(worker, taken, RUNS)).await;
        if let Some(error) = said.err().filter(|error| !error.is_transient()) {
            line(taken, &format!("its state was refused: {error}"));
            break;
        }
    }
    std::future::pending().await
}

/// `.status.changed` with this message.
fn status(worker: &Worker, taken: &Taken, what: &str) -> Value {
    let alive = Alive { heartbeat: worker.heartbeat, queued: what == WAITS };
    answer::status_changed(&worker.name, &taken.task, &taken.trigger, now(), (what, alive))
}

/// Says what the work is at. A refusal does not stop the work; `false`: told to stop before it was said.
async fn tell(worker: &Worker, taken: &Taken, what: &str, phase: &mut watch::Receiver<Phase>) -> bool {
    match deliver(worker, taken, &status(worker, taken, what), phase, Phase::Finish).await {
        Delivered::Yes => true,
        Delivered::Refused(error) => {
            line(taken, &format!("its state was refused: {error}"));
            true
        }
        Delivered::Stopped => false,
    }
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

/// What this name told about the trigger before: an earlier run that crashed, or a replica.
async fn told(worker: &Worker, taken: &Taken, phase: &mut watch::Receiver<Phase>) -> Result<Told, Outcome> {
    let mut told = Told::default();
    let finished = answer::id(&worker.name, &taken.trigger, Kind::Finished);
    let mut pauses = Pauses::new();
    let query = [
        ("project", taken.trigger.text("project").unwrap_or_default()),
        ("keptnContext", taken.trigger.context.as_str()),
        ("source", &worker.name),
    ];
    let mut pages = Pages::<Value>::of(&worker.api, &["event"], &query, usize::MAX).at_most(PAGES);
    loop {
        let page = match pages.next().await {
            Ok(Some(page)) => page,
            Ok(None) => return Ok(told),
            Err(error) if error.is_transient() => {
                line(taken, &format!("not begun yet: {error}"));
                if pauses.wait(phase, Phase::Finish).await { continue } else { return Err(Outcome::Dropped) }
            }
            // Without history nothing was told; what is wrong with the request shows when the start is sent.
            Err(_) => return Ok(told),
        };
        for event in page.items.iter().filter(|event| event["triggeredid"] == taken.trigger.id.as_str()) {
            let at = event["time"].as_str().and_then(Timestamp::parse).unwrap_or_else(now);
            told.last = told.last.max(Some(at));
            told.finished |= event["id"] == finished.as_str();
            if event["data"]["message"] == RUNS {
                told.runs = told.runs.max(Some(at));
            }
        }
    }
}

/// Until this process is that far.
async fn reached(phase: &mut watch::Receiver<Phase>, which: Phase) {
    if phase.wait_for(|phase| *phase >= which).await.is_err() {
        std::future::pending::<()>().await;
    }
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
        let pause = jittered(self.next);
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
