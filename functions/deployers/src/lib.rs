//! Carries out deployments to Lambda aliases, by the contract that every deployer has: it claims, says how far it is, and ends.
//! Deployments that name a task of ECS or a build of CodeBuild are started here (`tasks`).
//!
//! One message is one step: look at the aliases, claim the attempt (the same claim again gets it again, with a new token, so
//! whoever took an earlier step and is still at it counts no more), do what is desired and what the checkpoint says is next, keep
//! the next checkpoint with a lease that reaches beyond it, and send the message of the next step. A lost message costs time: when
//! the lease ends, the engine sends another one.

mod aliases;
mod alive;
mod checkpoint;
mod drift;
mod hooks;
mod plan;
mod published;
mod rights;
mod starters;
mod tasks;
mod work;

use checkpoint::{Checkpoint, Stage};
use drift::Deployed;
use keelway_domain::cause::Cause;
use keelway_domain::deployments::definition::Definition;
use keelway_domain::deployments::{Call, Config, Deployment, Desired, MAX_CHECKPOINT, Reply, SOURCE, Status};
use keelway_domain::ids::{hash64, sha256_hex};
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::border::Border;
use keelway_engine::deployments::started::Started;
use keelway_engine::deployments::{Address, DEPLOYERS, Deployments, Job};
use keelway_engine::functions::Functions;
use keelway_engine::ports::{PortError, Ports};
use keelway_engine::protocol::{Handled, Inbox};
use keelway_engine::starters::Starters;
use rights::Rights;
use uuid::Uuid;
use work::{Done, Work};

/// A delivery to this function.
pub type Delivery = keelway_engine::protocol::Delivery<Job>;

/// Most steps take less than this. Whoever takes a longer one says so meanwhile; whoever stops in the middle is followed by
/// another one when it ends, whatever becomes of the message in the queue.
const STEP: Span = Span::seconds(45);
/// Whoever waits looks at least so often.
const LOOK: Span = Span::minutes(14);
/// The lease reaches so far beyond the next step.
const GRACE: Span = Span::seconds(45);
/// The exit codes of a deployment that succeeded, and of one that did not.
const SUCCEEDED: i64 = 0;
const FAILED: i64 = 1;

/// Which attempt a message is about.
struct Attempt<'a> {
    of: &'a Address,
    n: u64,
    attempt: u32,
}

impl Attempt<'_> {
    /// Identifies its claim.
    fn claim(&self) -> u64 {
        let Self { of, n, attempt } = self;
        hash64(&[b"built in", of.namespace.as_bytes(), of.name.as_bytes(), &n.to_be_bytes(), &attempt.to_be_bytes()])
    }

    /// The claim of this function, with a token that nobody else knows.
    fn call(&self, lease: Span) -> (String, Call) {
        let token = sha256_hex(Uuid::now_v7().as_bytes());
        (token.clone(), Call::Claim { by: SOURCE.into(), id: self.claim(), token, lease })
    }

    /// The deployment, if this function is to carry it out, or does; or a part of it for somebody else.
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
pub struct Deployers<P, C> {
    engine: Deployments<P>,
    cloud: C,
    callback: String,
}

impl<P: Ports, C: Functions + Starters> Deployers<P, C> {
    /// On this engine and with these APIs. `callback`: the address of Keelway's own API, for what is started; empty: it knows.
    pub fn new(engine: Deployments<P>, cloud: C, callback: &str) -> Self {
        Self { engine, cloud, callback: callback.to_owned() }
    }

