//! The deployers that Keelway runs itself. They carry out deployments to aliases of functions by the contract of all deployers:
//! claim, report progress, end. Deployments that name a task or a build are started here ([`run`]).
//!
//! Each message is one step ([`next`]): read the aliases, claim the attempt (a repeated claim gets a new token, which makes that of
//! an earlier step invalid), carry out the stage of the checkpoint, store the next checkpoint with a lease that is longer than the
//! pause, and send the message of the next step. A lost message only costs time: when the lease ends, the engine sends another one.

mod aliases;
mod drift;
mod hooks;
mod judge;
mod look;
mod next;
mod published;
mod run;
mod stages;
mod step;

use crate::aliases::Aliases;
use crate::border::Border;
use crate::deployments::{Address, DEPLOYERS, Deployments, Job};
use crate::evaluations::Evaluations;
use crate::metrics::Metrics;
use crate::ports::{PortError, Ports};
use crate::protocol::work::work;
use crate::protocol::{Handled, Inbox};
use crate::runners::Runners;
use keelway_domain::cause::Cause;
use keelway_domain::deployments::checkpoint::Stage;
use keelway_domain::deployments::definition::Definition;
use keelway_domain::deployments::rights::Rights;
use keelway_domain::deployments::{Call, Config, Deployment, Reply, SOURCE};
use keelway_domain::ids::{hash64, sha256_hex};
use keelway_domain::time::{Span, Timestamp};
use uuid::Uuid;

/// A message that the deployers receive.
pub type Incoming = crate::protocol::Incoming<Job>;

/// The longest pause between two looks of a waiting step.
const LOOK: Span = Span::minutes(14);
/// How far the lease reaches beyond the next step.
const GRACE: Span = Span::seconds(45);
/// The exit codes of success and failure.
const SUCCEEDED: i64 = 0;
const FAILED: i64 = 1;

/// The attempt of a message.
#[derive(Clone, Copy)]
struct Attempt<'a> {
    of: &'a Address,
    n: u64,
    attempt: u32,
}

impl Attempt<'_> {
    /// The id of its claim.
    fn claim(&self) -> u64 {
        let Self { of, n, attempt } = self;
        hash64(&[b"built in", of.namespace.as_bytes(), of.name.as_bytes(), &n.to_be_bytes(), &attempt.to_be_bytes()])
    }

    /// The claim of this function, with a random token.
    fn call(&self, lease: Span) -> (String, Call) {
        let token = sha256_hex(Uuid::now_v7().as_bytes());
        (token.clone(), Call::Claim { by: SOURCE.into(), id: self.claim(), token, lease })
    }

    /// The deployment, if this function carries it or a part of it out, or must do so.
    fn present<'x>(&self, x: &'x Config) -> Option<&'x Deployment> {
        let d = x.in_flight().filter(|d| (d.n, d.attempt) == (self.n, self.attempt))?;
        let (is_asked, claim) = match &d.part {
            Some(part) => (part.is_open(), &part.claim),
            None => (d.content.starts && d.report.is_none(), &d.claim),
        };
        (is_asked && claim.as_ref().is_none_or(|claim| claim.id == self.claim())).then_some(d)
    }
}

/// The deployers that Keelway runs itself.
pub struct Deployers<P, C, M> {
    engine: Deployments<P>,
    cloud: C,
    evaluations: Evaluations<P, M>,
    callback: String,
}

impl<P: Ports, C: Aliases + Runners, M: Metrics> Deployers<P, C, M> {
    /// On this engine and these APIs; canaries are judged by what evaluations ask. `callback`: the address of Keelway's API for
    /// tasks and builds. Empty: they know it.
    pub fn new(engine: Deployments<P>, cloud: C, evaluations: Evaluations<P, M>, callback: &str) -> Self {
        Self { engine, cloud, evaluations, callback: callback.to_owned() }
    }

    async fn state(&self, of: &Address) -> Result<Option<Config>, PortError> {
        Ok(self.engine.states(std::slice::from_ref(of)).await?.into_iter().next().flatten())
    }

    /// The resources that a stage may use now.
    async fn rights(&self, of: &Address, definition: &Definition, stage: Stage) -> Result<Result<Rights, String>, PortError> {
        let border = Border::of(self.ports(), &of.namespace).await?;
        Ok(Rights::of(definition, stage, border.standing(definition.vouched, &self.engine.home())))
    }

    /// Reports on an attempt. If the claim is valid and the attempt continues at a later time, this sends the message for that
    /// time.
    async fn say(&self, attempt: Attempt<'_>, call: &Call, next: Option<Timestamp>) -> Result<Handled, PortError> {
        match (self.engine.say(attempt.of, attempt.n, call).await?.reply, next) {
            (Reply::Desired(_), Some(at)) => self.send(attempt, at).await?,
            (Reply::Desired(_), None) => {}
            // If another worker has taken over, or the deployment has ended, the call does not count.
            (Reply::Refused(_), _) => return Ok(Handled::Stale),
        }
        Ok(Handled::Committed)
    }

    /// Sends the message of the next step for a time.
    async fn send(&self, attempt: Attempt<'_>, at: Timestamp) -> Result<(), PortError> {
        let letter = Job::Start { of: attempt.of.clone(), n: attempt.n, attempt: attempt.attempt, at }.letter();
        let name = format!("deployer-{:016x}-{}", attempt.claim(), at.0);
        self.ports().send_at(letter.to, &name, &letter.body, at).await
    }
}

impl<P: Ports, C: Aliases + Runners, M: Metrics> Inbox for Deployers<P, C, M> {
    type Ports = P;
    type Message = Job;

    const NAME: &'static str = DEPLOYERS;

    fn ports(&self) -> &P {
        self.engine.ports()
    }
    fn retention(&self) -> Span {
        self.engine.retention()
    }
    async fn message(&self, message: &Job, cause: Cause) -> Result<Handled, PortError> {
        let on = self;
        match message {
            Job::Start { of, n, attempt, at } => {
                let attempt = Attempt { of, n: *n, attempt: *attempt };
                work(self.ports(), cause, &next::Next { on, attempt, at: *at, cause }).await
            }
            Job::Look { of, n, at } => work(self.ports(), cause, &look::Look { on, of, n: *n, at: *at }).await,
        }
    }
}
