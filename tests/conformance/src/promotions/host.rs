//! A git host, a receiver of notifications and sequences, as far as promotions see them. What happens there is the world's own log:
//! the invariants are read from it, not from the engine's state.

use super::judge::Verdicts;
use super::sequences::Run;
use super::{Both, Plant, both};
use keelway_domain::promotions::definition::PullRequest;
use keelway_domain::promotions::{AttemptResult, Made};
use keelway_domain::time::Timestamp;
use keelway_engine::promotions::attempts::Task;
use keelway_world::promotions::host::{Call, Deed, End, GitHost, Repository, Trouble, Troubles, Verb};
use keelway_world::worker::Worker;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The repository of the tests.
pub const REPOSITORY: &str = "https://git.test/o/r";

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

/// Of what promotion something is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Of {
    /// What it is known by.
    pub identity: u64,
    /// `namespace/pipeline`
    pub pipeline: String,
    /// Into which environment.
    pub environment: String,
    /// Of which revision.
    pub revision: String,
    /// In which run.
    pub run: u64,
    /// How often a person had it attempted anew.
    pub again: u32,
}

impl Of {
    /// Of a task.
    pub fn task(task: &Task) -> Self {
        Self {
            identity: task.identity(),
            pipeline: task.of.to_string(),
            environment: task.attempt.environment.clone(),
            revision: task.attempt.revision.clone(),
            run: task.attempt.run,
            again: task.attempt.again,
        }
    }
}

/// A pull request at the host.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Of which promotion.
    pub of: Of,
    /// Its repository, and the branch it is to be merged into.
    pub into: (String, String),
    /// Its branch.
    pub branch: String,
    /// The newest commit of its branch.
    pub head: String,
    /// Its state.
    pub state: State,
    /// When it was opened.
    pub opened: Timestamp,
    /// Whether a person, not Keelway, closed it last.
    pub closed_by_person: bool,
    /// Whether it could be merged.
    pub mergeable: Option<bool>,
    /// As people see it.
    pub title: String,
    /// What Keelway has commented.
    pub comments: Vec<String>,
}

/// A notification that arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// Of which promotion.
    pub of: Of,
    /// By which attempt.
    pub attempt: u32,
    /// When.
    pub at: Timestamp,
}

/// What is at the host.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Host {
    /// The pull requests of Keelway, in the order they were opened.
    pub requests: Vec<Request>,
    /// The notifications, in the order they arrived.
    pub told: Vec<Told>,
    /// The sequences of promotions, in the order they were triggered.
    pub sequences: Vec<Run>,
    /// Every call that changed something, or was meant to.
    pub calls: Vec<Call>,
    /// Requests that changed something.
    pub writes: u64,
    /// Requests that only read.
    pub reads: u64,
    /// What the case says of the repository.
    pub repository: Repository,
    /// What was merged last, by pipeline and environment.
    pub merged: BTreeMap<(String, String), String>,
    troubles: BTreeMap<Verb, Troubles>,
    shown: (usize, u64),
}

/// A host that the world and its workers share.
#[derive(Debug, Clone, Default)]
pub struct Shared(Arc<Mutex<Host>>);

impl Shared {
    /// A copy that goes its own way.
    pub fn fork(&self) -> Self {
        Self(Arc::new(Mutex::new(self.lock().clone())))
    }
    /// Whether it is the same as another one.
    pub fn is_like(&self, other: &Self) -> bool {
        *self.lock() == *other.lock()
    }
    /// Makes engines with this host in reach, and a mistake or none.
    pub(super) fn engines(
        &self,
        verdicts: &Verdicts,
        plant: Option<Plant>,
    ) -> impl Fn(&Worker) -> Both + Clone + Send + Sync + 'static {
        let (host, verdicts) = (self.clone(), verdicts.clone());
        move |worker| both(worker, (&host, &verdicts), plant)
    }
    /// The host as it is.
    pub fn lock(&self) -> MutexGuard<'_, Host> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What comes of a call: what went wrong, and what was answered if it happened.
pub type Reply<T> = (Option<Trouble>, Option<T>);

