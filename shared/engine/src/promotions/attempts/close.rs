//! Closes what an attempt has made.

use super::{Attempts, Outside, Task, task};
use crate::ports::{PortError, Ports};
use crate::promotions::message::Address;
use crate::protocol::work::{Claim, Work};
use crate::protocol::{Handled, settle};
use keelway_domain::cause::Cause;
use keelway_domain::promotions::{Attempt, Closed, Closing, Input, Pipeline};
use keelway_domain::time::Timestamp;

pub(super) struct Close<'a, P, O> {
    pub on: &'a Attempts<P, O>,
    pub of: &'a Address,
    pub attempt: &'a Attempt,
    pub due: Timestamp,
    pub cause: Cause,
}

impl<P: Ports, O: Outside> Work for Close<'_, P, O> {
    type Found = Pipeline;
    /// The thing to be closed, if anything was made, and the reason.
    type Task = (Option<Task>, String);
    type Outcome = Closed;

    async fn find(&self) -> Result<Option<Pipeline>, PortError> {
        self.on.state(self.of).await
    }

    /// If closing was tried since, the job is a copy: the state has the time of the next try.
    async fn claim(&self, x: &Pipeline) -> Result<Claim<Self::Task>, PortError> {
        let closing = x.environments.get(&self.attempt.environment).map(|state| state.closing.as_slice()).unwrap_or_default();
        let present = |closing: &&Closing| self.attempt.is_of(&closing.promotion) && closing.due == self.due;
        Ok(closing.iter().find(present).map_or(Claim::Unwanted, |closing| {
            Claim::Mine((task(self.of, self.attempt, &closing.promotion), closing.comment.clone()))
        }))
    }

    async fn outside(&self, _: &Pipeline, (task, comment): &Self::Task) -> Result<Option<Closed>, PortError> {
        match task {
            Some(task) => self.on.outside.take_back(task, comment).await.map(Some),
            None => Ok(Some(Closed::Closed)),
        }
    }

    async fn tell(&self, _: &Pipeline, _: Self::Task, how: Closed) -> Result<Handled, PortError> {
        self.on.pipelines.turn(self.of, Input::Closed(self.attempt, &how), self.cause).await
    }

    async fn owed(&self, x: &Pipeline) -> Result<(), PortError> {
        settle(&self.on.pipelines, x, self.cause).await
    }
}
