//! `keelway executor`: answers a task's triggers by running a command, for as long as it runs.
//!
//! At least once: what was begun and not answered when a process ended is run again by the next of its name. What is told has
//! ids that follow from the name and the trigger, so several runs, and several replicas, count once.

pub mod answer;
pub mod command;
mod data;
pub mod job;
mod places;
pub mod process;

use crate::api::Api;
use crate::api_error::ApiError;
use crate::args::{self, Scope};
use crate::clock::now;
use crate::error::CliError;
use crate::output::say;
use crate::pages::following;
use job::{Outcome, Pauses, Taken};
use keelway_domain::event::{CloudEvent, EventType, Kind};
use keelway_domain::names::{ProjectName, ServiceName, StageName};
use keelway_wire::cloudevent::{self, Origin};
use keelway_wire::http::EventPage;
use places::Places;
use std::collections::{HashMap, HashSet};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

/// More pages of open triggers than this are not read in one go.
const PAGES: usize = 50;
/// How often to ask when there has been no news for a while. A request that waits is paid for by its length: asking
/// like this costs a fortieth of waiting.
const IDLE_POLL: Duration = Duration::from_secs(5);
/// The most triggers that wait for a place in this process: others may have one.
const QUEUE: usize = 256;

/// What this process is to do, in the order it goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Take triggers and answer them.
    Serve,
    /// Take nothing new; finish what runs.
    Finish,
    /// Kill what runs.
    Drop,
}

/// What every job needs.
pub struct Worker {
    api: Api,
    name: String,
    tasks: Vec<String>,
    scope: Scope,
    command: Vec<String>,
    limit: Duration,
    claim_after: Duration,
    /// How often it says that it lives, if it does.
    heartbeat: Option<Duration>,
    echo: bool,
}

/// Serves until SIGTERM or SIGINT, then finishes what runs; a second signal kills it.
///
/// # Errors
/// When the API refuses this executor altogether.
pub async fn run(api: Api, what: args::Executor) -> Result<ExitCode, CliError> {
    let phase = signals()?;
    let worker = Worker {
        api: api.without_retries(),
        name: what.name,
        tasks: what.tasks.iter().map(ToString::to_string).collect(),
        scope: what.scope,
        command: what.command,
        limit: what.timeout,
        claim_after: what.claim_after,
        heartbeat: Some(what.heartbeat).filter(|every| !every.is_zero()),
        echo: what.echo,
    };
    let (name, tasks, base) = (&worker.name, worker.tasks.join(","), worker.api.base());
    log(&format!("{name} answers {tasks} from {base}; SIGTERM finishes what runs"));
    let pool = Pool {
        worker: Arc::new(worker),
        phase,
        places: Places::new(usize::from(what.concurrency)),
        room: usize::from(what.concurrency) + QUEUE,
        jobs: JoinSet::new(),
        known: HashMap::new(),
        working: HashMap::new(),
        missing: HashSet::new(),
        inherited: None,
        fingerprint: None,
    };
    pool.serve(&Rhythm { poll: what.poll, wait: what.wait, idle_after: what.idle_after }).await
}

/// What this process is to do: SIGTERM and SIGINT change it.
///
/// # Errors
/// When signals cannot be received.
pub fn signals() -> Result<watch::Receiver<Phase>, CliError> {
    let listen = |kind| {
        signal(kind).map_err(|error| CliError::Failed(format!("signals cannot be received: {error}; look at the system's limits")))
    };
    let (mut term, mut int) = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    let (sender, receiver) = watch::channel(Phase::Serve);
    tokio::spawn(async move {
        for next in [Phase::Finish, Phase::Drop] {
            tokio::select! { _ = term.recv() => (), _ = int.recv() => () }
            sender.send_replace(next);
        }
        // Kept, so that waiting for a phase never ends by itself.
        sender.closed().await;
    });
    Ok(receiver)
}

/// What this process knows of a trigger that is open.
#[derive(Clone, Copy)]
enum Known {
    Taken,
    Done,
    NotBefore(Instant),
}

/// Triggers found, oldest first, and whether these are all that are open.
struct Found {
    fresh: Vec<Taken>,
    open: Option<HashSet<String>>,
    fingerprint: Option<String>,
}

/// When to ask.
struct Rhythm {
    poll: Duration,
    wait: Duration,
    idle_after: Duration,
}

