//! The host as a worker reaches it: what the clients of real hosts do, in as many requests.

use super::Plant;
use super::host::{Found, Of, Shared, State, commit};
use keelway_domain::condition::Condition;
use keelway_domain::promotions::definition::{PullRequest, Strategy};
use keelway_domain::promotions::{AttemptResult, Closed, Made, Retry, Seen};
use keelway_domain::time::Timestamp;
use keelway_engine::ports::{Clock, PortError};
use keelway_engine::promotions::attempts::{Outside, Sight, Task};
use keelway_world::promotions::host::{Trouble, Word};
use keelway_world::worker::Worker;

/// The host as a worker reaches it.
#[derive(Debug, Clone)]
pub struct Reach {
    /// The worker.
    pub worker: Worker,
    /// The host.
    pub host: Shared,
    /// The mistake, if it makes one.
    pub plant: Option<Plant>,
}

fn failed(reason: &str, message: impl Into<String>, retry: Retry) -> AttemptResult {
    AttemptResult::Failed { why: Condition::new(reason, message), retry }
}

pub(super) fn unreachable(error: &PortError) -> AttemptResult {
    failed("HostUnavailable", error.to_string(), Retry::Backoff)
}

/// What an attempt to tell somebody makes of what went wrong.
fn told(trouble: &Trouble, now: Timestamp) -> Result<AttemptResult, PortError> {
    Ok(match outcome(trouble, now)? {
        AttemptResult::Failed { why, retry } if *trouble == Trouble::Word(Word::Lost) => {
            failed("ReceiverUnreachable", why.message, retry)
        }
        AttemptResult::Failed { why, retry } => failed("ReceiverRefused", why.message, retry),
        other => other,
    })
}

/// What an attempt makes of what went wrong.
fn outcome(trouble: &Trouble, now: Timestamp) -> Result<AttemptResult, PortError> {
    Ok(match trouble {
        Trouble::Limited { .. } => {
            let at = trouble.after().map_or(now, |after| now + after);
            failed("RateLimited", "the host wants fewer requests", Retry::At(at))
        }
        Trouble::Status(status) => failed("HostUnavailable", format!("the host answered {status}"), Retry::Backoff),
        Trouble::Word(Word::Lost) => failed("HostUnavailable", "the host did not answer", Retry::Backoff),
        Trouble::Word(Word::Nonsense) => failed("HostAnswersNonsense", "the host's answer means nothing", Retry::Backoff),
        Trouble::Word(Word::Refused) => failed("HostRefused", "the host does not do this", Retry::Patience),
        Trouble::Word(Word::Killed | Word::Unexpected) => return Err(stopped()),
    })
}

pub(super) fn stopped() -> PortError {
    PortError::Retry { request: "attempt", reason: "stopped".into() }
}

/// Why nothing was opened.
fn stop(reason: &'static str, of: &Of) -> AttemptResult {
    match reason {
        "NothingToPromote" => {
            AttemptResult::Nothing(Condition::new(reason, format!("the base branch has {} already", of.revision)))
        }
        "NoMarkerFound" => {
            let marker = format!("{{\"$promotion\": \"{}:{}\"}}", of.pipeline.replace('/', ":"), of.environment);
            failed(reason, format!("no file has the marker {marker}"), Retry::Patience)
        }
        "BaseBranchMissing" => failed(reason, "the repository has no branch of this name", Retry::Patience),
        _ => failed(reason, "there is no such secret", Retry::Backoff),
    }
}

impl Reach {
    fn has(&self, plant: Plant) -> bool {
        self.plant == Some(plant)
    }

    fn branch(&self, task: &Task) -> String {
        let own = if self.has(Plant::LookUpSkipped) { task.attempt.attempt } else { 0 };
        format!("promotion/{}/{:016x}", task.attempt.environment, task.identity() ^ u64::from(own) << 7)
    }

