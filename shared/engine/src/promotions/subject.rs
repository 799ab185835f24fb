//! A pipeline as a subject of the protocol.

use super::message::{Job, Message};
use super::{NAME, codec, keys};
use crate::evaluations;
use crate::item::{Attrs, Item, Key};
use crate::ports::PortError;
use crate::protocol::{Letter, Place, Subject, level};
use keelway_domain::cause::Cause;
use keelway_domain::evaluations::Asker;
use keelway_domain::event::CloudEvent;
use keelway_domain::ids::RecordId;
use keelway_domain::level::Level as _;
use keelway_domain::promotions::definition::Strategy;
use keelway_domain::promotions::{Attempt, Evaluate, Order, Phase, Pipeline, Record};
use keelway_domain::time::Timestamp;

/// The effect that a pipeline owes besides those of all engines: a look at a repository with an open pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watch {
    /// The repository's URL.
    pub repository: String,
    /// The attempt that opened the pull request.
    pub attempt: Attempt,
    /// Whether the first look comes at once, because Keelway merges the pull request itself, or because it may have been merged
    /// late.
    pub at_once: bool,
}

impl Subject for Pipeline {
    type Send = Order;
    type Duty = Watch;

    const PART: &'static str = NAME;
    const FORMAT: i64 = codec::FORMAT;

    fn key(&self) -> Key {
        keys::pipeline(&self.address())
    }
    fn decode(item: &Item) -> Result<Self, PortError> {
        codec::pipeline(item)
    }
    fn attributes(&self, expires: Timestamp) -> Attrs {
        codec::attributes(self, self.key(), expires)
    }
    fn place(&self) -> Place {
        Place { scope: self.namespace.clone(), since: self.began, name: self.name.clone() }
    }
    fn record(&self) -> Option<RecordId> {
        self.record
    }
    fn wake(&self) -> Option<Timestamp> {
        self.wake.filter(|_| !self.over())
    }
    fn armed_by(&self) -> Option<u64> {
        Some(self.armed_by)
    }
    fn over(&self) -> bool {
        Pipeline::over(self)
    }
    fn events(&self, id: &RecordId, record: &Record) -> Vec<CloudEvent> {
        level::events("pipeline", &self.address(), id, record)
    }
    fn letter(&self, _: &RecordId, _: usize, order: &Order) -> Letter {
        let of = self.address();
        match order {
            Order::Attempt(attempt) => {
                let promotion = self.environments.get(&attempt.environment).and_then(|state| state.promotion.as_ref());
                let strategy =
                    promotion.filter(|promotion| attempt.is_of(promotion)).and_then(|promotion| promotion.strategy.clone());
                Job::Attempt { of, attempt: attempt.clone(), strategy }.letter()
            }
            Order::Close(attempt) => {
                let closing = self.environments.get(&attempt.environment).map(|state| state.closing.as_slice()).unwrap_or_default();
                let due = closing.iter().find(|closing| attempt.is_of(&closing.promotion)).map(|closing| closing.due);
                Job::Close { of, attempt: attempt.clone(), due: due.unwrap_or_default() }.letter()
            }
            Order::Evaluate(Evaluate { id, environment, revision, period, stage, service, time }) => {
                let to = [of.namespace.clone(), stage.clone(), service.clone()];
                let (environment, revision) = (environment.clone(), revision.clone());
                let asker = Asker { pipeline: of, environment, revision, time: *time };
                evaluations::Message::Evaluate { to, id: id.clone(), period: *period, asker }.letter()
            }
        }
    }
    fn wake_up(&self, at: Timestamp) -> Letter {
        Message::Wake { to: self.address(), at }.letter()
    }
    fn owed(&self, cause: Cause) -> Vec<Watch> {
        if cause.again { open_requests(self) } else { vec![] }
    }
    fn fresh(&self, old: Option<&Self>) -> Vec<Watch> {
        let before = old.map(open_requests).unwrap_or_default();
        open_requests(self).into_iter().filter(|open| !before.contains(open)).collect()
    }
}

/// The open pull requests of a pipeline.
pub(super) fn open_requests(x: &Pipeline) -> Vec<Watch> {
    let open = |(name, state): (&String, &keelway_domain::promotions::Environment)| {
        let promotion = state.promotion.as_ref().filter(|promotion| promotion.is_watched())?;
        match &promotion.strategy {
            Some(Strategy::PullRequest(request)) => {
                // The next environments wait to know whether it was merged late.
                let at_once = request.merge || promotion.phase != Phase::Created;
                Some(Watch { repository: request.url.clone(), attempt: Attempt::of(name, promotion), at_once })
            }
            _ => None,
        }
    };
    x.environments.iter().filter_map(open).collect()
}
