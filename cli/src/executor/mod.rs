//! `keelway executor`: answers a task's triggers by running a command, for as long as it runs.
//!
//! At least once: what was begun and not answered when a process ended is run again by the next of its name. What is told has
//! ids that follow from the name and the trigger, so several runs, and several replicas, count once.

mod answer;
mod command;
mod job;

use crate::api::Api;
use crate::api_error::ApiError;
use crate::args::{self, Scope};
use crate::commands::now;
use crate::error::CliError;
use crate::output::say;
use job::{Outcome, Pauses, Taken};
use keelway_domain::names::{ProjectName, ServiceName, StageName};
use keelway_wire::cloudevent::{self, Origin};
use keelway_wire::http::EventPage;
use std::collections::{HashMap, HashSet};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// More pages of open triggers than this are not read in one go.
const PAGES: usize = 50;

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
        echo: what.echo,
    };
    let (name, tasks, base) = (&worker.name, worker.tasks.join(","), worker.api.base());
    log(&format!("{name} answers {tasks} from {base}; SIGTERM finishes what runs"));
    let pool = Pool {
        worker: Arc::new(worker),
        phase,
        size: usize::from(what.concurrency),
        jobs: JoinSet::new(),
        known: HashMap::new(),
        inherited: None,
    };
    pool.serve(what.poll).await
}

fn signals() -> Result<watch::Receiver<Phase>, CliError> {
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
    Running,
    Done,
    NotBefore(Instant),
}

/// Triggers found, and whether these are all that are open.
struct Found {
    fresh: Vec<(String, keelway_domain::event::CloudEvent)>,
    open: Option<HashSet<String>>,
}

struct Pool {
    worker: Arc<Worker>,
    phase: watch::Receiver<Phase>,
    size: usize,
    jobs: JoinSet<(String, Outcome)>,
    known: HashMap<String, Known>,
    /// What was open at the first look; `None` before it.
    inherited: Option<HashSet<String>>,
}

impl Pool {
    async fn serve(mut self, poll: Duration) -> Result<ExitCode, CliError> {
        let mut failing: Option<(String, Pauses)> = None;
        let mut phase = self.phase.clone();
        while *phase.borrow() == Phase::Serve {
            if self.jobs.len() >= self.size {
                tokio::select! {
                    done = self.jobs.join_next() => self.note(done),
                    _ = phase.wait_for(|phase| *phase > Phase::Serve) => (),
                }
                continue;
            }
            let looked = tokio::select! {
                looked = self.look() => looked,
                _ = phase.wait_for(|phase| *phase > Phase::Serve) => break,
            };
            match looked {
                Ok(found) => {
                    if failing.take().is_some() {
                        log("the API answers again");
                    }
                    self.take(found);
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
                done = self.jobs.join_next(), if !self.jobs.is_empty() => self.note(done),
                _ = phase.wait_for(|phase| *phase > Phase::Serve) => (),
            }
        }
        Ok(self.finish().await)
    }

    async fn finish(mut self) -> ExitCode {
        if !self.jobs.is_empty() {
            log(&format!("stopping: {} still running; a second signal kills", self.jobs.len()));
        }
        while let Some(done) = self.jobs.join_next().await {
            self.note(Some(done));
        }
        log("stopped");
        if *self.phase.borrow() == Phase::Drop { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }

    fn note(&mut self, done: Option<Result<(String, Outcome), tokio::task::JoinError>>) {
        match done {
            Some(Ok((id, Outcome::Done))) => self.know(id, Known::Done),
            Some(Ok((id, Outcome::Later(when)))) => self.know(id, Known::NotBefore(when)),
            Some(Ok((id, Outcome::Dropped))) => self.known.retain(|known, _| *known != id),
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
            Some(Known::Running | Known::Done) => false,
            Some(Known::NotBefore(when)) => *when <= Instant::now(),
        }
    }

    /// Reads open triggers until there is enough for every free place, or all are read.
    async fn look(&self) -> Result<Found, ApiError> {
        let free = self.size - self.jobs.len();
        let (mut fresh, mut open) = (vec![], HashSet::new());
        for task in &self.worker.tasks {
            let mut key = String::new();
            for _ in 0..PAGES {
                let page = self.worker.page(task, &key).await?;
                for event in page.events {
                    match cloudevent::parse(&event, Origin::Client, now()) {
                        Ok(trigger) => {
                            if open.insert(trigger.id.clone()) && self.is_free(&trigger.id) {
                                fresh.push((task.clone(), trigger));
                            }
                        }
                        Err(error) => log(&format!("a trigger of {task} is not understood and left alone: {error}")),
                    }
                }
                key = page.next_page_key;
                if key.is_empty() || key == "0" {
                    break;
                }
                // The first look reads everything: what is open now counts as inherited.
                if fresh.len() >= free && self.inherited.is_some() {
                    return Ok(Found { fresh, open: None });
                }
            }
        }
        Ok(Found { fresh, open: Some(open) })
    }

    fn take(&mut self, found: Found) {
        if let Some(open) = found.open {
            let inherited = self.inherited.get_or_insert_with(|| open.clone());
            inherited.retain(|id| open.contains(id));
            self.known.retain(|id, known| matches!(known, Known::Running) || open.contains(id));
        }
        for (task, trigger) in found.fresh {
            if self.jobs.len() >= self.size {
                break;
            }
            let id = trigger.id.clone();
            let inherited = self.inherited.as_ref().is_some_and(|inherited| inherited.contains(&id));
            self.know(id.clone(), Known::Running);
            let (worker, phase) = (Arc::clone(&self.worker), self.phase.clone());
            let taken = Taken { task, trigger, inherited };
            self.jobs.spawn(async move { (id, job::answer(&worker, &taken, phase).await) });
        }
    }
}

impl Worker {
    async fn page(&self, task: &str, key: &str) -> Result<EventPage, ApiError> {
        let query = [
            ("project", self.scope.project.as_ref().map_or("", ProjectName::as_str)),
            ("stage", self.scope.stage.as_ref().map_or("", StageName::as_str)),
            ("service", self.scope.service.as_ref().map_or("", ServiceName::as_str)),
            ("pageSize", "100"),
            ("nextPageKey", key),
        ];
        self.api.get(&["event", "triggered", task], &query).await
    }
}

/// The same length, give or take a fifth: replicas started together do not ask in step.
fn jittered(length: Duration) -> Duration {
    let nanos = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap_or_default().subsec_nanos();
    length * (80 + nanos / 1000 % 41) / 100
}

fn log(what: &str) {
    // An executor works on when nobody reads its log.
    say(&format!("{} {what}", now().rfc3339())).ok();
}
