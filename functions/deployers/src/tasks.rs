//! Starts the task or the build that carries an attempt out, and stops it.

use crate::starters::{self, Start, Which};
use crate::{Attempt, Deployers, handled};
use keelway_domain::deployments::definition::Starter;
use keelway_domain::deployments::{Call, Desired, LEASE_MOST, Progress, Reply};
use keelway_domain::time::Span;
use keelway_engine::deployments::started::{arn, checkpoint};
use keelway_engine::functions::Functions;
use keelway_engine::ports::{PortError, Ports};
use keelway_engine::protocol::Handled;
use keelway_engine::starters::Starters;

/// Requests take less than this.
const REQUESTS: Span = Span::minutes(2);

impl<P: Ports, C: Functions + Starters> Deployers<P, C> {
    /// Starts what carries the attempt out, unless it is known to have been started; has it stop if the deployment is to.
    pub(crate) async fn start(&self, attempt: &Attempt<'_>, starter: &Starter) -> Result<Handled, PortError> {
        let which = Which { of: attempt.of, n: attempt.n, attempt: attempt.attempt, callback: &self.callback };
        let start = match starters::start(starter, &which) {
            Ok(start) => start,
            Err(why) => return self.refuse(attempt, &why).await,
        };
        if start.waits {
            return self.wait(attempt, starter, &start).await;
        }
        // Whoever is started claims the deployment itself.
        match self.cloud.start(start.runner, &start.request).await {
            Ok(_) => Ok(Handled::Committed),
            Err(error) if error.passes() => Err(error),
            Err(error) => self.refuse(attempt, &error.to_string()).await,
        }
    }

    /// Claims for what is started; the engine learns its end.
    async fn wait(&self, attempt: &Attempt<'_>, starter: &Starter, start: &Start) -> Result<Handled, PortError> {
        let (token, claim) = attempt.call(REQUESTS);
        let told = self.engine.say(attempt.of, attempt.n, &claim).await?;
        let (Reply::Desired(_), Some(x)) = (told.reply, told.config) else { return Ok(Handled::Stale) };
        let Some(d) = attempt.present(&x) else { return Ok(Handled::Stale) };
        let known = match arn(d) {
            Some(known) => known,
            // It may have been started, and nobody knows as what: the same request tells.
            None => match self.cloud.start(start.runner, &start.request).await {
                Ok(known) => known,
                Err(error) if error.passes() => return Err(error),
                Err(error) => return self.end(attempt, token, &error.to_string()).await,
            },
        };
        let progress =
            Progress { checkpoint: checkpoint(&known), message: format!("{known} carries it out"), ..Progress::default() };
        let beat = Call::Heartbeat { token, running: false, lease: LEASE_MOST, progress };
        let told = self.engine.say(attempt.of, attempt.n, &beat).await?;
        if told.reply == Reply::Desired(Desired::Cancel) {
            let (runner, request) = starters::stop(starter, &known);
            match self.cloud.stop(runner, &request).await {
                Err(error) if error.passes() => return Err(error),
                // It has ended already.
                Ok(()) | Err(_) => {}
            }
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
