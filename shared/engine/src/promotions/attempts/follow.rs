//! Looks at the sequence that carries out the promotion into an environment.

use super::{Attempts, Outside, Task, runs_sequence, task};
use crate::ports::{PortError, Ports};
use crate::promotions::message::Address;
use crate::protocol::work::{Claim, Work};
use crate::protocol::{Handled, settle};
use keelway_domain::cause::Cause;
use keelway_domain::promotions::{Attempt, Input, Pipeline, Seen};

pub(super) struct Follow<'a, P, O> {
    pub on: &'a Attempts<P, O>,
    pub of: &'a Address,
    pub environment: &'a str,
    pub cause: Cause,
}

impl<P: Ports, O: Outside> Work for Follow<'_, P, O> {
    type Found = Pipeline;
    type Task = Task;
    type Outcome = Seen;

    async fn find(&self) -> Result<Option<Pipeline>, PortError> {
        self.on.state(self.of).await
    }

    async fn claim(&self, x: &Pipeline) -> Result<Claim<Task>, PortError> {
        let promotion = x.environments.get(self.environment).and_then(|state| state.promotion.as_ref());
        let task = promotion
            .filter(|promotion| runs_sequence(promotion))
            .and_then(|promotion| task(self.of, &Attempt::of(self.environment, promotion), promotion));
        Ok(task.map_or(Claim::Unwanted, Claim::Mine))
    }

    async fn outside(&self, _: &Pipeline, task: &Task) -> Result<Option<Seen>, PortError> {
        self.on.outside.follow(task).await
    }

    async fn tell(&self, _: &Pipeline, task: Task, seen: Seen) -> Result<Handled, PortError> {
        self.on.pipelines.turn(self.of, Input::Seen(&task.attempt, &seen), self.cause).await
    }

    async fn owed(&self, x: &Pipeline) -> Result<(), PortError> {
        settle(&self.on.pipelines, x, self.cause).await
    }
}