struct Pool {
    worker: Arc<Worker>,
    phase: watch::Receiver<Phase>,
    places: Places,
    /// The most jobs: those that run, and those that wait for a place.
    room: usize,
    jobs: JoinSet<(String, Outcome)>,
    known: HashMap<String, Known>,
    /// The triggers of all jobs, and whom to tell that one is not open any more.
    working: HashMap<String, Arc<Notify>>,
    /// Those of them that the last list of all open triggers did not have.
    missing: HashSet<String>,
    /// What was open at the first look; `None` before it.
    inherited: Option<HashSet<String>>,
    /// Of everything that is open, if all of it is known.
    fingerprint: Option<String>,
}

impl Pool {
    async fn serve(mut self, rhythm: &Rhythm) -> Result<ExitCode, CliError> {
        let mut failing: Option<(String, Pauses)> = None;
        let mut news = Instant::now();
        let mut phase = self.phase.clone();
        while *phase.borrow() == Phase::Serve {
            self.note_what_is_done();
            let idle = news.elapsed() >= rhythm.idle_after;
            let (wait, poll) = if idle { (Duration::ZERO, rhythm.poll.max(IDLE_POLL)) } else { (rhythm.wait, rhythm.poll) };
            let looked = tokio::select! {
                looked = self.look(wait) => looked,
                _ = phase.wait_for(|phase| *phase > Phase::Serve) => break,
            };
            match looked {
                Ok(found) => {
                    if failing.take().is_some() {
                        log("the API answers again");
                    }
                    if let Some(found) = found {
                        news = Instant::now();
                        self.take(found).await;
                    }
                    // Nothing new: what was missing is missing still.
                    self.missing.iter().filter_map(|id| self.working.get(id)).for_each(|missed| missed.notify_one());
                }
                Err(error) if self.inherited.is_none() && matches!(error.status(), Some(400 | 401 | 403)) => {
                    return Err(error.into());
                }
                Err(error) => {
                    let text = error.to_string();
                    let (told, pauses) = failing.get_or_insert_with(|| (String::new(), Pauses::new()));
                    if *told != text {
                        log(&format!("cannot ask for triggers, trying again: {text}"));
                        *told = text;
                    }
                    pauses.wait(&mut phase, Phase::Finish).await;
                    continue;
                }
            }
            tokio::select! {
                () = tokio::time::sleep(jittered(poll)) => (),
                _ = phase.wait_for(|phase| *phase > Phase::Serve) => (),
            }
        }
        Ok(self.finish().await)
    }

