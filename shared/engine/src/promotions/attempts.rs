//! Carries out what pipelines have decided: attempts, their closing, and looks at open pull requests. All of it waits for other
//! people's servers, so it has a queue and a function of its own.
//!
//! Usually once: an attempt is begun by one conditional write, and whoever begins it looks for what an earlier one may have made,
//! by an identity that all attempts share, before it makes anything.

use super::message::{Address, Job, Message};
use super::watch::{self, Trouble, Troubles};
use super::{ATTEMPTS, Promotions, keys};
use crate::item::{Item, Key};
use crate::ports::{PortError, Ports, Query};
use crate::protocol::fact;
use crate::protocol::{Handled, Inbox, Loaded, settle};
use crate::table;
use futures_util::future::{Either, select};
use keelway_domain::cause::Cause;
use keelway_domain::condition::Condition;
use keelway_domain::ids::hash64;
use keelway_domain::promotions::definition::{PullRequest, Strategy};
use keelway_domain::promotions::{Attempt, Closed, Closing, Input, Made, Outcome, Phase, Pipeline, Promotion, Seen};
use keelway_domain::time::{Span, Timestamp};
use std::collections::BTreeSet;
use std::future::Future;
use std::pin::pin;

/// At most so many open pull requests of one repository are looked at at once.
const REQUESTS: usize = 1000;

/// One attempt, with everything that carrying it out takes.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Of which pipeline.
    pub of: Address,
    /// Which.
    pub attempt: Attempt,
    /// How.
    pub strategy: Strategy,
    /// What it made before, if that is known.
    pub made: Option<Made>,
    /// When the promotion was found to be needed.
    pub since: Timestamp,
    /// Who set the revision; empty: that is not known.
    pub authors: Vec<String>,
}

impl Task {
    /// What its effect is known by outside.
    pub fn identity(&self) -> u64 {
        self.attempt.identity(&self.of.namespace, &self.of.name)
    }
}

/// What is seen of a repository's pull requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sight {
    /// For each one asked for, in that order, what became of it; `None`: nothing new.
    pub requests: Vec<Option<Seen>>,
    /// For each one asked for, in that order, why it could not be looked at; `None`: it was. May be shorter.
    pub failed: Vec<Option<Condition>>,
    /// The host's mark of this answer: the next look is cheaper with it.
    pub mark: Option<String>,
    /// The host wants no look before this time.
    pub not_before: Option<Timestamp>,
}

/// The servers of other people. Each method may be called again after it has had its effect: it looks first.
pub trait Outside: Send + Sync {
    /// Carries out an attempt, unless something with its identity is there already.
    fn carry_out(&self, task: &Task) -> impl Future<Output = Result<Outcome, PortError>> + Send;
    /// Takes back what an attempt made, found by its identity if it is not known, with a comment.
    fn take_back(&self, task: &Task, comment: &str) -> impl Future<Output = Result<Closed, PortError>> + Send;
    /// Looks at the sequence that carries out an attempt. `None`: it goes on.
    fn follow(&self, task: &Task) -> impl Future<Output = Result<Option<Seen>, PortError>> + Send;
    /// Looks at pull requests of one repository.
    fn look(&self, repository: &str, tasks: &[Task], mark: Option<&str>) -> impl Future<Output = Result<Sight, PortError>> + Send;
}

/// A delivery of attempts.
pub type Delivery = crate::protocol::Delivery<Job>;

/// Carries out attempts.
pub struct Attempts<P, O> {
    pipelines: Promotions<P>,
    outside: O,
    heartbeat: Option<Span>,
}

impl<P: Ports, O: Outside> Attempts<P, O> {
    /// On these ports.
    pub fn new(pipelines: Promotions<P>, outside: O) -> Self {
        Self { pipelines, outside, heartbeat: None }
    }

    /// Says so often of each attempt that it goes on. Without that, an attempt lasts as long as its first lease at most.
    #[must_use]
    pub fn with_heartbeat(self, every: Span) -> Self {
        Self { heartbeat: Some(every), ..self }
    }

    /// Does what an attempt takes, and says meanwhile that it goes on. A heartbeat that fails is made up for by the next.
    async fn while_it_goes_on<T>(&self, of: &Address, attempt: &Attempt, cause: Cause, work: impl Future<Output = T> + Send) -> T {
        let Some(every) = self.heartbeat else { return work.await };
        let mut work = pin!(work);
        let mut beats = 0u64;
        loop {
            match select(work.as_mut(), pin!(self.pipelines.ports.pause(every))).await {
                Either::Left((done, _)) => return done,
                Either::Right(_) => beats += 1,
            }
            // It is an input of its own: what the message made before it is not told again.
            let own = Cause { id: hash64(&[b"beat", &cause.id.to_be_bytes(), &beats.to_be_bytes()]), again: false, ..cause };
            if let Err(error) = self.pipelines.turn(of, Input::Beat(attempt), own).await {
                tracing::warn!(pipeline = %of, %error, "an attempt goes on, and could not say so");
            }
        }
    }

