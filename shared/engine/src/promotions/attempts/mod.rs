//! Carries out what pipelines have decided: attempts, their closing, and looks at open pull requests. All of it waits for other
//! people's servers, so it has a queue and a function of its own.
//!
//! Usually once: an attempt is begun by one conditional write, and whoever begins it looks for what an earlier one may have made,
//! by an identity that all attempts share, before it makes anything.

mod carry;
mod close;
mod follow;
mod look;

use super::message::{Address, Job};
use super::{ATTEMPTS, Promotions, keys};
use crate::ports::{PortError, Ports};
use crate::protocol::work::work;
use crate::protocol::{Handled, Inbox, Loaded};
use keelway_domain::cause::Cause;
use keelway_domain::condition::Condition;
use keelway_domain::promotions::definition::Strategy;
use keelway_domain::promotions::{Attempt, Closed, Made, Outcome, Phase, Pipeline, Promotion, Seen};
use keelway_domain::time::{Span, Timestamp};
use std::future::Future;

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

    async fn state(&self, of: &Address) -> Result<Option<Pipeline>, PortError> {
        let item = self.pipelines.ports.get(&keys::pipeline(of)).await?;
        Ok(item.as_ref().map(Loaded::<Pipeline>::read).transpose()?.map(|loaded| loaded.x))
    }
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
        let (on, ports) = (self, self.ports());
        match message {
            Job::Attempt { of, attempt, strategy } => {
                let carry = carry::Carry { on, of, attempt, cause };
                match work(ports, cause, &carry).await? {
                    Handled::Stale => carry.tidy(strategy.as_ref()).await,
                    handled => Ok(handled),
                }
            }
            Job::Close { of, attempt, due } => work(ports, cause, &close::Close { on, of, attempt, due: *due, cause }).await,
            Job::Follow { of, environment, .. } => work(ports, cause, &follow::Follow { on, of, environment, cause }).await,
            Job::Look { repository, at } => {
                let again = cause.again;
                work(ports, cause, &look::Look { on, repository, at: *at, again }).await
            }
        }
    }
}