    /// The job for a time: take the next step, if it is time, or if there is news.
    async fn job(&self, attempt: &Attempt<'_>, at: Timestamp, again: bool) -> Result<Handled, PortError> {
        let states = self.engine.states(std::slice::from_ref(attempt.of)).await?;
        let Some(x) = states.into_iter().next().flatten() else { return Ok(Handled::Stale) };
        let Some(d) = attempt.present(&x) else {
            // It may be this message that ended it, and stopped there.
            if again {
                self.engine.remind(attempt.of, &x).await?;
            }
            return Ok(Handled::Stale);
        };
        let (is_news, next) = match Started::of(d).filter(|_| d.part.is_none()) {
            Some(started) => (started.is_news(d), started.at),
            None => {
                let point = Checkpoint::of(d);
                (point.is_news(d, x.paused.is_some()), point.at)
            }
        };
        if !is_news {
            if at < next {
                // This step was taken; whoever took it may have stopped before it sent the next message.
                if again {
                    self.send(attempt, next).await?;
                }
                return Ok(Handled::Stale);
            }
            if self.engine.now() < at {
                self.send(attempt, at).await?;
                return Ok(Handled::Settled);
            }
        }
        let Some(snapshot) = self.engine.snapshot(attempt.of, d.n, d.snapshot).await? else {
            let reason = format!("the snapshot of {} is missing", x.version_name(d.n));
            return Err(PortError::Refused { request: "deployer", reason });
        };
        if let Some(starter) = snapshot.definition.deployer.as_ref().filter(|_| d.part.is_none()) {
            return self.start(attempt, (starter, snapshot.definition.vouched), at).await;
        }
        let stage = Checkpoint::of(d).stage;
        let rights = self.rights(attempt.of, &snapshot.definition, stage).await?;
        let seen = match &rights {
            Ok(rights) if stage.looks() => aliases::see(&self.cloud, &snapshot.definition, rights).await,
            _ => aliases::Seen::new(),
        };
        let (token, claim) = attempt.call(STEP);
        let told = self.engine.say(attempt.of, attempt.n, &claim).await?;
        let (Reply::Desired(desired), Some(x)) = (told.reply, told.config) else { return Ok(Handled::Stale) };
        let Some(d) = attempt.present(&x) else { return Ok(Handled::Stale) };
        let (rights, denied) = match rights {
            Ok(rights) => (rights, None),
            Err(why) => (Rights::default(), Some(why)),
        };
        let mut work = Work::new(attempt.of, (&x, d), snapshot.definition, (told.now, seen, rights));
        let exit = self.alive(attempt, &token, self.step(&mut work, desired, denied)).await;
        if stage == Stage::Look && work.point.stage != Stage::Look {
            self.compare(attempt.of, &x, &work).await?;
        }
        self.tell(attempt, work, (token, at), exit).await
    }

    /// Tells the config if a deployment does not begin where the last one ended.
    async fn compare(&self, of: &Address, x: &Config, work: &Work) -> Result<(), PortError> {
        let Some(deployed) = Deployed::active(&self.engine, of, x).await? else { return Ok(()) };
        match drift::at_start(&deployed, x, work) {
            Some(sight) => self.engine.saw(of, sight).await,
            None => Ok(()),
        }
    }

    /// Looks at what the targets of a config at rest serve.
    async fn look(&self, of: &Address, n: u64, at: Timestamp) -> Result<Handled, PortError> {
        let states = self.engine.states(std::slice::from_ref(of)).await?;
        let rests = |x: &Config| x.in_flight().is_none() && x.active.as_ref().is_some_and(|active| active.n == n);
        let Some(x) = states.into_iter().next().flatten().filter(rests) else { return Ok(Handled::Stale) };
        let Some(deployed) = Deployed::active(&self.engine, of, &x).await? else { return Ok(Handled::Stale) };
        let rights = match self.rights(of, &deployed.definition, Stage::Look).await? {
            Ok(rights) => rights,
            Err(why) => {
                tracing::warn!(config = %of, why, "what the targets serve may not be looked at");
                return Ok(Handled::Stale);
            }
        };
        let seen = aliases::see(&self.cloud, &deployed.definition, &rights).await;
        if let Some(sight) = drift::at_rest(&deployed, &x, at, seen)? {
            self.engine.saw(of, sight).await?;
        }
        Ok(Handled::Settled)
    }

