//! Starts the task or the build that carries an attempt out, asks for its state now and then, and stops it.

use crate::starters::{self, Start, Which};
use crate::{Attempt, Deployers, GRACE, LOOK, handled};
use keelway_domain::border::Permitted;
use keelway_domain::deployments::definition::Starter;
use keelway_domain::deployments::{Call, Desired, Progress, Reply};
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::border::Border;
use keelway_engine::deployments::started::{Became, Look, Started};
use keelway_engine::functions::Functions;
use keelway_engine::ports::{PortError, Ports};
use keelway_engine::protocol::{Handled, Inbox};
use keelway_engine::starters::Starters;

/// Requests take less than this.
const REQUESTS: Span = Span::seconds(45);
/// Its state is asked for after this time, then after twice as long, and so on, but at least every [`LOOK`]: events tell it sooner.
const FIRST_LOOK: Span = Span::seconds(15);
/// ECS shows a task for an hour after its end, and CodeBuild a build for a year. What is not shown that long after its start has
/// ended.
const FORGOTTEN: Span = Span::minutes(30);

impl<P: Ports, C: Functions + Starters> Deployers<P, C> {
    /// Starts what carries the attempt out, unless it is known to have been started; has it stop if the deployment is to.
    /// `vouched`: as the definition says.
    pub(crate) async fn start(
        &self,
        attempt: &Attempt<'_>,
        (starter, vouched): (&Starter, bool),
        at: Timestamp,
    ) -> Result<Handled, PortError> {
        let which = Which { of: attempt.of, n: attempt.n, attempt: attempt.attempt, callback: &self.callback };
        let start = match starters::start(starter, &which) {
            Ok(start) => start,
            Err(why) => return self.refuse(attempt, &why).await,
        };
        if start.waits {
            return self.wait(attempt, (starter, &start, vouched), at).await;
        }
        // Whoever is started claims the deployment itself.
        match self.launch(attempt, (starter, &start, vouched)).await? {
            Ok(_) => Ok(Handled::Committed),
            Err(why) => self.refuse(attempt, &why).await,
        }
    }

    /// Starts it, if the project may use it now: its ARN, or why not. What runs already may go on, and may always be stopped.
    async fn launch(
        &self,
        attempt: &Attempt<'_>,
        (starter, start, vouched): (&Starter, &Start, bool),
    ) -> Result<Result<String, String>, PortError> {
        let allowed = starter.check().and_then(|()| starter.resource().map_err(|error| error.to_string()));
        let resource = match allowed {
            Ok(resource) => resource,
            Err(why) => return Ok(Err(why)),
        };
        let border = Border::of(self.ports(), &attempt.of.namespace).await?;
        match border.permit(resource, vouched, &self.engine.home()) {
            Err(denied) => Ok(Err(denied.to_string())),
            Ok(permitted) => self.run(&permitted, start).await,
        }
    }

    async fn run(&self, _: &Permitted, start: &Start) -> Result<Result<String, String>, PortError> {
        match self.cloud.start(start.runner, &start.request).await {
            Err(error) if !error.passes() => Ok(Err(error.to_string())),
            started => started.map(Ok),
        }
    }

    /// Claims for what is started, asks what became of it, and has it stop if the deployment is to. The events of ECS and CodeBuild
    /// tell the engine the same, mostly sooner.
    async fn wait(
        &self,
        attempt: &Attempt<'_>,
        (starter, start, vouched): (&Starter, &Start, bool),
        at: Timestamp,
    ) -> Result<Handled, PortError> {
        let (token, claim) = attempt.call(REQUESTS);
        let told = self.engine.say(attempt.of, attempt.n, &claim).await?;
        let (Reply::Desired(desired), Some(x)) = (told.reply, told.config) else { return Ok(Handled::Stale) };
        let Some(d) = attempt.present(&x) else { return Ok(Handled::Stale) };
        let (mut point, look) = match Started::of(d) {
            Some(known) => {
                let (runner, request) = starters::look(starter, &known.arn);
                (known, Look::read(runner, &self.cloud.look(runner, &request).await?))
            }
            // It may have been started, and nobody knows as what: the same request tells.
            None => match self.launch(attempt, (starter, start, vouched)).await? {
                Ok(arn) => (Started { arn, ..Started::default() }, Look::Waits),
                Err(why) => return self.end(attempt, token, &why).await,
            },
        };
        let since = d.claim.as_ref().map_or(told.now, |claim| claim.at);
        let mut progress = Progress { message: format!("{} carries it out", point.arn), ..Progress::default() };
        let mut running = false;
        match look {
            Look::Became(ended @ Became::Ended(..), log) => {
                let call = ended.call(token, Progress { log, ..Progress::default() });
                return Ok(handled(&self.engine.say(attempt.of, attempt.n, &call).await?.reply));
            }
            Look::Missing if told.now - since > FORGOTTEN => {
                return self
                    .end(attempt, token, &format!("{} is not known any more, and how it ended is not either", point.arn))
                    .await;
            }
            Look::Became(Became::Runs, log) => (running, progress.log) = (true, log),
            Look::Missing | Look::Waits => {}
        }
        if desired == Desired::Cancel && !point.stopped {
            let (runner, request) = starters::stop(starter, &point.arn);
            match self.cloud.stop(runner, &request).await {
                Err(error) if error.passes() => return Err(error),
                // It has ended already.
                Ok(()) | Err(_) => (point.stopped, point.looks) = (true, 0),
            }
        }
        let pause = Span(FIRST_LOOK.0 << point.looks.min(10)).min(LOOK);
        point.looks = point.looks.saturating_add(1);
        // Every message has a time of its own, so that a copy of this one is known to be one.
        point.at = (told.now + pause).max(Timestamp(at.0 + 1));
        progress.checkpoint = point.text();
        let lease = (point.at + GRACE) - told.now;
        let beat = Call::Heartbeat { token, running, lease, progress };
        let told = self.engine.say(attempt.of, attempt.n, &beat).await?;
        if let Reply::Desired(_) = told.reply {
            self.send(attempt, point.at).await?;
        }
        Ok(handled(&told.reply))
    }

    /// The attempt fails before anything is started.
    async fn refuse(&self, attempt: &Attempt<'_>, why: &str) -> Result<Handled, PortError> {
        let (token, claim) = attempt.call(REQUESTS);
        match self.engine.say(attempt.of, attempt.n, &claim).await?.reply {
            Reply::Desired(_) => self.end(attempt, token, why).await,
            Reply::Refused(_) => Ok(Handled::Stale),
        }
    }

    async fn end(&self, attempt: &Attempt<'_>, token: String, why: &str) -> Result<Handled, PortError> {
        let end = Call::End { token, exit: None, message: why.to_owned(), progress: Progress::default() };
        Ok(handled(&self.engine.say(attempt.of, attempt.n, &end).await?.reply))
    }
}
