//! Starts the task or build that carries an attempt out, polls its state, and stops it.

use super::next::Next;
use super::{Attempt, Deployers, GRACE, LOOK};
use crate::aliases::Aliases;
use crate::border::Border;
use crate::metrics::Metrics;
use crate::ports::{PortError, Ports};
use crate::protocol::work::{Claim, Work, work};
use crate::protocol::{Handled, Inbox};
use crate::runners::Runners;
use keelway_domain::border::Permitted;
use keelway_domain::deployments::definition::Starter;
use keelway_domain::deployments::runner::{Became, Look, Started, Which};
use keelway_domain::deployments::{Call, Deployment, Desired, Progress, Reply};
use keelway_domain::time::{Span, Timestamp};

/// The lease during requests.
const REQUESTS: Span = Span::seconds(45);
/// The pause before the first read of the state. It doubles with each further read, up to [`LOOK`], because events usually arrive
/// sooner.
const FIRST_LOOK: Span = Span::seconds(15);
/// How long after its start a task or build that is not shown counts as ended. ECS shows a task for an hour after its end,
/// CodeBuild a build for a year.
const FORGOTTEN: Span = Span::minutes(30);

/// A task or build that carries out a deployment: its end is the end of the deployment.
struct Run<'a, P, C, M> {
    on: &'a Deployers<P, C, M>,
    attempt: Attempt<'a>,
    starter: &'a Starter,
    vouched: bool,
    at: Timestamp,
}

/// A claim for a task or build.
struct Claimed {
    token: String,
    desired: Desired,
    d: Deployment,
    now: Timestamp,
}

impl<P: Ports, C: Aliases + Runners, M: Metrics> Work for Run<'_, P, C, M> {
    type Found = ();
    type Task = Claimed;
    /// The call to the deployment, and the time of the next look.
    type Outcome = (Call, Option<Timestamp>);

    async fn find(&self) -> Result<Option<()>, PortError> {
        Ok(Some(()))
    }

    async fn claim(&self, (): &()) -> Result<Claim<Claimed>, PortError> {
        let (token, claim) = self.attempt.call(REQUESTS);
        let told = self.on.engine.say(self.attempt.of, self.attempt.n, &claim).await?;
        let (Reply::Desired(desired), Some(x)) = (told.reply, told.config) else { return Ok(Claim::Not(Handled::Stale)) };
        let Some(d) = self.attempt.present(&x).cloned() else { return Ok(Claim::Not(Handled::Stale)) };
        Ok(Claim::Mine(Claimed { token, desired, d, now: told.now }))
    }

    /// Asks for the state, and stops the task or build if the deployment is cancelled. The events of ECS and CodeBuild bring the
    /// same state, mostly sooner.
    async fn outside(&self, (): &(), task: &Claimed) -> Result<Option<Self::Outcome>, PortError> {
        let (cloud, now, token) = (&self.on.cloud, task.now, task.token.clone());
        let (mut point, look) = match Started::of(&task.d) {
            Some(known) => {
                let look = cloud.look(self.starter, &known.arn).await?;
                (known, look)
            }
            // It may have been started without a known ARN; the same request returns it.
            None => match self.on.launch(self.attempt, (self.starter, self.vouched)).await? {
                Ok(arn) => (Started { arn, ..Started::default() }, Look::Waits),
                Err(why) => return Ok(Some((failed(token, why), None))),
            },
        };
        let since = task.d.claim.as_ref().map_or(now, |claim| claim.at);
        let mut progress = Progress { message: format!("{} carries it out", point.arn), ..Progress::default() };
        let mut running = false;
        match look {
            Look::Became(ended @ Became::Ended(..), log) => {
                return Ok(Some((ended.call(token, Progress { log, ..Progress::default() }), None)));
            }
            Look::Missing if now - since > FORGOTTEN => {
                let why = format!("{} is not known any more, and how it ended is not either", point.arn);
                return Ok(Some((failed(token, why), None)));
            }
            Look::Became(Became::Runs, log) => (running, progress.log) = (true, log),
            Look::Missing | Look::Waits => {}
        }
        if task.desired == Desired::Cancel && !point.stopped {
            match cloud.stop(self.starter, &point.arn).await {
                Err(error) if error.passes() => return Err(error),
                // It has ended already.
                Ok(()) | Err(_) => (point.stopped, point.looks) = (true, 0),
            }
        }
        let pause = Span(FIRST_LOOK.0 << point.looks.min(10)).min(LOOK);
        point.looks = point.looks.saturating_add(1);
        // Every message has another time, so that a copy of this one can be recognised.
        point.at = (now + pause).max(Timestamp(self.at.0 + 1));
        progress.checkpoint = point.text();
        let beat = Call::Heartbeat { token, running, lease: (point.at + GRACE) - now, progress };
        Ok(Some((beat, Some(point.at))))
    }

    async fn tell(&self, (): &(), _: Claimed, (call, next): Self::Outcome) -> Result<Handled, PortError> {
        self.on.say(self.attempt, &call, next).await
    }
}

impl<P: Ports, C: Aliases + Runners, M: Metrics> Deployers<P, C, M> {
    /// Starts the task or build of the attempt, unless it was started; stops it if the deployment must stop. `vouched`: see the
    /// definition.
    pub(super) async fn start(&self, next: &Next<'_, P, C, M>, (starter, vouched): (&Starter, bool)) -> Result<Handled, PortError> {
        let attempt = next.attempt;
        if let Err(why) = starter.is_complete() {
            return self.refuse(attempt, why).await;
        }
        if starter.waits() {
            return work(self.ports(), next.cause, &Run { on: self, attempt, starter, vouched, at: next.at }).await;
        }
        // The started task claims the deployment itself.
        match self.launch(attempt, (starter, vouched)).await? {
            Ok(_) => Ok(Handled::Committed),
            Err(why) => self.refuse(attempt, why).await,
        }
    }

    /// Starts it, if the project may use it now; returns its ARN, or why not. A running one may continue, and may always be
    /// stopped.
    async fn launch(
        &self,
        attempt: Attempt<'_>,
        (starter, vouched): (&Starter, bool),
    ) -> Result<Result<String, String>, PortError> {
        let allowed = starter.check().and_then(|()| starter.resource().map_err(|error| error.to_string()));
        let resource = match allowed {
            Ok(resource) => resource,
            Err(why) => return Ok(Err(why)),
        };
        let border = Border::of(self.ports(), &attempt.of.namespace).await?;
        match border.permit(resource, vouched, &self.engine.home()) {
            Err(denied) => Ok(Err(denied.to_string())),
            Ok(permitted) => self.run(&permitted, attempt, starter).await,
        }
    }

    async fn run(&self, _: &Permitted, attempt: Attempt<'_>, starter: &Starter) -> Result<Result<String, String>, PortError> {
        let which = Which { of: attempt.of, n: attempt.n, attempt: attempt.attempt, callback: &self.callback };
        match self.cloud.start(starter, &which).await {
            Err(error) if !error.passes() => Ok(Err(error.to_string())),
            started => started.map(Ok),
        }
    }

    /// Fails the attempt before anything is started.
    async fn refuse(&self, attempt: Attempt<'_>, why: String) -> Result<Handled, PortError> {
        let (token, claim) = attempt.call(REQUESTS);
        match self.engine.say(attempt.of, attempt.n, &claim).await?.reply {
            Reply::Desired(_) => self.say(attempt, &failed(token, why), None).await,
            Reply::Refused(_) => Ok(Handled::Stale),
        }
    }
}

fn failed(token: String, message: String) -> Call {
    Call::End { token, exit: None, message, progress: Progress::default() }
}