    /// What a stage may use now.
    async fn rights(&self, of: &Address, definition: &Definition, stage: Stage) -> Result<Result<Rights, String>, PortError> {
        let border = Border::of(self.ports(), &of.namespace).await?;
        Ok(Rights::of(definition, stage, border.standing(definition.vouched, &self.engine.home())))
    }

    /// Does what is next, unless it is denied. Returns the exit code if nothing is.
    async fn step(&self, work: &mut Work, desired: Desired, denied: Option<String>) -> Option<i64> {
        let now = work.now;
        if desired == Desired::Cancel && work.point.stage != Stage::Back {
            let back = work.deployment.part.as_ref().and_then(|part| part.back.as_ref());
            let cancel = work.deployment.cancel.as_ref().or(back);
            let why = cancel.map_or_else(|| "it was cancelled".to_owned(), |cancel| cancel.message.clone());
            return self.give_up(work, &why);
        }
        let back = work.point.stage == Stage::Back;
        work.point.paused = desired == Desired::Pause && !back;
        if work.point.paused {
            work.point.tries = 0;
            work.tell("paused: it goes on when it is resumed");
            return None;
        }
        let holds = work.point.hold.is_some_and(|told| work.deployment.proceeds <= told);
        if holds || now < work.point.due {
            return None;
        }
        work.point.hold = None;
        let done = match denied {
            Some(why) => Done::Fail(why),
            None => self.act(work).await.unwrap_or_else(Done::from),
        };
        let patience = work.definition.strategy.timeout;
        match done {
            Done::Go if back => Some(FAILED),
            Done::Go => self.advance(work),
            Done::Fail(why) if back => {
                work.tell(why);
                Some(FAILED)
            }
            Done::Fail(why) => self.give_up(work, &why),
            Done::Patiently(why) => {
                work.tell(why);
                work.point.in_vain(now);
                None
            }
            Done::Again(why) => {
                let long = work.point.in_vain(now) > patience;
                if long && patience > Span(0) && !back {
                    return self.give_up(work, &format!("it took longer than {patience}: {why}"));
                }
                work.tell(why);
                None
            }
        }
    }

    /// The step itself.
    async fn act(&self, work: &mut Work) -> Result<Done, PortError> {
        let which = match work.point.stage {
            Stage::Look => return aliases::look(work),
            Stage::Publish => {
                published::find(&self.engine, &self.cloud, work).await?;
                return aliases::publish(&self.cloud, work).await;
            }
            Stage::Ready => return aliases::ready(&self.cloud, work).await,
            Stage::Shift(n) => {
                let weights = plan::weights(&work.definition.strategy, work.at_once());
                let weight = weights.get(n).map_or(100, |step| step.weight);
                return aliases::shift(&self.cloud, work, weight).await;
            }
            Stage::End => return Ok(Done::Go),
            Stage::Back => return aliases::back(&self.cloud, work, Status::Failed).await,
            Stage::Restore => return aliases::back(&self.cloud, work, Status::Complete).await,
            Stage::Pre => "pre",
            Stage::Mid => "mid",
            Stage::Post => "post",
        };
        match rights::hook(&work.definition, work.point.stage).cloned() {
            Some(hook) => hooks::run(&self.engine, &self.cloud, work, which, &hook).await,
            None => Ok(Done::Go),
        }
    }

    /// What follows the stage that is done.
    fn advance(&self, work: &mut Work) -> Option<i64> {
        let stages = plan::stages(&work.definition, &work.point, work.at_once());
        let place = stages.iter().position(|stage| *stage == work.point.stage);
        let next = place.and_then(|place| stages.get(place + 1)).copied().unwrap_or(Stage::End);
        let so_far = plan::goes_so_far(work, work.point.stage, next);
        let mut due = work.now;
        let mut hold = None;
        if let Stage::Shift(n) = work.point.stage {
            let weights = plan::weights(&work.definition.strategy, work.at_once());
            match weights.get(n).and_then(|step| step.bake) {
                Some(bake) => due = due + bake,
                // Whoever asks for more proceeds by that: nothing holds it.
                None if so_far => {}
                None => {
                    hold = Some(work.deployment.proceeds);
                    work.tell(format!("{}; it holds until it is told to proceed", work.progress.message.clone()));
                }
            }
            if n + 1 == weights.len() && !work.goes_back() {
                due = due.max(work.now + plan::least_bake(&work.definition));
            }
        }
        if next == Stage::End && due <= work.now {
            return self.succeed(work);
        }
        if work.point.stage == Stage::End {
            return self.succeed(work);
        }
        work.point.enter(next, due);
        work.point.hold = hold;
        if work.point.text().len() > MAX_CHECKPOINT {
            return self.give_up(work, "it has too many targets to remember where each one was: split it into several configs");
        }
        so_far.then_some(SUCCEEDED)
    }