    async fn state(&self, of: &Address) -> Result<Option<Pipeline>, PortError> {
        let item = self.pipelines.ports.get(&keys::pipeline(of)).await?;
        Ok(item.as_ref().map(Loaded::<Pipeline>::read).transpose()?.map(|loaded| loaded.x))
    }

    async fn attempt(
        &self,
        of: &Address,
        attempt: &Attempt,
        strategy: Option<&Strategy>,
        cause: Cause,
    ) -> Result<Handled, PortError> {
        let begun = self.pipelines.turn(of, Input::Begin(attempt), cause).await?;
        let x = self.state(of).await?;
        let present = |promotion: &&Promotion| {
            attempt.is_of(promotion) && promotion.attempt == attempt.attempt && promotion.phase == Phase::Attempting
        };
        if cause.again
            && x.as_ref()
                .and_then(|x| promotion(x, attempt))
                .is_some_and(|promotion| attempt.is_of(promotion) && runs_sequence(promotion))
        {
            // An earlier delivery may have committed how it ended, and then stopped.
            self.has_followed(of, attempt).await?;
        }
        // The evaluation that began it may have found that it is not needed any more.
        let begun =
            x.as_ref().and_then(|x| promotion(x, attempt)).filter(|promotion| begun == Handled::Committed && present(promotion));
        if let Some(task) = begun.and_then(|promotion| task(of, attempt, promotion)) {
            let run = x.as_ref().and_then(|x| x.run.as_ref()).filter(|run| run.number == attempt.run);
            let task = Task { authors: run.map(|run| run.authors.clone()).unwrap_or_default(), ..task };
            let outcome = self.while_it_goes_on(of, attempt, cause, self.outside.carry_out(&task)).await?;
            let ended = self.pipelines.turn(of, Input::Ended(attempt, &outcome), cause).await?;
            // Also if somebody was faster: that may have been this same commit, whose answer was lost.
            if matches!(outcome, Outcome::Created(Made::Sequence { .. })) {
                self.has_followed(of, attempt).await?;
            }
            if ended != Handled::Stale {
                return Ok(ended);
            }
        }
        self.tidy(of, attempt, strategy).await
    }

    /// Has somebody look at the sequence that carries out a promotion. It may have ended before the pipeline knew of it; whoever
    /// told of that end found nothing to follow.
    async fn has_followed(&self, of: &Address, attempt: &Attempt) -> Result<(), PortError> {
        let because = format!("attempt {}", attempt.attempt);
        let follow = Job::Follow { of: of.clone(), environment: attempt.environment.clone(), because };
        table::send_all(&self.pipelines.ports, &[follow.letter()]).await
    }

    /// The attempt does not count: somebody was faster, or slower. What it may have made is taken back, unless the pipeline still
    /// knows of it.
    async fn tidy(&self, of: &Address, attempt: &Attempt, strategy: Option<&Strategy>) -> Result<Handled, PortError> {
        let x = self.state(of).await?;
        let state = x.as_ref().and_then(|x| x.environments.get(&attempt.environment));
        let awaited = state.is_some_and(|state| {
            state.promotion.as_ref().is_some_and(|promotion| attempt.is_of(promotion) && !promotion.phase.is_final())
                || state.closing.iter().any(|closing| attempt.is_of(&closing.promotion))
        });
        if let Some(strategy) = strategy.filter(|strategy| !awaited && !matches!(strategy, Strategy::Notification(_))) {
            let task = Task {
                of: of.clone(),
                attempt: attempt.clone(),
                strategy: strategy.clone(),
                made: None,
                since: Timestamp::default(),
                authors: vec![],
            };
            if let Closed::Failed(_) = self.outside.take_back(&task, "this promotion is not awaited any more").await? {
                let reason = format!("{of}: what an attempt for {} made could not be taken back", attempt.environment);
                return Err(PortError::Retry { request: "attempt", reason });
            }
        }
        Ok(Handled::Stale)
    }