    async fn open(&self, task: &Task, request: &PullRequest) -> Result<AttemptResult, PortError> {
        let (of, branch) = (Of::task(task), self.branch(task));
        let url = &request.url;
        let find = |_| self.host.lock().find(&of, &branch);
        let found = match self.worker.outside(|| format!("find {branch} at {url}"), find).await {
            Ok(found) => found,
            Err(error) => return Ok(unreachable(&error)),
        };
        match found {
            Found::Request(made) => return Ok(AttemptResult::Created(made)),
            Found::Stop(reason) => return Ok(stop(reason, &of)),
            Found::Ready => {}
        }
        let open = |now| self.host.lock().open_request(&of, request, &branch, now);
        self.answered(self.worker.outside(|| format!("open {branch} at {url}"), open).await)
    }

    fn answered(&self, reply: Result<super::host::Reply<AttemptResult>, PortError>) -> Result<AttemptResult, PortError> {
        match reply {
            Ok((None, Some(done))) => Ok(done),
            Ok((None, None)) => Err(stopped()),
            Ok((Some(trouble), _)) => outcome(&trouble, self.worker.now()),
            Err(error) => Ok(unreachable(&error)),
        }
    }
}

impl Reach {
    /// Merges an open pull request whose head is still the commit that Keelway wrote; `None`: nothing yet.
    async fn merge(&self, task: &Task) -> Result<Option<Seen>, PortError> {
        let branch = self.branch(task);
        let Ok(Some((State::Open, place))) =
            self.worker.outside(|| format!("find {branch}"), |_| self.host.lock().state(&branch)).await
        else {
            return Ok(None);
        };
        let (made, mergeable) = {
            let host = self.host.lock();
            (host.made(place), host.requests[place].mergeable)
        };
        let head = |made: &Made| match made {
            Made::PullRequest { head, .. } => Some(head.clone()),
            _ => None,
        };
        if task.made.as_ref().and_then(head) != head(&made) {
            return Ok(None);
        }
        if mergeable == Some(false) {
            return Ok(Some(Seen::Failed("it cannot be merged: it conflicts with the base branch".into())));
        }
        let merge = |_| self.host.lock().merge(place);
        Ok(match self.worker.outside(|| format!("merge {branch}"), merge).await {
            Ok((None, Some(commit))) => Some(Seen::Succeeded(format!("merged as {commit}"))),
            Ok((Some(Trouble::Word(Word::Refused)), _)) => {
                Some(Seen::Failed("it cannot be merged: the repository does not allow this way of merging".into()))
            }
            Ok((Some(Trouble::Word(Word::Killed | Word::Unexpected)), _)) => return Err(stopped()),
            Ok(_) | Err(_) => None,
        })
    }
}

impl Outside for Reach {
    async fn carry_out(&self, task: &Task) -> Result<AttemptResult, PortError> {
        let done = match &task.strategy {
            Strategy::Notification(_) => {
                let of = Of::task(task);
                let tell = |now| self.host.lock().tell(&of, task.attempt.attempt, now);
                match self.worker.outside(|| format!("tell {of:?}"), tell).await {
                    Ok((Some(trouble), _)) => told(&trouble, self.worker.now()),
                    Err(error) => Ok(failed("ReceiverUnreachable", error.to_string(), Retry::Backoff)),
                    reply => self.answered(reply),
                }
            }
            Strategy::PullRequest(request) => self.open(task, request).await,
            Strategy::Sequence(sequence) => self.trigger(task, sequence).await,
        }?;
        Ok(match done {
            AttemptResult::Failed { why, .. } if self.has(Plant::FailureFinal) => {
                AttemptResult::Failed { why, retry: Retry::Never }
            }
            done => done,
        })
    }