    fn succeed(&self, work: &mut Work) -> Option<i64> {
        if work.point.stage == Stage::Restore {
            work.tell("the test is over: every alias points to where it did before");
            return Some(SUCCEEDED);
        }
        for target in work.definition.targets.clone() {
            let to = work.point.aliases.get(&target.name).map(|place| place.to.clone()).unwrap_or_default();
            work.tell_target(&target, Status::Complete, format!("at version {to}"));
        }
        work.tell("every alias points to the new version");
        Some(SUCCEEDED)
    }

    /// The deployment fails: at once if nothing was changed, or after the aliases are back.
    fn give_up(&self, work: &mut Work, why: &str) -> Option<i64> {
        work.tell(why);
        work.point.why = why.chars().take(500).collect();
        if !work.point.stage.has_begun() {
            return Some(FAILED);
        }
        work.point.enter(Stage::Back, work.now);
        None
    }

    /// Says how far it is, and sends the next message; or says how it ended.
    async fn tell(
        &self,
        attempt: &Attempt<'_>,
        work: Work,
        said: (String, Timestamp),
        exit: Option<i64>,
    ) -> Result<Handled, PortError> {
        let (token, at) = said;
        let Work { mut point, mut progress, now, .. } = work;
        if let Some(exit) = exit {
            progress.checkpoint = point.text();
            let message = if exit == SUCCEEDED { progress.message.clone() } else { point.why };
            let end = Call::End { token, exit: Some(exit), message, progress };
            let told = self.engine.say(attempt.of, attempt.n, &end).await?;
            return Ok(handled(&told.reply));
        }
        let waits = point.hold.is_some() || point.paused;
        let next = if waits { now + LOOK } else { point.due.min(now + LOOK) };
        // Every message has a time of its own, so that a copy of this one is known to be one.
        point.at = next.max(Timestamp(at.0 + 1));
        progress.checkpoint = point.text();
        let lease = (point.at + GRACE) - now;
        let beat = Call::Heartbeat { token, running: true, lease, progress };
        let told = self.engine.say(attempt.of, attempt.n, &beat).await?;
        if let Reply::Desired(_) = told.reply {
            self.send(attempt, point.at).await?;
        }
        Ok(handled(&told.reply))
    }

    /// The message of the step at a time.
    async fn send(&self, attempt: &Attempt<'_>, at: Timestamp) -> Result<(), PortError> {
        let letter = Job::Start { of: attempt.of.clone(), n: attempt.n, attempt: attempt.attempt, at }.letter();
        let name = format!("deployer-{:016x}-{}", attempt.claim(), at.0);
        self.ports().send_at(letter.to, &name, &letter.body, at).await
    }
}

/// Somebody else goes on, or the deployment has ended: then what was said does not count.
fn handled(reply: &Reply) -> Handled {
    match reply {
        Reply::Desired(_) => Handled::Committed,
        Reply::Refused(_) => Handled::Stale,
    }
}

impl<P: Ports, C: Functions + Starters> Inbox for Deployers<P, C> {
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
        match message {
            Job::Start { of, n, attempt, at } => self.job(&Attempt { of, n: *n, attempt: *attempt }, *at, cause.again).await,
            Job::Look { of, n, at } => self.look(of, *n, *at).await,
        }
    }
}
