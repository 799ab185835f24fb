//! A git host and a receiver of notifications, as far as promotions see them. What happens there is the world's own log: the invariants
//! are read from it, not from the engine's state.

use keelway_domain::promotions::definition::{PullRequest, Strategy};
use keelway_domain::promotions::{Closed, Condition, Made, Outcome, Retry, Seen};
use keelway_domain::time::Timestamp;
use keelway_engine::ports::PortError;
use keelway_engine::promotions::attempts::{Outside, Sight, Task};
use keelway_world::worker::Worker;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where a pull request is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It waits.
    Open,
    /// It was merged.
    Merged,
    /// It was closed without being merged.
    Closed,
}

/// A pull request at the host.
#[derive(Debug, Clone)]
pub struct Request {
    /// Of which promotion.
    pub identity: u64,
    /// `namespace/pipeline`
    pub pipeline: String,
    /// Into which environment.
    pub environment: String,
    /// Of which revision.
    pub revision: String,
    /// Its state.
    pub state: State,
    /// Whether Keelway has tried to close it, and could not.
    pub refused_to_close: bool,
    /// A person reopened it.
    pub reopened: bool,
    /// What Keelway has commented.
    pub comments: Vec<String>,
}

/// A notification that arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// Its id.
    pub identity: u64,
    /// `namespace/pipeline`
    pub pipeline: String,
    /// Into which environment.
    pub environment: String,
    /// Which revision.
    pub revision: String,
}

/// What is at the host.
#[derive(Debug, Default)]
pub struct Host {
    /// The pull requests; the n-th has number n + 1.
    pub requests: Vec<Request>,
    /// The notifications, in the order they arrived.
    pub told: Vec<Told>,
    /// Requests that changed something.
    pub writes: u64,
    /// Requests that only read.
    pub reads: u64,
    /// When each look happened.
    pub looks: Vec<Timestamp>,
}

/// A host that the world and its workers share.
#[derive(Debug, Clone, Default)]
pub struct Shared(Arc<Mutex<Host>>);

impl Shared {
    /// The host as it is.
    pub fn lock(&self) -> MutexGuard<'_, Host> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Host {
    /// The open pull requests of a pipeline into an environment.
    pub fn open<'h>(&'h self, pipeline: &'h str, environment: &'h str) -> impl Iterator<Item = &'h Request> {
        self.requests.iter().filter(move |request| {
            request.state == State::Open && request.pipeline == pipeline && request.environment == environment
        })
    }

    fn made(&self, place: usize) -> Made {
        Made::PullRequest {
            number: place as u64 + 1,
            url: format!("https://git.test/o/r/pulls/{}", place + 1),
            branch: format!("promotion/{:016x}", self.requests[place].identity),
            head: format!("{:040x}", self.requests[place].identity),
            mergeable: None,
        }
    }

    fn open_request(&mut self, task: &Task) -> Made {
        self.reads += 1;
        let identity = task.identity();
        if let Some(place) = self.requests.iter().position(|request| request.identity == identity) {
            return self.made(place);
        }
        self.writes += 1;
        self.requests.push(Request {
            identity,
            pipeline: task.of.to_string(),
            environment: task.attempt.environment.clone(),
            revision: task.attempt.revision.clone(),
            state: State::Open,
            refused_to_close: false,
            reopened: false,
            comments: vec![],
        });
        self.made(self.requests.len() - 1)
    }

    fn close(&mut self, identity: u64, comment: &str) -> Closed {
        self.reads += 1;
        let Some(request) = self.requests.iter_mut().find(|request| request.identity == identity) else { return Closed::Closed };
        match request.state {
            State::Merged => Closed::Merged("merged".into()),
            State::Closed => Closed::Closed,
            State::Open => {
                self.writes += 1;
                request.state = State::Closed;
                request.comments.push(comment.to_owned());
                Closed::Closed
            }
        }
    }
}

/// The host as a worker reaches it.
#[derive(Debug, Clone)]
pub struct Reach {
    /// The worker.
    pub worker: Worker,
    /// The host.
    pub host: Shared,
}

fn unreachable(error: &PortError) -> Outcome {
    Outcome::Failed { why: Condition::new("HostUnreachable", error.to_string()), retry: Retry::Backoff }
}

impl Outside for Reach {
    async fn carry_out(&self, task: &Task) -> Result<Outcome, PortError> {
        let done = match &task.strategy {
            Strategy::Notification(_) => {
                let told = Told {
                    identity: task.identity(),
                    pipeline: task.of.to_string(),
                    environment: task.attempt.environment.clone(),
                    revision: task.attempt.revision.clone(),
                };
                let tell = |_| {
                    self.host.lock().told.push(told.clone());
                    Outcome::Done(Made::Notification { id: format!("{:016x}", told.identity) })
                };
                self.worker.outside(|| format!("tell {told:?}"), tell).await
            }
            Strategy::PullRequest(PullRequest { url, .. }) => {
                let open = |_| Outcome::Created(self.host.lock().open_request(task));
                self.worker.outside(|| format!("open at {url} {:?}", task.attempt), open).await
            }
            Strategy::Sequence(_) => {
                return Ok(Outcome::Failed { why: Condition::new("Unknown", "not here"), retry: Retry::Never });
            }
        };
        Ok(done.unwrap_or_else(|error| unreachable(&error)))
    }

    async fn take_back(&self, task: &Task, comment: &str) -> Result<Closed, PortError> {
        let identity = task.identity();
        let close = |_| self.host.lock().close(identity, comment);
        let closed = self.worker.outside(|| format!("close {:?}", task.attempt), close).await;
        Ok(closed.unwrap_or_else(|_| {
            for request in self.host.lock().requests.iter_mut().filter(|request| request.identity == identity) {
                request.refused_to_close = true;
            }
            Closed::Failed(None)
        }))
    }

    async fn follow(&self, _: &Task) -> Result<Option<Seen>, PortError> {
        Ok(None)
    }

    async fn look(&self, repository: &str, tasks: &[Task], _: Option<&str>) -> Result<Sight, PortError> {
        let look = |now| {
            let mut host = self.host.lock();
            host.reads += 1;
            host.looks.push(now);
            let state = |task: &Task| match host.requests.iter().find(|request| request.identity == task.identity())?.state {
                State::Open => None,
                State::Merged => Some(Seen::Succeeded("merged".into())),
                State::Closed => Some(Seen::Closed("closed by a person".into())),
            };
            tasks.iter().map(state).collect::<Vec<_>>()
        };
        let seen = self.worker.outside(|| format!("look at {repository}"), look).await;
        Ok(Sight { requests: seen.unwrap_or_else(|_| vec![None; tasks.len()]), mark: None, not_before: None })
    }
}