    /// A job whose closing was tried since is a copy: when it is tried again, the state says.
    async fn close(&self, of: &Address, attempt: &Attempt, due: Timestamp, cause: Cause) -> Result<Handled, PortError> {
        let Some(x) = self.state(of).await? else { return Ok(Handled::Stale) };
        let closing = x.environments.get(&attempt.environment).map(|state| state.closing.as_slice()).unwrap_or_default();
        let present = |closing: &&Closing| attempt.is_of(&closing.promotion) && closing.due == due;
        let Some(closing) = closing.iter().find(present) else {
            // An earlier delivery may have committed what it found, and then stopped before it did what that owes.
            if cause.again {
                settle(&self.pipelines, &x, cause).await?;
            }
            return Ok(Handled::Stale);
        };
        let how = match task(of, attempt, &closing.promotion) {
            Some(task) => self.outside.take_back(&task, &closing.comment).await?,
            None => Closed::Closed,
        };
        self.pipelines.turn(of, Input::Closed(attempt, &how), cause).await
    }

    /// Looks at the sequence that carries out the promotion into an environment.
    async fn follow(&self, of: &Address, environment: &str, cause: Cause) -> Result<Handled, PortError> {
        let Some(x) = self.state(of).await? else { return Ok(Handled::Stale) };
        let promotion =
            x.environments.get(environment).and_then(|state| state.promotion.as_ref()).filter(|promotion| runs_sequence(promotion));
        if let Some(promotion) = promotion {
            let attempt = Attempt::of(environment, promotion);
            let Some(task) = task(of, &attempt, promotion) else { return Ok(Handled::Stale) };
            if let Some(seen) = self.outside.follow(&task).await? {
                return self.pipelines.turn(of, Input::Seen(&attempt, &seen), cause).await;
            }
        }
        // An earlier delivery may have committed the end, and then stopped before it did what that owes.
        if cause.again {
            settle(&self.pipelines, &x, cause).await?;
        }
        Ok(if promotion.is_some() { Handled::Settled } else { Handled::Stale })
    }

    /// One look at a repository: every pipeline with an open pull request there learns what became of it.
    async fn look(&self, repository: &str, at: Timestamp, cause: Cause) -> Result<Handled, PortError> {
        let ports = &self.pipelines.ports;
        let item = ports.get(&keys::repository(repository)).await?;
        let planned = watch::next(item.as_ref());
        // An earlier delivery may have begun this look, and then stopped.
        let begun = cause.again && watch::is_held(item.as_ref(), at);
        if planned != Some(at) && !begun {
            // An earlier delivery may have planned the next look, and then stopped before it scheduled it.
            if let Some(planned) = planned.filter(|_| cause.again) {
                watch::arm(ports, repository, planned).await?;
            }
            return Ok(Handled::Stale);
        }
        if ports.now() < at {
            watch::arm(ports, repository, at).await?;
            return Ok(Handled::Settled);
        }
        let query = Query::table(keys::repository_partition(repository), 100).prefix(keys::OPEN);
        let (entries, _) = table::all(ports, query, REQUESTS).await?;
        let awaited: Vec<(Address, Attempt)> = entries.iter().filter_map(entry).collect();
        // A pipeline may have several of them.
        let wanted: BTreeSet<Key> = awaited.iter().map(|(of, _)| keys::pipeline(of)).collect();
        let states = table::read(ports, &wanted.into_iter().collect::<Vec<_>>()).await?;
        let (mut tasks, mut unobserved) = (vec![], vec![]);
        let mut youngest: Option<Timestamp> = None;
        for (of, attempt) in awaited {
            let x = states.get(&keys::pipeline(&of)).map(Loaded::<Pipeline>::read).transpose()?.map(|loaded| loaded.x);
            let open = x.as_ref().and_then(|x| promotion(x, &attempt));
            let open = open.filter(|promotion| attempt.is_of(promotion) && promotion.is_watched());
            match open.and_then(|promotion| Some((promotion, task(&of, &attempt, promotion)?))) {
                Some((promotion, task)) => {
                    youngest = youngest.max(promotion.attempted);
                    unobserved.push(promotion.is_unobserved());
                    tasks.push(if promotion.phase == Phase::Created { task } else { only_looked_at(task) });
                }
                None => watch::forget(ports, repository, &of, &attempt).await?,
            }
        }
        if tasks.is_empty() {
            let _ = watch::write(ports, repository, item.as_ref(), None, Default::default()).await?;
            return Ok(Handled::Settled);
        }
        // The same look may be under way: a webhook, or the sweep, has sent its message once more.
        let Some(held) = watch::take(ports, repository, item.as_ref(), at).await? else { return Ok(Handled::Stale) };
        let mark = item.as_ref().and_then(|item| item.text("etag"));
        let sight = self.outside.look(repository, &tasks, mark).await?;
        let (troubles, news) = troubled(&sight, &tasks, &unobserved, (item.as_ref(), ports.now()));
        let letters: Vec<_> = tasks
            .iter()
            .zip(news)
            .filter_map(|(task, seen)| Some((task, seen?)))
            .map(|(task, seen)| {
                let repository = Some(repository.to_owned());
                Message::Seen { to: task.of.clone(), attempt: task.attempt.clone(), seen, repository }.letter()
            })
            .collect();
        table::send_all(ports, &letters).await?;
        let age = youngest.map_or(Span(0), |youngest| ports.now() - youngest);
        let next = (ports.now() + watch::pause(age)).max(sight.not_before.unwrap_or_default());
        let remembered = (sight.mark.as_deref(), sight.not_before);
        watch::end(ports, repository, held, next, &watch::seen(remembered, ports.now(), &troubles)).await?;
        Ok(Handled::Committed)
    }
}

