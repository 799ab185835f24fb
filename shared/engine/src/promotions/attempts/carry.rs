//! Carries out an attempt.

use super::{Attempts, Outside, Task, promotion, runs_sequence, task};
use crate::ports::{PortError, Ports};
use crate::promotions::message::{Address, Job};
use crate::protocol::Handled;
use crate::protocol::work::{Claim, Work};
use crate::table;
use keelway_domain::cause::Cause;
use keelway_domain::ids::hash64;
use keelway_domain::promotions::definition::Strategy;
use keelway_domain::promotions::{Attempt, AttemptResult, Closed, Input, Made, Phase, Pipeline, Promotion};
use keelway_domain::time::{Span, Timestamp};

pub(super) struct Carry<'a, P, O> {
    pub on: &'a Attempts<P, O>,
    pub of: &'a Address,
    pub attempt: &'a Attempt,
    pub cause: Cause,
}

impl<P: Ports, O: Outside> Work for Carry<'_, P, O> {
    /// Whether this message has begun the attempt, and the pipeline after that.
    type Found = (Handled, Option<Pipeline>);
    type Task = Task;
    type Outcome = AttemptResult;

    async fn find(&self) -> Result<Option<Self::Found>, PortError> {
        let begun = self.on.pipelines.turn(self.of, Input::Begin(self.attempt), self.cause).await?;
        Ok(Some((begun, self.on.state(self.of).await?)))
    }

    async fn claim(&self, (begun, x): &Self::Found) -> Result<Claim<Task>, PortError> {
        let attempt = self.attempt;
        // The evaluation may have found that the attempt is no longer needed.
        let present = |promotion: &&Promotion| {
            attempt.is_of(promotion) && promotion.attempt == attempt.attempt && promotion.phase == Phase::Attempting
        };
        let Some(x) = x.as_ref().filter(|_| *begun == Handled::Committed) else { return Ok(Claim::Unwanted) };
        let task = promotion(x, attempt).filter(present).and_then(|promotion| task(self.of, attempt, promotion));
        let run = x.run.as_ref().filter(|run| run.number == attempt.run);
        let authors = run.map(|run| run.authors.clone()).unwrap_or_default();
        Ok(task.map_or(Claim::Unwanted, |task| Claim::Mine(Task { authors, ..task })))
    }

    async fn outside(&self, _: &Self::Found, task: &Task) -> Result<Option<AttemptResult>, PortError> {
        self.on.outside.carry_out(task).await.map(Some)
    }

    async fn tell(&self, _: &Self::Found, _: Task, outcome: AttemptResult) -> Result<Handled, PortError> {
        let ended = self.on.pipelines.turn(self.of, Input::Ended(self.attempt, &outcome), self.cause).await?;
        // Also after a conflict, which may have been caused by this same commit, whose answer was lost.
        if matches!(outcome, AttemptResult::Created(Made::Sequence { .. })) {
            self.has_followed().await?;
        }
        Ok(ended)
    }

    async fn owed(&self, (_, x): &Self::Found) -> Result<(), PortError> {
        let promotion = x.as_ref().and_then(|x| promotion(x, self.attempt));
        match promotion.filter(|promotion| self.attempt.is_of(promotion) && runs_sequence(promotion)) {
            Some(_) => self.has_followed().await,
            None => Ok(()),
        }
    }

    fn every(&self) -> Option<Span> {
        self.on.heartbeat
    }

    async fn beat(&self, _: &Task, n: u64) -> Result<(), PortError> {
        // A heartbeat is an input of its own: it must not publish the records of the message again.
        let id = hash64(&[b"beat", &self.cause.id.to_be_bytes(), &n.to_be_bytes()]);
        let own = Cause { id, again: false, ..self.cause };
        self.on.pipelines.turn(self.of, Input::Beat(self.attempt), own).await.map(drop)
    }
}

impl<P: Ports, O: Outside> Carry<'_, P, O> {
    /// Orders a look at the sequence that carries a promotion out. The sequence may have ended before the pipeline knew of it; the
    /// message about that end then had no effect.
    async fn has_followed(&self) -> Result<(), PortError> {
        let because = format!("attempt {}", self.attempt.attempt);
        let follow = Job::Follow { of: self.of.clone(), environment: self.attempt.environment.clone(), because };
        table::send_all(&self.on.pipelines.ports, &[follow.letter()]).await
    }

    /// The attempt does not count, because another worker was faster, or this one too slow. Its possible effect is taken back,
    /// unless the pipeline still knows it.
    pub async fn tidy(&self, strategy: Option<&Strategy>) -> Result<Handled, PortError> {
        let (of, attempt) = (self.of, self.attempt);
        let x = self.on.state(of).await?;
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
            if let Closed::Failed(_) = self.on.outside.take_back(&task, "this promotion is not awaited any more").await? {
                let reason = format!("{of}: what an attempt for {} made could not be taken back", attempt.environment);
                return Err(PortError::Retry { request: "attempt", reason });
            }
        }
        Ok(Handled::Stale)
    }
}