/// What there is before a pull request is opened.
#[derive(Debug)]
pub enum Found {
    /// It is there already.
    Request(Made),
    /// There is nothing to do, or it cannot be done; a word for machines.
    Stop(&'static str),
    /// It can be opened.
    Ready,
}

impl Host {
    /// The open pull requests of a pipeline into an environment.
    pub fn open<'h>(&'h self, pipeline: &'h str, environment: &'h str) -> impl Iterator<Item = &'h Request> {
        self.requests.iter().filter(move |request| {
            request.state == State::Open && request.of.pipeline == pipeline && request.of.environment == environment
        })
    }

    fn number(&self, place: usize) -> u64 {
        self.repository.crowd + place as u64 + 1
    }

    fn place(&self, number: u64) -> Option<usize> {
        let place = usize::try_from(number.checked_sub(self.repository.crowd + 1)?).ok()?;
        (place < self.requests.len()).then_some(place)
    }

    /// The newest pull request of a promotion.
    fn of(&self, branch: &str) -> Option<usize> {
        self.requests.iter().rposition(|request| request.branch == branch)
    }

    /// A pull request as Keelway keeps it.
    pub fn made(&self, place: usize) -> Made {
        let request = &self.requests[place];
        Made::PullRequest {
            number: self.number(place),
            url: format!("{}/pulls/{}", request.into.0, self.number(place)),
            branch: request.branch.clone(),
            head: request.head.clone(),
            mergeable: request.mergeable,
        }
    }

    fn carries(&self, of: &Of) -> Option<&String> {
        let merged = self.merged.get(&(of.pipeline.clone(), of.environment.clone()));
        merged.or_else(|| self.repository.carries.get(&of.environment))
    }

    /// Notes a call, and what goes wrong with it.
    pub(super) fn call(&mut self, verb: Verb, of: &Of, number: Option<u64>, details: Value) -> Option<Trouble> {
        let trouble = self.troubles.get_mut(&verb).and_then(Troubles::take);
        let outcome = trouble.as_ref().map(Trouble::word).unwrap_or_default();
        self.calls.push(Call {
            verb,
            pipeline: of.pipeline.clone(),
            environment: of.environment.clone(),
            revision: of.revision.clone(),
            run: of.run,
            id: format!("{:016x}", of.identity),
            number,
            outcome,
            details,
        });
        trouble
    }

    /// Looks for the pull request of a promotion, and at the repository.
    pub fn find(&mut self, of: &Of, branch: &str) -> Found {
        self.reads += 1;
        let markers = self.repository.markers.as_ref();
        match self.of(branch) {
            _ if self.repository.credentials == Some(false) => Found::Stop("SecretMissing"),
            Some(place) => Found::Request(self.made(place)),
            None if self.repository.base == Some(false) => Found::Stop("BaseBranchMissing"),
            None if markers.is_some_and(|markers| !markers.contains(&of.environment)) => Found::Stop("NoMarkerFound"),
            None if self.carries(of) == Some(&of.revision) => Found::Stop("NothingToPromote"),
            None => Found::Ready,
        }
    }

    /// Opens a pull request. There is at most one open for each branch.
    pub fn open_request(&mut self, of: &Of, request: &PullRequest, branch: &str, now: Timestamp) -> Reply<AttemptResult> {
        if let Some(place) = self.of(branch).filter(|place| self.requests[*place].state == State::Open) {
            return (None, Some(AttemptResult::Created(self.made(place))));
        }
        let details = json!({
            "base": request.base_branch, "branch": branch, "repository": request.url, "pipeline": of.pipeline, "again": of.again,
        });
        let trouble = self.call(Verb::Open, of, None, details);
        if trouble.as_ref().is_some_and(|trouble| !trouble.happens()) {
            return (trouble, None);
        }
        self.writes += 1;
        self.requests.push(Request {
            of: of.clone(),
            into: (request.url.clone(), request.base_branch.clone()),
            branch: branch.to_owned(),
            head: format!("{:040x}", of.identity),
            state: State::Open,
            opened: now,
            closed_by_person: false,
            mergeable: None,
            title: format!("Promote {} in {} to {}", of.pipeline, of.environment, of.revision),
            comments: vec![],
        });
        (trouble, Some(AttemptResult::Created(self.made(self.requests.len() - 1))))
    }

    /// Takes a notification.
    pub fn tell(&mut self, of: &Of, attempt: u32, now: Timestamp) -> Reply<AttemptResult> {
        let details = json!({"pipeline": of.pipeline, "environment": of.environment, "version": of.revision, "again": of.again});
        let trouble = self.call(Verb::Tell, of, None, details);
        if trouble.as_ref().is_some_and(|trouble| !trouble.happens()) {
            return (trouble, None);
        }
        self.writes += 1;
        self.told.push(Told { of: of.clone(), attempt, at: now });
        (trouble, Some(AttemptResult::Done(Made::Notification { id: format!("{:016x}", of.identity) })))
    }

    /// The state of a promotion's pull request, and its place.
    pub fn state(&mut self, branch: &str) -> Option<(State, usize)> {
        self.reads += 1;
        self.of(branch).map(|place| (self.requests[place].state, place))
    }

    /// Closes an open pull request.
    pub fn close(&mut self, place: usize, comment: &str) -> Reply<()> {
        if self.requests[place].state != State::Open {
            return (None, Some(()));
        }
        let of = self.requests[place].of.clone();
        let trouble = self.call(Verb::Close, &of, Some(self.number(place)), json!({"comment": comment}));
        if trouble.as_ref().is_some_and(|trouble| !trouble.happens()) {
            return (trouble, None);
        }
        self.writes += 1;
        let request = &mut self.requests[place];
        request.state = State::Closed;
        request.closed_by_person = false;
        request.comments.push(comment.to_owned());
        (trouble, Some(()))
    }

    /// Merges an open pull request; the commit.
    pub fn merge(&mut self, place: usize) -> Reply<String> {
        let of = self.requests[place].of.clone();
        let details = json!({"head": self.requests[place].head});
        let trouble = self.call(Verb::Merge, &of, Some(self.number(place)), details);
        if trouble.as_ref().is_some_and(|trouble| !trouble.happens()) {
            return (trouble, None);
        }
        self.writes += 1;
        (trouble, Some(self.merged(place)))
    }

    fn merged(&mut self, place: usize) -> String {
        let request = &mut self.requests[place];
        request.state = State::Merged;
        let of = request.of.clone();
        self.merged.insert((of.pipeline, of.environment), of.revision);
        commit(of.identity)
    }

    /// The trouble with looks at the moment.
    pub fn look(&mut self) -> Option<Trouble> {
        self.reads += 1;
        self.troubles.get_mut(&Verb::Look).and_then(Troubles::take)
    }
}