/// What looks at a repository fail for after this one, and what is to be told of each pull request: what was seen, or that it has
/// not been seen for a while.
fn troubled(
    sight: &Sight,
    tasks: &[Task],
    unobserved: &[bool],
    (item, now): (Option<&Item>, Timestamp),
) -> (Troubles, Vec<Option<Seen>>) {
    let known = watch::troubles(item);
    let mut troubles = Troubles::new();
    let mut news = vec![];
    for (n, task) in tasks.iter().enumerate() {
        let seen = sight.requests.get(n).cloned().flatten();
        let Some(why) = sight.failed.get(n).and_then(Option::as_ref) else {
            // The host answers again.
            let back = task.made.clone().filter(|_| unobserved[n]).map(Seen::Open);
            news.push(seen.or(back));
            continue;
        };
        let whose = whose(task);
        let trouble = Trouble::after(known.get(&whose), why, now);
        let for_long = |since: Option<Timestamp>, most: Span| since.is_some_and(|since| now - since >= most);
        let url = match &task.made {
            Some(Made::PullRequest { url, .. }) => url.as_str(),
            _ => "its pull request",
        };
        let since = trouble.since.rfc3339();
        news.push(if for_long(trouble.missing, watch::GIVEN_UP) {
            Some(Seen::Missing(format!("the repository of {url} has not been there for a day: {}", why.message)))
        } else if for_long(Some(trouble.since), watch::TOLD)
            && known.get(&whose).is_none_or(|known| known.why.reason != why.reason || !unobserved[n])
        {
            let message = format!("{url} waits to be merged, but has not been seen since {since}: {}", why.message);
            Some(Seen::Unobserved(Condition::new(&why.reason, message)))
        } else {
            None
        });
        troubles.insert(whose, trouble);
    }
    (troubles, news)
}

/// Whose credentials a look for a task takes.
fn whose(task: &Task) -> String {
    let secret = match &task.strategy {
        Strategy::PullRequest(request) => request.secret.as_str(),
        _ => "",
    };
    watch::of(&task.of.namespace, secret)
}

/// What ended badly is not merged by Keelway any more: only a person may have merged it.
fn only_looked_at(task: Task) -> Task {
    match task.strategy {
        Strategy::PullRequest(request) => Task { strategy: Strategy::PullRequest(PullRequest { merge: false, ..request }), ..task },
        _ => task,
    }
}

/// What an entry of a repository's list stands for.
fn entry(item: &Item) -> Option<(Address, Attempt)> {
    let of = fact::entered(item)?;
    Some((of, serde_json::from_str(item.text("j")?).ok()?))
}

fn promotion<'x>(x: &'x Pipeline, attempt: &Attempt) -> Option<&'x Promotion> {
    x.environments.get(&attempt.environment)?.promotion.as_ref()
}

/// Whether a sequence carries out the promotion at present.
pub(super) fn runs_sequence(promotion: &Promotion) -> bool {
    promotion.phase == Phase::Created && matches!(promotion.effect, Some(Made::Sequence { .. }))
}

fn task(of: &Address, attempt: &Attempt, promotion: &Promotion) -> Option<Task> {
    let strategy = promotion.strategy.clone()?;
    Some(Task {
        of: of.clone(),
        attempt: attempt.clone(),
        strategy,
        made: promotion.effect.clone(),
        since: promotion.since,
        authors: vec![],
    })
}

impl<P: Ports, O: Outside> Inbox for Attempts<P, O> {
    type Ports = P;
    type Message = Job;

    const NAME: &'static str = ATTEMPTS;

    fn ports(&self) -> &P {
        &self.pipelines.ports
    }
    fn retention(&self) -> Span {
        self.pipelines.limits.retention
    }
    async fn message(&self, message: &Job, cause: Cause) -> Result<Handled, PortError> {
        match message {
            Job::Attempt { of, attempt, strategy } => self.attempt(of, attempt, strategy.as_ref(), cause).await,
            Job::Close { of, attempt, due } => self.close(of, attempt, *due, cause).await,
            Job::Follow { of, environment, .. } => self.follow(of, environment, cause).await,
            Job::Look { repository, at } => self.look(repository, *at, cause).await,
        }
    }
}