    async fn finish(mut self) -> ExitCode {
        self.note_what_is_done();
        // What waits for a place ends by itself now; what runs is finished.
        let running = self.jobs.len().min(self.places.taken());
        if running > 0 {
            log(&format!("stopping: {running} still running; a second signal kills"));
        }
        while let Some(done) = self.jobs.join_next().await {
            self.note(Some(done));
        }
        log("stopped");
        if *self.phase.borrow() == Phase::Drop { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }

    fn note_what_is_done(&mut self) {
        while let Some(done) = self.jobs.try_join_next() {
            self.note(Some(done));
        }
    }

    fn note(&mut self, done: Option<Result<(String, Outcome), tokio::task::JoinError>>) {
        if let Some(Ok((id, _))) = &done {
            self.working.remove(id);
        }
        match done {
            Some(Ok((id, Outcome::Done))) => self.know(id, Known::Done),
            Some(Ok((id, Outcome::Later(when)))) => self.know(id, Known::NotBefore(when)),
            Some(Ok((id, Outcome::Dropped))) => drop(self.known.remove(&id)),
            // A job does not panic; should it, its trigger stays known as running and is not tried again by this process.
            Some(Err(error)) => log(&format!("a job broke off: {error}")),
            None => (),
        }
    }

    fn know(&mut self, id: String, known: Known) {
        self.known.insert(id, known);
    }

    fn is_free(&self, id: &str) -> bool {
        match self.known.get(id) {
            None => true,
            Some(Known::Taken | Known::Done) => false,
            Some(Known::NotBefore(when)) => *when <= Instant::now(),
        }
    }

    /// Until the next known trigger may be looked at again, `wait` at most; `None`: one may be by now.
    fn until_due(&self, wait: Duration) -> Option<Duration> {
        let now = Instant::now();
        let due = self.known.values().filter_map(|known| match known {
            Known::NotBefore(when) => Some(*when),
            Known::Taken | Known::Done => None,
        });
        let left = due.min().map_or(Some(wait), |due| due.checked_duration_since(now).filter(|left| !left.is_zero()));
        left.map(|left| left.min(wait))
    }

    /// Reads open triggers until there is enough for all room, or all are read. If everything that was open is known, waits for
    /// something else; `None`: there is nothing else.
    async fn look(&self, wait: Duration) -> Result<Option<Found>, ApiError> {
        let news = self.fingerprint.as_deref().zip(self.until_due(wait));
        let room = self.room.saturating_sub(self.jobs.len());
        let (mut fresh, mut open) = (vec![], HashSet::new());
        let (mut key, mut fingerprint) = (String::new(), None);
        for n in 0..PAGES {
            let page = self.worker.page(&key, news.filter(|_| n == 0)).await?;
            if n == 0 {
                if page.items.is_empty() && news.is_some_and(|(known, _)| page.extra.fingerprint.as_deref() == Some(known)) {
                    return Ok(None);
                }
                fingerprint.clone_from(&page.extra.fingerprint);
            }
            let next = following(&page);
            for event in page.items {
                match cloudevent::parse(&event, Origin::Client, now()) {
                    Ok(trigger) => {
                        if open.insert(trigger.id.clone()) && self.is_free(&trigger.id) {
                            fresh.extend(self.taken(trigger));
                        }
                    }
                    Err(error) => log(&format!("a trigger is not understood and left alone: {error}")),
                }
            }
            let Some(next) = next else {
                // What does not fit is looked at again.
                let fingerprint = fingerprint.filter(|_| fresh.len() <= room);
                return Ok(Some(Found { fresh, open: Some(open), fingerprint }));
            };
            key = next;
            // The first look reads everything: what is open now counts as inherited.
            if fresh.len() >= room && self.inherited.is_some() {
                break;
            }
        }
        let open = self.inherited.is_none().then_some(open);
        Ok(Some(Found { fresh, open, fingerprint: None }))
    }

    fn taken(&self, trigger: CloudEvent) -> Option<Taken> {
        match EventType::parse(&trigger.ty) {
            EventType::Task(task, Kind::Triggered) => {
                Some(Taken { task: task.to_string(), trigger, inherited: false, missed: Arc::default() })
            }
            _ => None,
        }
    }

    async fn take(&mut self, found: Found) {
        if let Some(open) = found.open {
            let inherited = self.inherited.get_or_insert_with(|| open.clone());
            inherited.retain(|id| open.contains(id));
            self.known.retain(|id, known| matches!(known, Known::Taken) || open.contains(id));
            self.missing = self.working.keys().filter(|id| !open.contains(*id)).cloned().collect();
        }
        self.fingerprint = found.fingerprint;
        for taken in found.fresh {
            if self.jobs.len() >= self.room {
                break;
            }
            let id = taken.trigger.id.clone();
            let inherited = self.inherited.as_ref().is_some_and(|inherited| inherited.contains(&id));
            self.know(id.clone(), Known::Taken);
            self.working.insert(id.clone(), taken.missed.clone());
            let (worker, phase) = (Arc::clone(&self.worker), self.phase.clone());
            let (taken, turn) = (Taken { inherited, ..taken }, self.places.ask().await);
            self.jobs.spawn(async move { (id, job::answer(&worker, &taken, turn, phase).await) });
        }
    }
}

impl Worker {
    /// A page of open triggers of all tasks. `news`: what is known, and for how long to wait for something else.
    async fn page(&self, key: &str, news: Option<(&str, Duration)>) -> Result<EventPage, ApiError> {
        let (known, wait) = news.unwrap_or_default();
        let wait = if wait.is_zero() { String::new() } else { wait.as_secs().max(1).to_string() };
        let query = [
            ("project", self.scope.project.as_ref().map_or("", ProjectName::as_str)),
            ("stage", self.scope.stage.as_ref().map_or("", StageName::as_str)),
            ("service", self.scope.service.as_ref().map_or("", ServiceName::as_str)),
            ("pageSize", "100"),
            ("nextPageKey", key),
            ("unless", known),
            ("wait", &wait),
        ];
        self.api.get(&["event", "triggered", &self.tasks.join(",")], &query).await
    }
}

/// The same length, give or take a fifth: replicas started together do not ask in step.
pub fn jittered(length: Duration) -> Duration {
    let nanos = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap_or_default().subsec_nanos();
    length * (80 + nanos / 1000 % 41) / 100
}

/// A line of the log.
pub fn log(what: &str) {
    // An executor works on when nobody reads its log.
    say(&format!("{} {what}", now().rfc3339())).ok();
}
