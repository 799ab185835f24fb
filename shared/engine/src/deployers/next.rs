//! Takes the next step of an attempt, if it is due, or if an order must not wait.

use super::drift::{self, Deployed};
use super::step::Step;
use super::{Attempt, Deployers, GRACE, LOOK, SUCCEEDED, aliases};
use crate::aliases::Aliases;
use crate::metrics::Metrics;
use crate::ports::{PortError, Ports};
use crate::protocol::Handled;
use crate::protocol::work::{Claim, Work};
use crate::runners::Runners;
use keelway_domain::cause::Cause;
use keelway_domain::deployments::checkpoint::{Checkpoint, Stage};
use keelway_domain::deployments::rights::Rights;
use keelway_domain::deployments::runner::Started;
use keelway_domain::deployments::{Call, Config, Deployment, Desired, Progress, Reply};
use keelway_domain::time::{Span, Timestamp};

/// The lease during a step. A longer step renews it; an interrupted step is repeated when the lease ends, whatever happens to the
/// message in the queue.
const STEP: Span = Span::seconds(45);
/// The interval at which the claim is renewed during a step: a hook may take minutes.
const BEAT: Span = Span::seconds(15);

pub(super) struct Next<'a, P, C, M> {
    pub on: &'a Deployers<P, C, M>,
    pub attempt: Attempt<'a>,
    pub at: Timestamp,
    pub cause: Cause,
}

/// A claimed step.
pub(super) struct Claimed {
    token: String,
    x: Config,
    step: Step,
    desired: Desired,
    /// Why the step may not be taken.
    denied: Option<String>,
}

impl<P: Ports, C: Aliases + Runners, M: Metrics> Work for Next<'_, P, C, M> {
    type Found = Config;
    type Task = Claimed;
    /// The result of a step, with the exit code if it was the last one.
    type Outcome = (Step, Option<i64>);

    async fn find(&self) -> Result<Option<Config>, PortError> {
        self.on.state(self.attempt.of).await
    }

    async fn claim(&self, x: &Config) -> Result<Claim<Claimed>, PortError> {
        let (on, attempt) = (self.on, self.attempt);
        let Some(d) = attempt.present(x) else { return Ok(Claim::Unwanted) };
        let (is_news, due) = when(x, d);
        if !is_news {
            // This step is complete.
            if self.at < due {
                return Ok(Claim::Unwanted);
            }
            if on.engine.now() < self.at {
                on.send(attempt, self.at).await?;
                return Ok(Claim::Not(Handled::Settled));
            }
        }
        let Some(snapshot) = on.engine.snapshot(attempt.of, d.n, d.snapshot).await? else {
            let reason = format!("the snapshot of {} is missing", x.version_name(d.n));
            return Err(PortError::Refused { request: "deployer", reason });
        };
        let definition = snapshot.definition;
        if let Some(starter) = definition.deployer.as_ref().filter(|_| d.part.is_none()) {
            return on.start(self, (starter, definition.vouched)).await.map(Claim::Not);
        }
        let stage = Checkpoint::of(d).stage;
        let rights = on.rights(attempt.of, &definition, stage).await?;
        let seen = match &rights {
            Ok(rights) if stage.looks() => aliases::see(&on.cloud, &definition, rights).await,
            _ => aliases::Seen::new(),
        };
        let (token, claim) = attempt.call(STEP);
        let told = on.engine.say(attempt.of, attempt.n, &claim).await?;
        let (Reply::Desired(desired), Some(x)) = (told.reply, told.config) else { return Ok(Claim::Not(Handled::Stale)) };
        let Some(d) = attempt.present(&x) else { return Ok(Claim::Not(Handled::Stale)) };
        let (rights, denied) = match rights {
            Ok(rights) => (rights, None),
            Err(why) => (Rights::default(), Some(why)),
        };
        let step = Step::new(attempt.of, (&x, d), definition, (told.now, seen, rights));
        Ok(Claim::Mine(Claimed { token, step, desired, denied, x }))
    }

    async fn outside(&self, _: &Config, task: &Claimed) -> Result<Option<Self::Outcome>, PortError> {
        let mut step = task.step.clone();
        let exit = self.on.take(&mut step, task.desired, task.denied.clone()).await;
        Ok(Some((step, exit)))
    }

    /// Reports the progress and sends the next message, or reports the end.
    async fn tell(&self, _: &Config, task: Claimed, (step, exit): Self::Outcome) -> Result<Handled, PortError> {
        let Claimed { token, x, .. } = task;
        if task.step.point.stage == Stage::Look && step.point.stage != Stage::Look {
            self.compare(&x, &step).await?;
        }
        let Step { mut point, mut progress, now, .. } = step;
        if let Some(exit) = exit {
            progress.checkpoint = point.text();
            let message = if exit == SUCCEEDED { progress.message.clone() } else { point.why };
            return self.on.say(self.attempt, &Call::End { token, exit: Some(exit), message, progress }, None).await;
        }
        // A version that holds is judged nevertheless.
        let judges = matches!(point.stage, Stage::Judge(_));
        let waits = (point.hold.is_some() && !judges) || point.paused;
        let next = if waits { now + LOOK } else { point.due.min(now + LOOK) };
        // Every message has another time, so that a copy of this one can be recognised.
        point.at = next.max(Timestamp(self.at.0 + 1));
        progress.checkpoint = point.text();
        let beat = Call::Heartbeat { token, running: true, lease: (point.at + GRACE) - now, progress };
        self.on.say(self.attempt, &beat, Some(point.at)).await
    }

    async fn owed(&self, x: &Config) -> Result<(), PortError> {
        match self.attempt.present(x) {
            // The worker may have stopped before it sent the next message.
            Some(d) => self.on.send(self.attempt, when(x, d).1).await,
            // An earlier delivery of this message may have ended the attempt.
            None => self.on.engine.remind(self.attempt.of, x).await,
        }
    }

    fn every(&self) -> Option<Span> {
        Some(BEAT)
    }

    async fn beat(&self, task: &Claimed, _: u64) -> Result<(), PortError> {
        let (token, progress) = (task.token.clone(), Progress::default());
        let beat = Call::Heartbeat { token, running: false, lease: STEP, progress };
        self.on.engine.say(self.attempt.of, self.attempt.n, &beat).await.map(drop)
    }
}

impl<P: Ports, C: Aliases + Runners, M: Metrics> Next<'_, P, C, M> {
    /// Reports to the config if a deployment does not begin where the last one ended.
    async fn compare(&self, x: &Config, step: &Step) -> Result<(), PortError> {
        let (engine, of) = (&self.on.engine, self.attempt.of);
        let Some(deployed) = Deployed::active(engine, of, x).await? else { return Ok(()) };
        match drift::at_start(&deployed, x, step) {
            Some(sight) => engine.saw(of, sight).await,
            None => Ok(()),
        }
    }
}

/// Whether an order must not wait for the next job, and the time of that job. Jobs for earlier times are complete.
fn when(x: &Config, d: &Deployment) -> (bool, Timestamp) {
    match Started::of(d).filter(|_| d.part.is_none()) {
        Some(started) => (started.is_news(d), started.at),
        None => {
            let point = Checkpoint::of(d);
            (point.is_news(d, x.paused.is_some()), point.at)
        }
    }
}