/// The commit that merged a promotion's pull request.
pub fn commit(identity: u64) -> String {
    format!("{:040x}", !identity)
}

impl GitHost for Shared {
    fn url(&self) -> String {
        REPOSITORY.to_owned()
    }
    fn change(&mut self, with: &Repository) {
        let mut host = self.lock();
        for (environment, revision) in &with.carries {
            host.merged.retain(|(_, other), _| other != environment);
            host.repository.carries.insert(environment.clone(), revision.clone());
        }
        let repository = &mut host.repository;
        repository.markers = with.markers.clone().or(repository.markers.take());
        repository.base = with.base.or(repository.base);
        repository.credentials = with.credentials.or(repository.credentials);
        repository.crowd = repository.crowd.max(with.crowd);
    }
    fn fail(&mut self, verb: Verb, troubles: &Troubles) {
        self.lock().troubles.insert(verb, troubles.clone());
    }
    fn person(&mut self, deed: Deed, number: u64) -> Result<(), String> {
        let mut host = self.lock();
        let place = host.place(number).ok_or_else(|| format!("there is no pull request {number}"))?;
        let state = host.requests[place].state;
        let wanted = if deed == Deed::Reopen { State::Closed } else { State::Open };
        if state != wanted && deed != Deed::Edit {
            return Err(format!("pull request {number} is {state:?}"));
        }
        let request = &mut host.requests[place];
        match deed {
            Deed::Merge => drop(host.merged(place)),
            Deed::Close => (request.state, request.closed_by_person) = (State::Closed, true),
            Deed::Reopen => request.state = State::Open,
            Deed::Push => request.head = format!("{:040x}", request.of.identity.rotate_left(17)),
            Deed::Conflict => request.mergeable = Some(false),
            Deed::Edit => request.title = "something else".into(),
        }
        Ok(())
    }
    fn finish(&mut self, of: (&str, &str), environment: &str, end: End) -> Result<Value, String> {
        Shared::finish(self, of, environment, end)
    }
    fn calls(&self) -> Vec<Call> {
        self.lock().calls.clone()
    }
    fn fresh(&mut self) -> (Vec<Call>, u64) {
        let mut host = self.lock();
        let all = (host.calls.len(), host.reads);
        let (calls, reads) = std::mem::replace(&mut host.shown, all);
        (host.calls[calls..].to_vec(), host.reads - reads)
    }
    fn request(&self, number: u64) -> Option<Value> {
        let host = self.lock();
        let request = &host.requests[host.place(number)?];
        Some(json!({
            "state": format!("{:?}", request.state).to_lowercase(),
            "pipeline": request.of.pipeline, "environment": request.of.environment, "revision": request.of.revision,
            "branch": request.branch, "base": request.into.1, "repository": request.into.0, "title": request.title,
            "comments": request.comments,
        }))
    }
}
