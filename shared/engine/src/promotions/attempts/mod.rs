//! Carries out the orders of pipelines: attempts, their closing, and looks at open pull requests. All of these wait for servers of
//! other people, so they have a queue and a function of their own.
//!
//! Attempts take effect once, as a rule: an attempt begins with one conditional write, and its worker then searches for the effect
//! of an earlier attempt, by an identity that all attempts share, before it creates anything.

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
use keelway_domain::promotions::{Attempt, AttemptResult, Closed, Made, Phase, Pipeline, Promotion, Seen};
use keelway_domain::time::{Span, Timestamp};
use std::future::Future;

/// An attempt, with everything that its worker needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// The pipeline.
    pub of: Address,
    /// The attempt.
    pub attempt: Attempt,
    /// The result.
    pub strategy: Strategy,
    /// The effect of earlier attempts, if known.
    pub made: Option<Made>,
    /// The time at which the promotion became necessary.
    pub since: Timestamp,
    /// The identities of the revision's authors. Empty: they are not known.
    pub authors: Vec<String>,
}

impl Task {
    /// The identity of the effect.
    pub fn identity(&self) -> u64 {
        self.attempt.identity(&self.of.namespace, &self.of.name)
    }
}

/// The result of a look at a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sight {
    /// The state of each requested pull request, in order. `None`: it has not changed.
    pub requests: Vec<Option<Seen>>,
    /// Why a requested pull request could not be read, in order. `None`: it was read. May be shorter.
    pub failed: Vec<Option<Condition>>,
    /// The host's mark of this answer, which makes the next look cheaper.
    pub mark: Option<String>,
    /// The host accepts no look before this time.
    pub not_before: Option<Timestamp>,
}

/// The servers of other people. Each method may be repeated after it has had its effect, because it searches for the effect first.
pub trait Outside: Send + Sync {
    /// Carries out an attempt, unless its effect exists already.
    fn carry_out(&self, task: &Task) -> impl Future<Output = Result<AttemptResult, PortError>> + Send;
    /// Takes back the effect of an attempt, with a comment. An unknown effect is found by its identity.
    fn take_back(&self, task: &Task, comment: &str) -> impl Future<Output = Result<Closed, PortError>> + Send;
    /// Reads the state of the sequence that carries an attempt out. `None`: it continues.
    fn follow(&self, task: &Task) -> impl Future<Output = Result<Option<Seen>, PortError>> + Send;
    /// Looks at pull requests of one repository.
    fn look(&self, repository: &str, tasks: &[Task], mark: Option<&str>) -> impl Future<Output = Result<Sight, PortError>> + Send;
}

/// A message that attempts receive.
pub type Incoming = crate::protocol::Incoming<Job>;

/// Carries out attempts.
pub struct Attempts<P, O> {
    pipelines: Promotions<P>,
    outside: O,
    heartbeat: Option<Span>,
}

impl<P: Ports, O: Outside> Attempts<P, O> {
    /// Returns a worker that uses these ports.
    pub fn new(pipelines: Promotions<P>, outside: O) -> Self {
        Self { pipelines, outside, heartbeat: None }
    }

    /// Sends heartbeats at this interval. Without heartbeats, an attempt may take as long as its first lease at most.
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

/// Whether a sequence is carrying out the promotion.
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