    async fn take_back(&self, task: &Task, comment: &str) -> Result<Closed, PortError> {
        if self.has(Plant::SupersededLeftOpen) {
            return Ok(Closed::Closed);
        }
        let given_up = if self.has(Plant::ClosingGivenUp) { Closed::Closed } else { Closed::Failed(None) };
        if matches!(task.strategy, Strategy::Sequence(_)) {
            return self.abort(task).await;
        }
        let branch = self.branch(task);
        let state = self.worker.outside(|| format!("find {branch}"), |_| self.host.lock().state(&branch)).await;
        let place = match state {
            Err(_) => return Ok(given_up),
            Ok(Some((State::Open, place))) => place,
            Ok(Some((State::Merged, place))) => {
                let identity = self.host.lock().requests[place].of.identity;
                return Ok(Closed::Merged(format!("merged as {}", commit(identity))));
            }
            Ok(Some((State::Closed, _)) | None) => return Ok(Closed::Closed),
        };
        let close = |_| self.host.lock().close(place, comment);
        Ok(match self.worker.outside(|| format!("close {branch}"), close).await {
            Ok((None, _)) => Closed::Closed,
            Ok((Some(Trouble::Word(Word::Killed | Word::Unexpected)), _)) => return Err(stopped()),
            Ok((Some(trouble), _)) if given_up != Closed::Closed => {
                Closed::Failed(trouble.after().map(|after| self.worker.now() + after))
            }
            Ok(_) | Err(_) => given_up,
        })
    }

    async fn look(&self, repository: &str, tasks: &[Task], _: Option<&str>) -> Result<Sight, PortError> {
        let nothing = |status: &str, not_before: Option<Timestamp>| {
            let reason = if status == "404" { "NotFound" } else { "HostUnavailable" };
            let why = Condition::new(reason, format!("the host answered {status}"));
            // Whoever wants fewer requests says until when.
            let why = if not_before.is_some() { None } else { Some(why) };
            Sight { requests: vec![None; tasks.len()], failed: vec![why; tasks.len()], mark: None, not_before }
        };
        let look = |_| {
            let mut host = self.host.lock();
            if let Some(trouble) = host.look() {
                return Err(trouble);
            }
            Ok(tasks.iter().map(|task| seen(&host, task, &self.branch(task))).collect::<Vec<_>>())
        };
        Ok(match self.worker.outside(|| format!("look at {repository}"), look).await {
            Ok(Ok(requests)) => {
                let closed = |seen| match seen {
                    Some(Seen::Closed(_)) if self.has(Plant::ClosedTakenForMerged) => Some(Seen::Succeeded("merged".into())),
                    seen => seen,
                };
                let mut requests: Vec<_> = requests.into_iter().map(closed).collect();
                for (task, seen) in tasks.iter().zip(&mut requests) {
                    let merges = matches!(&task.strategy, Strategy::PullRequest(request) if request.merge);
                    if merges && matches!(seen, None | Some(Seen::Open(_))) {
                        *seen = self.merge(task).await?.or(seen.take());
                    }
                }
                Sight { requests, failed: vec![], mark: None, not_before: None }
            }
            Ok(Err(trouble)) => nothing(&trouble.word(), trouble.after().map(|after| self.worker.now() + after)),
            Err(_) => nothing("nothing", None),
        })
    }

    async fn follow(&self, task: &Task) -> Result<Option<Seen>, PortError> {
        self.ending(task).await
    }
}

/// What a look sees of a promotion's pull request; `None`: nothing new.
fn seen(host: &super::host::Host, task: &Task, branch: &str) -> Option<Seen> {
    let place = host.requests.iter().rposition(|request| request.branch == branch)?;
    let request = &host.requests[place];
    let known = |made: &Made| matches!(made, Made::PullRequest { mergeable, .. } if *mergeable == request.mergeable);
    match request.state {
        State::Open if task.made.as_ref().is_some_and(known) => None,
        State::Open => {
            // The head stays the one that Keelway wrote: only that is merged.
            let mut made = task.made.clone()?;
            if let Made::PullRequest { mergeable, .. } = &mut made {
                *mergeable = request.mergeable;
            }
            Some(Seen::Open(made))
        }
        State::Merged => Some(Seen::Succeeded(format!("merged as {}", commit(request.of.identity)))),
        State::Closed => Some(Seen::Closed("closed by a person".into())),
    }
}
